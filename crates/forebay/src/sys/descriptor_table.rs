//! Threads with a descriptor table of their own.
//!
//! The kernel drops the POSIX record locks that a process has on a file when the process closes any
//! descriptor of that file. It identifies the process by the descriptor table, so a close in another
//! table drops no locks. So the library opens the files of an engine only in such a table.
//!
//! Code of others, such as wakers and loggers, must not run in these threads. The numbers of its
//! descriptors mean other files here, or none.
//!
//! Decision: `docs/decisions/0032-descriptor-table.md`.

use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::event::epoll;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::sys::signals;

thread_local! {
    /// The number of the thread's table. 0 is the table of the rest of the process.
    static TABLE: Cell<u64> = const { Cell::new(0) };
}

/// The first number after standard input, output and error.
const STANDARD: RawFd = 3;

/// `CLOSE_RANGE_UNSHARE`, since Linux 5.9.
const CLOSE_RANGE_UNSHARE: libc::c_uint = 1 << 1;

/// A descriptor table that the other threads of the process do not have. The table and all files
/// open in it are closed with the last of its threads. Its first thread runs as long as this value
/// and its [`TableThreads`] exist.
pub(crate) struct DescriptorTable {
    pub(crate) threads: TableThreads,
    pub(crate) inbox: Inbox,
    /// Open in the table of the process, and closed there.
    outer: OwnedFd,
}

/// Starts threads with this table.
#[derive(Clone)]
pub(crate) struct TableThreads {
    /// The first thread. Threads that it starts have its table.
    first: Sender<Start>,
}

/// The end of the socket on which the table's threads receive files.
#[derive(Clone, Copy)]
pub(crate) struct Inbox {
    table: u64,
    /// The socket's number in the table, open as long as the table has threads.
    inner: RawFd,
}

struct Start {
    name: &'static str,
    body: Box<dyn FnOnce() + Send>,
    started: Sender<io::Result<()>>,
}

impl DescriptorTable {
    /// Makes a table without open files.
    ///
    /// # Errors
    /// No thread or socket is available, or the system refuses such tables: Linux before 5.9, or a
    /// filter of system calls.
    pub(crate) fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (outer, inner) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let inner = rustix::io::fcntl_dupfd_cloexec(&inner, STANDARD)?;
        let (first, starts) = channel();
        let (sender, receiver) = channel();
        let raw = inner.as_raw_fd();
        let work = move || {
            let entered = enter(number, raw);
            let is_entered = entered.is_ok();
            if sender.send(entered).is_ok() && is_entered {
                start_others(number, &starts);
            }
        };
        let builder = thread::Builder::new().name(String::from("forebay-files"));
        signals::blocked(|| builder.spawn(work))?;
        receiver.recv().map_err(io::Error::other)??;
        // The new table has its own copy of this descriptor by now.
        drop(inner);
        let inbox = Inbox { table: number, inner: raw };
        Ok(Self { threads: TableThreads { first }, inbox, outer })
    }

    /// Sends a file with this number. The next [`Inbox::receive`] opens it in the table, as the
    /// same open file description.
    ///
    /// # Errors
    /// `WouldBlock` and `ETOOMANYREFS` while too many files wait to be received.
    pub(crate) fn send(&self, file: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        send(&self.outer, file, number)
    }

    /// The file that was [sent back](Inbox::send_back) with this number. `None` if the table of the
    /// process is full.
    pub(crate) fn returned(&self, number: u64) -> Option<OwnedFd> {
        match receive(&self.outer) {
            Ok(Some((returned, file))) if returned == number => file,
            _ => None,
        }
    }
}

impl TableThreads {
    /// Starts a thread with this table.
    ///
    /// # Errors
    /// The process can have no more threads.
    pub(crate) fn spawn(
        &self,
        name: &'static str,
        body: Box<dyn FnOnce() + Send>,
    ) -> io::Result<()> {
        let (started, answer) = channel();
        let gone = |_| io::Error::other("the thread that starts others has ended");
        self.first.send(Start { name, body, started }).map_err(|error| gone(error.to_string()))?;
        answer.recv().map_err(|error| gone(error.to_string()))?
    }
}

impl Inbox {
    /// The number of the next file that was [sent](DescriptorTable::send), and the file, or no file
    /// if the table is full. Only for threads of this table.
    pub(crate) fn receive(&self) -> io::Result<Option<(u64, Option<TableFile>)>> {
        if TABLE.get() != self.table {
            debug_assert!(false, "only its own threads receive what is sent to a table");
            return Ok(None);
        }
        // SAFETY: this thread has the table, and the socket is open in it until its threads end.
        let inner = unsafe { BorrowedFd::borrow_raw(self.inner) };
        let received = receive(inner)?;
        Ok(received
            .map(|(number, file)| (number, file.map(|file| TableFile::new(self.table, file)))))
    }

    /// Sends an open file to the table of the process. Only for threads of this table.
    ///
    /// # Errors
    /// As for [`DescriptorTable::send`].
    pub(crate) fn send_back(&self, file: impl AsFd, number: u64) -> io::Result<()> {
        if TABLE.get() != self.table {
            debug_assert!(false, "only threads of a table send back what is open in it");
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: this thread has the table, and the socket is open in it until its threads end.
        send(unsafe { BorrowedFd::borrow_raw(self.inner) }, file.as_fd(), number)
    }
}

fn send(socket: impl AsFd, file: BorrowedFd<'_>, number: u64) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    control.push(SendAncillaryMessage::ScmRights(&files));
    let bytes = number.to_ne_bytes();
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::io::retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, flags))?;
    Ok(())
}

