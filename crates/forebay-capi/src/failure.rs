//! The conversion of errors to a code, a message and an `errno`.

use std::error::Error;
use std::ffi::c_int;
use std::io;

use forebay::{
    AdmitError, ClassError, DeleteError, DeleteErrorCause, DeleterError, Forked, SchedulerError,
    UnlistedError, WriteBackError, forebay_core,
};

use crate::code::*;

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: c_int,
    pub(crate) errno: c_int,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(code: c_int, text: impl Into<String>) -> Self {
        Self { code, errno: 0, text: text.into() }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(FOREBAY_E_INVALID, text)
    }

    fn of(code: c_int, error: &dyn Error) -> Self {
        Self::new(code, error.to_string())
    }
}

impl From<AdmitError> for Failure {
    fn from(error: AdmitError) -> Self {
        let code = match &error {
            AdmitError::ClassRemoved { .. } => FOREBAY_E_REMOVED,
            AdmitError::QueueFull { .. } | AdmitError::NoShard { .. } => FOREBAY_E_BUSY,
            AdmitError::Forked(_) => FOREBAY_E_HANDLE,
            AdmitError::TimedOut => FOREBAY_E_TIMED_OUT,
            AdmitError::Lookup(cause) | AdmitError::Timer(cause) => {
                let cause = Self::of_io(cause);
                return Self { text: error.to_string(), ..cause };
            }
            _ => FOREBAY_E_INVALID,
        };
        Self::of(code, &error)
    }
}

impl From<ClassError> for Failure {
    fn from(error: ClassError) -> Self {
        use forebay_core::ClassError as Refused;
        let code = match &error {
            ClassError::NameTaken { .. } => FOREBAY_E_EXISTS,
            ClassError::Forked(_) => FOREBAY_E_HANDLE,
            ClassError::Refused { source: Refused::Unknown, .. } => FOREBAY_E_REMOVED,
            ClassError::Refused { source: Refused::Full | Refused::InUse, .. } => FOREBAY_E_BUSY,
            _ => FOREBAY_E_INVALID,
        };
        Self::of(code, &error)
    }
}

impl From<SchedulerError> for Failure {
    fn from(error: SchedulerError) -> Self {
        let errno = match &error {
            SchedulerError::Mountpoint { source, .. } => source.raw_os_error().unwrap_or(0),
            _ => 0,
        };
        Self { errno, ..Self::of(FOREBAY_E_CONFIG, &error) }
    }
}

impl From<DeleterError> for Failure {
    fn from(error: DeleterError) -> Self {
        Self::of(FOREBAY_E_INVALID, &error)
    }
}

impl From<DeleteError> for Failure {
    fn from(error: DeleteError) -> Self {
        let code = match &error.cause {
            DeleteErrorCause::Cancelled => FOREBAY_E_CANCELLED,
            DeleteErrorCause::Full { .. } => FOREBAY_E_BUSY,
            DeleteErrorCause::Forked(_) => FOREBAY_E_HANDLE,
            DeleteErrorCause::WaitsForItself => FOREBAY_E_DEADLOCK,
            DeleteErrorCause::Panicked => FOREBAY_E_INTERNAL,
            _ => FOREBAY_E_SYSTEM,
        };
        Self { errno: error.errno().unwrap_or(0), ..Self::of(code, &error) }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.downcast::<AdmitError>() {
            Ok(error) => error.into(),
            Err(error) => Self::of_io(&error),
        }
    }
}

impl Failure {
    /// The failure of an I/O error that contains no [`AdmitError`].
    fn of_io(error: &io::Error) -> Self {
        let inner = error.get_ref();
        let of_write_back = inner.and_then(|inner| inner.downcast_ref::<WriteBackError>());
        let errno =
            of_write_back.map_or_else(|| error.raw_os_error(), WriteBackError::raw_os_error);
        let code = match inner {
            Some(inner) if inner.is::<UnlistedError>() => FOREBAY_E_UNLISTED,
            Some(inner) if inner.is::<Forked>() => FOREBAY_E_HANDLE,
            _ if error.kind() == io::ErrorKind::Deadlock => FOREBAY_E_DEADLOCK,
            _ if errno.is_none() && error.kind() == io::ErrorKind::InvalidInput => {
                FOREBAY_E_INVALID
            }
            _ => FOREBAY_E_SYSTEM,
        };
        Self { errno: errno.unwrap_or(0), ..Self::of(code, error) }
    }
}
