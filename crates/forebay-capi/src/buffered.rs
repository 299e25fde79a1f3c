//! Writes, flushes and reads through the page cache, scheduled in a class.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{PoisonError, RwLock};

use forebay::BufferedWriter;

use crate::call::call_done;
use crate::class::forebay_class;
use crate::failure::Failure;
use crate::memory::{Out, bytes, bytes_mut, descriptor, number};
use crate::object::{Kind, Shared, call_with_class, get, insert};

/// Writes to a file through the page cache, and schedules write-back of its dirty bytes in a class.
pub type forebay_writer = u64;

/// Flushes all attributes (`fsync`), not only those that are needed to read the data back (`fdatasync`).
pub const FOREBAY_SYNC_ALL: u32 = 1;
/// The offset after the last write. With `O_APPEND` it is the end of the file. No other offset may be
/// below 0.
pub const FOREBAY_OFFSET_NEXT: i64 = -1;

/// The caller's descriptor, which the library does not close.
pub(crate) struct OfCaller(BorrowedFd<'static>);

impl AsFd for OfCaller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0
    }
}

/// A writer. Appends lock it exclusively; writes at an offset do not.
pub(crate) struct Writer(RwLock<BufferedWriter<OfCaller>>);

impl Shared for Writer {
    const KIND: Kind = Kind::Writer;
}

impl Writer {
    fn shared<R>(&self, work: impl FnOnce(&BufferedWriter<OfCaller>) -> R) -> R {
        work(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn is_all(flags: u32) -> Result<bool, Failure> {
    match flags {
        0 => Ok(false),
        FOREBAY_SYNC_ALL => Ok(true),
        _ => Err(Failure::invalid(format!("unknown flags {flags:#x}: use 0 or FOREBAY_SYNC_ALL"))),
    }
}

/// Makes a writer in `class` for the file of `fd`, which must be open for writing. The caller still
/// owns the descriptor, and closes it after it has freed the writer. At most `dirty_max` bytes of the
/// file are dirty; 0 means 16 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_writer_new(
    class: forebay_class,
    fd: c_int,
    dirty_max: u64,
    writer: *mut forebay_writer,
) -> c_int {
    call_with_class(class, |class| {
        // SAFETY: the caller's.
        let out = unsafe { Out::new(writer, "writer")? };
        let mut writer = class.buffered_writer(OfCaller(descriptor(fd)?))?;
        if dirty_max > 0 {
            writer = writer.with_dirty_max(dirty_max);
        }
        out.fill(insert(Writer(RwLock::new(writer))))
    })
}

/// Writes all of `data` at `offset`, or at `FOREBAY_OFFSET_NEXT`. Waits while `dirty_max` bytes of the
/// file are dirty. After an error a part of the data may have been written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_write(
    writer: forebay_writer,
    data: *const c_void,
    len: usize,
    offset: i64,
) -> c_int {
    call_done(|| {
        let writer = get::<Writer>(writer)?;
        // SAFETY: the caller's.
        let data = unsafe { bytes(data, len, "data")? };
        match number(offset, "offset", "FOREBAY_OFFSET_NEXT")? {
            Some(offset) => writer.shared(|writer| writer.write_all_at(data, offset))?,
            None => writer.0.write().unwrap_or_else(PoisonError::into_inner).write_all(data)?,
        }
        Ok(())
    })
}

/// Starts write-back of the dirty bytes, scheduled in the class, and does not wait for its end.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_write_back(writer: forebay_writer) -> c_int {
    call_done(|| Ok(get::<Writer>(writer)?.shared(BufferedWriter::write_back)?))
}

/// Sets how many bytes of the file may be dirty before write-back begins: 0 by default, and half of
/// `dirty_max` at most. Up to that number, freeing the writer does not start write-back either. Flushes
/// still write back all dirty bytes. Use this for files that are often deleted before they are flushed,
/// such as logs.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_writer_set_write_back_after(writer: forebay_writer, bytes: u64) -> c_int {
    call_done(|| {
        get::<Writer>(writer)?.shared(|writer| writer.set_write_back_after(bytes));
        Ok(())
    })
}

/// Makes the writes durable: first it writes back the dirty bytes in parts, scheduled in the class, then
/// it flushes. It fails as long as earlier writes could not be written back, even if another call has
/// reported that error. `flags` is 0 or `FOREBAY_SYNC_ALL`.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_writer_sync(writer: forebay_writer, flags: u32) -> c_int {
    call_done(|| {
        let writer = get::<Writer>(writer)?;
        let sync =
            if is_all(flags)? { BufferedWriter::sync_all } else { BufferedWriter::sync_data };
        Ok(writer.shared(sync)?)
    })
}

/// Gets the number of bytes that this writer wrote and that are not on the disk yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_writer_dirty(writer: forebay_writer, dirty: *mut u64) -> c_int {
    call_done(|| {
        let writer = get::<Writer>(writer)?;
        // SAFETY: the caller's.
        unsafe { Out::new(dirty, "dirty")? }.set(writer.shared(BufferedWriter::dirty));
        Ok(())
    })
}

/// `forebay_writer_sync` for a file that the program writes without a `forebay_writer`.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_sync(class: forebay_class, fd: c_int, flags: u32) -> c_int {
    call_with_class(class, |class| {
        let (fd, is_all) = (descriptor(fd)?, is_all(flags)?);
        Ok(if is_all { class.sync_all(fd) } else { class.sync_data(fd) }?)
    })
}

/// Reads `len` bytes of the file of `fd` at `offset` into `data`, through the page cache. Pages in
/// memory need no permit; the others wait for permits of the class. `done` receives the number of bytes
/// read, which is `len` unless the file ends before that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_read(
    class: forebay_class,
    fd: c_int,
    data: *mut c_void,
    len: usize,
    offset: u64,
    done: *mut usize,
) -> c_int {
    call_with_class(class, |class| {
        // SAFETY: the caller's.
        let (out, data) = unsafe { (Out::new(done, "done")?, bytes_mut(data, len, "data")?) };
        out.fill(class.read_at(descriptor(fd)?, data, offset))
    })
}

/// Reads `len` bytes of the file of `fd` from `offset` on into the page cache, for example before they
/// are read through a memory mapping. Each part waits for a permit of the class. For the whole file pass
/// 0 and `UINT64_MAX`.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_prefetch(
    class: forebay_class,
    fd: c_int,
    offset: u64,
    len: u64,
) -> c_int {
    let range = offset..offset.saturating_add(len);
    call_with_class(class, |class| Ok(class.prefetch(descriptor(fd)?, range)?))
}
