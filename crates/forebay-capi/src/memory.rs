//! Access to the caller's memory.

use std::ffi::{OsStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::slice;

use crate::code::FOREBAY_E_VERSION;
use crate::failure::Failure;

/// The caller's memory for a result.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// # Safety
    /// `place` is null, or the caller keeps it valid for a `T` during the call.
    pub(crate) unsafe fn new(place: *mut T, name: &str) -> Result<Self, Failure> {
        NonNull::new(place).map(Self).ok_or_else(|| null(name))
    }

    pub(crate) fn set(&self, value: T) {
        // SAFETY: the caller of `new` promised that it is valid.
        unsafe { self.0.write(value) }
    }

    /// Sets it, unless it came to nothing.
    pub(crate) fn fill<E: Into<Failure>>(&self, value: Result<T, E>) -> Result<(), Failure> {
        self.set(value.map_err(E::into)?);
        Ok(())
    }
}

fn null(name: &str) -> Failure {
    Failure::invalid(format!("`{name}` is a null pointer"))
}

/// # Safety
/// `data` is null, or has `len` bytes during the call.
pub(crate) unsafe fn bytes<'a>(
    data: *const c_void,
    len: usize,
    name: &str,
) -> Result<&'a [u8], Failure> {
    check(data.is_null(), len, name)?;
    // SAFETY: as the caller says; it is not null unless it is empty.
    Ok(if len == 0 { &[] } else { unsafe { slice::from_raw_parts(data.cast(), len) } })
}

/// # Safety
/// As for [`bytes`], and no one else accesses them.
pub(crate) unsafe fn bytes_mut<'a>(
    data: *mut c_void,
    len: usize,
    name: &str,
) -> Result<&'a mut [u8], Failure> {
    check(data.is_null(), len, name)?;
    // SAFETY: as the caller says; it is not null unless it is empty.
    Ok(if len == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(data.cast(), len) } })
}

fn check(is_null: bool, len: usize, name: &str) -> Result<(), Failure> {
    if isize::try_from(len).is_err() {
        return Err(Failure::invalid(format!("`{name}` of {len} bytes is too large for memory")));
    }
    if is_null && len > 0 { Err(null(name)) } else { Ok(()) }
}

/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn text<'a>(
    data: *const c_char,
    len: usize,
    name: &str,
) -> Result<&'a str, Failure> {
    // SAFETY: as the caller says.
    let bytes = unsafe { bytes(data.cast(), len, name) }?;
    std::str::from_utf8(bytes).map_err(|_| Failure::invalid(format!("`{name}` is not UTF-8")))
}

/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn path<'a>(
    data: *const c_char,
    len: usize,
    name: &str,
) -> Result<&'a Path, Failure> {
    // SAFETY: as the caller says.
    let bytes = unsafe { bytes(data.cast(), len, name) }?;
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// A number from the caller, or `None` for -1, whose constant in the header is `none`.
pub(crate) fn number(number: i64, name: &str, none: &str) -> Result<Option<u64>, Failure> {
    if number == -1 {
        return Ok(None);
    }
    let wrong =
        |_| Failure::invalid(format!("`{name}` is {number}: below 0 only {none} is allowed"));
    u64::try_from(number).map(Some).map_err(wrong)
}

/// The caller's descriptor, which stays open during the call.
pub(crate) fn descriptor<'a>(fd: i32) -> Result<BorrowedFd<'a>, Failure> {
    if fd < 0 {
        return Err(Failure::invalid(format!("{fd} is not a descriptor")));
    }
    // SAFETY: it is not -1, and the header requires that it stays open. Otherwise system calls fail.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Structures that begin with their size, a `usize`, and are valid with all bytes zero. Later
/// versions of the library add fields at the end.
///
/// # Safety
/// The type begins with its size, and all bytes zero are a valid value of it.
pub(crate) unsafe trait SizedStruct: Copy {
    /// The size in bytes of its first version.
    const SIZE_MIN: usize;
}

/// The caller's structure, with zeros for fields that its version lacks.
///
/// # Safety
/// `place` is null, or begins with its own size and has that many bytes.
pub(crate) unsafe fn read<T: SizedStruct>(place: *const T, name: &str) -> Result<T, Failure> {
    // SAFETY: as the caller says.
    let size = unsafe { size_at(place, name)? };
    let own = size_of::<T>();
    // SAFETY: the structure of the caller has `size` bytes.
    let given = unsafe { slice::from_raw_parts(place.cast::<u8>(), size) };
    if given.iter().skip(own).any(|byte| *byte != 0) {
        let text = format!("`{name}` has fields that this library does not know: use a newer one");
        return Err(Failure::new(FOREBAY_E_VERSION, text));
    }
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: the length is at most that of each; the value is zero where nothing is copied.
    unsafe {
        let to = value.as_mut_ptr().cast::<u8>();
        given.as_ptr().copy_to_nonoverlapping(to, size.min(own));
        Ok(value.assume_init())
    }
}

/// The caller's memory for a structure, of the size that the caller's version has.
pub(crate) struct OutStruct<T> {
    place: *mut T,
    size: usize,
}

impl<T: SizedStruct> OutStruct<T> {
    /// # Safety
    /// As for [`read`], during the call.
    pub(crate) unsafe fn new(place: *mut T, name: &str) -> Result<Self, Failure> {
        // SAFETY: as the caller says.
        let size = unsafe { size_at(place, name)? };
        Ok(Self { place, size: size.min(size_of::<T>()) })
    }

    /// Writes all fields but the size.
    pub(crate) fn set(&self, value: &T) {
        let head = size_of::<usize>();
        // SAFETY: the length is at most that of each.
        unsafe {
            let from = std::ptr::from_ref(value).cast::<u8>().add(head);
            from.copy_to_nonoverlapping(self.place.cast::<u8>().add(head), self.size - head);
        }
    }
}

/// # Safety
/// As for [`read`].
unsafe fn size_at<T: SizedStruct>(place: *const T, name: &str) -> Result<usize, Failure> {
    if place.is_null() {
        return Err(null(name));
    }
    // SAFETY: it begins with its size.
    let size = unsafe { place.cast::<usize>().read_unaligned() };
    if !(T::SIZE_MIN..=4096).contains(&size) {
        let text =
            format!("`{name}` has the size {size}: set it to sizeof, {} or more", T::SIZE_MIN);
        return Err(Failure::invalid(text));
    }
    Ok(size)
}
