//! Writes, flushes and reads through the page cache, in the turn of a class.

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

/// Writes to a file through the page cache, and has what is dirty written back in the turn of a class.
pub type forebay_writer = u64;

/// With all attributes (`fsync`), not only those that are needed to read it back (`fdatasync`).
pub const FOREBAY_SYNC_ALL: u32 = 1;
/// Behind what was written last; with `O_APPEND` at the end of the file. No other offset is below 0.
pub const FOREBAY_OFFSET_NEXT: i64 = -1;

/// The caller's descriptor, which stays open.
pub(crate) struct OfCaller(BorrowedFd<'static>);

impl AsFd for OfCaller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0
    }
}

/// What appends has it alone; what is written at an offset does not.
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
        _ => Err(Failure::invalid(format!("flags of {flags:#x}: there is FOREBAY_SYNC_ALL"))),
    }
}

/// A writer to the file of `fd`, which is open for writing, in the turn of `class`. The descriptor
/// stays the caller's, who closes it after the writer is freed. At most `dirty_max` bytes of the file
/// are dirty; 0 for 16 MiB.
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

/// Writes all of `data` at `offset`, or at `FOREBAY_OFFSET_NEXT`; waits while too much is dirty. After an
/// error a part of it may have been written.
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

/// Hands over what is dirty, to be written back in the class's turn, and does not wait for it.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_write_back(writer: forebay_writer) -> c_int {
    call_done(|| Ok(get::<Writer>(writer)?.shared(BufferedWriter::write_back)?))
}

/// From now on nothing is written back while at most `bytes` of the file are dirty, nor when the writer is
/// freed; 0 unless set, and half of `dirty_max` at most. Flushes still write back all. This is for files that are
/// often deleted before anybody flushes them, such as logs.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_writer_set_write_back_after(writer: forebay_writer, bytes: u64) -> c_int {
    call_done(|| {
        get::<Writer>(writer)?.shared(|writer| writer.set_write_back_after(bytes));
        Ok(())
    })
}

/// Makes what was written durable: the dirt first, in parts of the class, then the flush. Fails while
/// bytes that were written before could not be written back, even if another call has reported it. `flags` is 0 or
/// `FOREBAY_SYNC_ALL`.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_writer_sync(writer: forebay_writer, flags: u32) -> c_int {
    call_done(|| {
        let writer = get::<Writer>(writer)?;
        let sync =
            if is_all(flags)? { BufferedWriter::sync_all } else { BufferedWriter::sync_data };
        Ok(writer.shared(sync)?)
    })
}

/// Bytes of the file that were written by the writer and are not on the disk yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_writer_dirty(writer: forebay_writer, dirty: *mut u64) -> c_int {
    call_done(|| {
        let writer = get::<Writer>(writer)?;
        // SAFETY: the caller's.
        unsafe { Out::new(dirty, "dirty")? }.set(writer.shared(BufferedWriter::dirty));
        Ok(())
    })
}

/// `forebay_writer_sync` for a file that the program writes without a writer.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_sync(class: forebay_class, fd: c_int, flags: u32) -> c_int {
    call_with_class(class, |class| {
        let (fd, is_all) = (descriptor(fd)?, is_all(flags)?);
        Ok(if is_all { class.sync_all(fd) } else { class.sync_data(fd) }?)
    })
}

/// Reads into `data` what the file of `fd` has from `offset` on, through the page cache: what is in
/// memory costs nothing, for the rest a permit of the class is waited for. `done` is how many bytes:
/// `len` unless the file ends before.
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

/// Brings what the file of `fd` has of the `len` bytes from `offset` on into the page cache, in parts
/// that each have a permit of the class, so that who reads it through a mapping finds it there. For the
/// whole file give 0 and `UINT64_MAX`.
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
