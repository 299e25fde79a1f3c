//! The error of a flush about bytes that are not on the disk.

use std::io;
use std::ops::Range;

/// Bytes of a file that were written to memory and may not be on the disk, because writing them back
/// failed. Flushes of [`BufferedWriter`](crate::BufferedWriter) and [`Class::sync_data`] fail with
/// an [`io::Error`] that has the kind of the first cause and this as its inner error:
///
/// ```
/// # fn look(error: &std::io::Error) {
/// let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<forebay::WriteBackError>());
/// if let Some(failed) = inner {
///     eprintln!("write {} bytes at {} again", failed.length(), failed.offset());
/// }
/// # }
/// ```
///
/// [`Class::sync_data`]: crate::Class::sync_data
#[derive(thiserror::Error)]
#[error(
    "{} bytes at offset {} may not be on the disk, as writing them back failed: {cause}; write them \
     again and flush, or truncate the file",
    .range.end - .range.start,
    .range.start
)]
pub struct WriteBackError {
    range: Range<u64>,
    #[source]
    cause: io::Error,
}

forebay_core::debug_as_display!(WriteBackError);

impl WriteBackError {
    /// The offset of the first failed range of the file, in bytes.
    pub const fn offset(&self) -> u64 {
        self.range.start
    }

    /// The length of the first failed range in bytes, at least 1. There may be further failed
    /// ranges after it.
    pub const fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The `errno` of the error, as for [`io::Error::raw_os_error`]: `EIO`, `ENOSPC` and others.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.cause.raw_os_error()
    }
}

/// An error that can be returned many times.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    System(i32),
    Other(io::ErrorKind, String),
}

impl Cause {
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(code) => Self::System(code),
            None => Self::Other(error.kind(), error.to_string()),
        }
    }

    /// The error of a flush, for this range.
    pub(crate) fn of_range(&self, range: Range<u64>) -> io::Error {
        let cause = match self {
            Self::System(code) => io::Error::from_raw_os_error(*code),
            Self::Other(kind, text) => io::Error::new(*kind, text.clone()),
        };
        io::Error::new(cause.kind(), WriteBackError { range, cause })
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn the_error_names_the_range_and_keeps_the_number_and_the_kind() {
        let cause = Cause::of(&io::Error::from_raw_os_error(libc::ENOSPC));
        let error = cause.of_range(4096..12_288);
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let text = error.to_string();
        assert!(text.contains("8192 bytes at offset 4096"), "{text}");
        let inner = error.get_ref().unwrap().downcast_ref::<WriteBackError>().unwrap();
        assert_eq!((inner.offset(), inner.length()), (4096, 8192));
        assert_eq!(inner.raw_os_error(), Some(libc::ENOSPC));
        assert!(inner.source().is_some());
        let other = Cause::of(&io::Error::new(io::ErrorKind::TimedOut, "late")).of_range(0..1);
        assert_eq!(other.kind(), io::ErrorKind::TimedOut);
        assert!(other.to_string().contains("late"), "{other}");
    }
}
