//! Replies to the kernel.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use forebay_sim::disk::Command;
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};

use crate::realtime;
use crate::store::Store;

/// Threads that copy large replies.
const COPIERS: usize = 2;

/// The disk thread sends no larger replies itself: copiers them would hold up others.
const SENT_INLINE_MAX: u64 = 16 << 10;

/// Replies to the kernel's requests.
pub(crate) enum Reply {
    Read(ReplyData),
    Write(ReplyWrite),
    Empty(ReplyEmpty),
}

impl Reply {
    pub(crate) fn fail(self, errno: Errno) {
        match self {
            Self::Read(reply) => reply.error(errno),
            Self::Write(reply) => reply.error(errno),
            Self::Empty(reply) => reply.error(errno),
        }
    }
}

/// A request that the disk has finished.
pub(crate) struct Completion {
    pub(crate) command: Command,
    pub(crate) failed: bool,
    pub(crate) reply: Reply,
}

impl Completion {
    /// Sends the reply, or has it sent.
    pub(crate) fn send(self, store: &Store, copiers: &mpsc::Sender<DataReply>, data: &mut Vec<u8>) {
        let Command { offset, len, .. } = self.command;
        match self.reply {
            reply if self.failed => reply.fail(Errno::EIO),
            Reply::Empty(reply) => reply.ok(),
            // the kernel writes at most 1 MiB at once
            Reply::Write(reply) => reply.written(u32::try_from(len).unwrap_or(u32::MAX)),
            Reply::Read(reply) => {
                let copy = DataReply { reply, offset, len };
                if len <= SENT_INLINE_MAX {
                    copy.send(store, data);
                } else if let Err(mpsc::SendError(copy)) = copiers.send(copy) {
                    copy.send(store, data);
                }
            }
        }
    }
}

/// A read whose data is to be copied and sent.
pub(crate) struct DataReply {
    reply: ReplyData,
    offset: u64,
    len: u64,
}

impl DataReply {
    fn send(self, store: &Store, data: &mut Vec<u8>) {
        data.clear();
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        match store.read(self.offset, len, data) {
            Ok(()) => self.reply.data(data),
            Err(error) => self.reply.error(errno(&error)),
        }
    }
}

/// Starts the threads that copy large replies; they end with the sender.
pub(crate) fn spawn_copiers(
    store: &Arc<Store>,
    realtime: bool,
) -> io::Result<mpsc::Sender<DataReply>> {
    let (sender, receiver) = mpsc::channel::<DataReply>();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..COPIERS {
        let store = Arc::clone(store);
        let receiver = Arc::clone(&receiver);
        thread::Builder::new().name("forebay-reply".into()).spawn(move || {
            let _ = realtime::enter_if(realtime);
            let mut data = Vec::new();
            loop {
                let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(copy) = next else { return };
                copy.send(&store, &mut data);
            }
        })?;
    }
    Ok(sender)
}

/// The error code for an error of the store.
pub(crate) fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_i32)
}