fn receive(socket: impl AsFd) -> io::Result<Option<(u64, Option<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut number = [0; 8];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(&mut number)], &mut control, flags)
    });
    match received {
        Err(rustix::io::Errno::AGAIN) => return Ok(None),
        Err(errno) => return Err(errno.into()),
        Ok(message) if message.bytes == 0 => return Ok(None),
        Ok(_) => {}
    }
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut files) = message {
            file = files.next();
        }
    }
    Ok(Some((u64::from_ne_bytes(number), file)))
}

/// A file that is open in a [`DescriptorTable`]. A thread of the table closes it with the drop. If
/// another thread drops it, it stays open as long as the table exists.
pub(crate) struct TableFile {
    table: u64,
    fd: RawFd,
}

impl TableFile {
    fn new(table: u64, file: OwnedFd) -> Self {
        Self { table, fd: file.into_raw_fd() }
    }

    /// A file that the calling thread has opened in its table.
    pub(crate) fn of_this_thread(file: OwnedFd) -> Self {
        Self::new(TABLE.get(), file)
    }

    /// The descriptor, if the calling thread has the table.
    pub(crate) fn borrow(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the thread has the table in which the file is open. The drop of `self` closes it.
        (TABLE.get() == self.table).then(|| unsafe { BorrowedFd::borrow_raw(self.fd) })
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if TABLE.get() == self.table {
            // SAFETY: it is open in the table of this thread, and only this value owns it.
            drop(unsafe { OwnedFd::from_raw_fd(self.fd) });
        } else {
            debug_assert!(false, "a file is closed by a thread that has another table");
        }
    }
}

/// Gives the calling thread a table in which only the descriptor `keep` is open.
fn enter(number: u64, keep: RawFd) -> io::Result<()> {
    let keep_unsigned = keep.unsigned_abs();
    // The new table does not even get copies of the descriptors above `keep`.
    close_range(keep_unsigned + 1, libc::c_uint::MAX, CLOSE_RANGE_UNSHARE)?;
    TABLE.set(number);
    close_range(0, keep_unsigned - 1, 0)?;
    // Occupies the numbers of standard input, output and error, so that no file of an engine gets
    // messages.
    for _ in 0..STANDARD {
        let _ = epoll::create(epoll::CreateFlags::CLOEXEC)?.into_raw_fd();
    }
    Ok(())
}

fn close_range(first: u32, last: u32, flags: libc::c_uint) -> io::Result<()> {
    let (first, last, flags) = (first.into(), last.into(), flags.into());
    let [first, last, flags]: [libc::c_long; 3] = [first, last, flags];
    // SAFETY: the call closes descriptors of this thread's new table, which no other code uses.
    // With `CLOSE_RANGE_UNSHARE` the table is a new one, or the call fails and closes nothing.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The loop of the first thread, which starts the others.
fn start_others(number: u64, starts: &Receiver<Start>) {
    for Start { name, body, started } in starts {
        let builder = thread::Builder::new().name(name.to_owned());
        let spawned = builder.spawn(move || {
            TABLE.set(number);
            body();
        });
        let _ = started.send(spawned.map(drop));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// Makes `call` on a thread of the table, and returns its result.
    fn within<R: Send + 'static>(
        table: &DescriptorTable,
        call: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let (sender, receiver) = channel();
        table
            .threads
            .spawn("forebay-test", Box::new(move || sender.send(call()).unwrap()))
            .unwrap();
        receiver.recv().unwrap()
    }

    fn open_here() -> Vec<String> {
        let entries = std::fs::read_dir("/proc/thread-self/fd").unwrap();
        entries
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .map(|target| target.display().to_string())
            .collect()
    }

    #[test]
    fn nothing_of_the_process_is_open_in_a_table_of_its_own() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let Ok(table) = DescriptorTable::new() else { return };
        let name = file.path().display().to_string();
        assert!(open_here().contains(&name));
        let within = within(&table, open_here);
        assert!(!within.contains(&name), "{within:?}");
        // The three standard ones, the socket, and the directory that is read.
        assert!(within.len() <= 5, "{within:?}");
    }

    #[test]
    fn a_file_that_is_sent_is_open_there_alone_and_closed_there() {
        let Ok(table) = DescriptorTable::new() else { return };
        let file = tempfile::NamedTempFile::new().unwrap();
        table.send(file.as_file().as_fd(), 7).unwrap();
        let receiver = table.inbox;
        let (number, held) = within(&table, move || receiver.receive().unwrap().unwrap());
        let held = held.unwrap();
        assert_eq!(number, 7);
        assert!(held.borrow().is_none(), "not in the table of this thread");
        let name = file.path().display().to_string();
        let of = name.clone();
        let count = move || open_here().iter().filter(|open| **open == of).count();
        let of = name.clone();
        assert_eq!(within(&table, count), 1);
        within(&table, move || drop(held));
        let count = move || open_here().iter().filter(|open| **open == of).count();
        assert_eq!(within(&table, count), 0);
        let receiver = table.inbox;
        assert!(within(&table, move || receiver.receive().unwrap().is_none()));
        assert!(open_here().contains(&name));
    }

    #[test]
    fn messages_of_its_threads_reach_no_file() {
        let Ok(table) = DescriptorTable::new() else { return };
        table.send(File::open("/dev/null").unwrap().as_fd(), 1).unwrap();
        let receiver = table.inbox;
        let number = within(&table, move || {
            let (_, file) = receiver.receive().unwrap().unwrap();
            file.and_then(|file| file.borrow().map(|fd| fd.as_raw_fd()))
        });
        assert!(number.is_some_and(|number| number >= STANDARD), "{number:?}");
    }
}
