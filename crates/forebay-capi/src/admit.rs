//! Permits for threads.

use std::ffi::c_int;
use std::io;
use std::time::Duration;

use forebay::{AdmitFor, Class, Op, Permit};

use crate::call::call_done;
use crate::class::forebay_class;
use crate::code::FOREBAY_E_TIMED_OUT;
use crate::failure::Failure;
use crate::memory::{Out, descriptor, number};
use crate::object::{call_with_class, insert_permit, take_permit, with_permit};

/// Permission for one I/O now. Hold it for exactly as long as the I/O takes. Any thread may complete
/// it.
pub type forebay_permit = u64;

/// A read.
pub const FOREBAY_READ: c_int = 0;
/// A write.
pub const FOREBAY_WRITE: c_int = 1;
/// A discard, whose length is that of the discarded range.
pub const FOREBAY_DISCARD: c_int = 2;
/// A flush, whose length may be 0.
pub const FOREBAY_FLUSH: c_int = 3;

/// A timeout that never ends. No other timeout may be below 0.
pub const FOREBAY_FOREVER: i64 = -1;
/// An unknown offset. No other offset may be below 0.
pub const FOREBAY_OFFSET_UNKNOWN: i64 = -1;

pub(crate) fn op(op: c_int) -> Result<Op, Failure> {
    match op {
        FOREBAY_READ => Ok(Op::Read),
        FOREBAY_WRITE => Ok(Op::Write),
        FOREBAY_DISCARD => Ok(Op::Discard),
        FOREBAY_FLUSH => Ok(Op::Flush),
        _ => Err(Failure::invalid(format!(
            "{op} is no operation: use FOREBAY_READ to FOREBAY_FLUSH"
        ))),
    }
}

/// A timeout in nanoseconds as a duration. `None` never ends.
fn timeout(nanos: i64) -> Result<Option<Duration>, Failure> {
    Ok(number(nanos, "timeout_ns", "FOREBAY_FOREVER")?.map(Duration::from_nanos))
}

fn at_once<P>(permit: Option<P>) -> Result<P, Failure> {
    permit.ok_or_else(|| {
        Failure::new(FOREBAY_E_TIMED_OUT, "no permit is available now; set a timeout, or ask again")
    })
}

fn admit(class: &Class, op: Op, len: u64, timeout_ns: i64) -> Result<Permit, Failure> {
    let permit = match timeout(timeout_ns)? {
        None => class.admit(op, len)?,
        Some(Duration::ZERO) => at_once(class.try_admit(op, len)?)?,
        Some(timeout) => class.admit_timeout(op, len, timeout)?,
    };
    Ok(permit.detach())
}

/// Waits until the scheduler grants `op` of `len` bytes to the class. It waits for `timeout_ns`
/// nanoseconds at most, not at all if that is 0, and without limit if it is `FOREBAY_FOREVER`. After
/// the timeout it returns `FOREBAY_E_TIMED_OUT`. `class` may be a scheduler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_admit(
    class: forebay_class,
    op: c_int,
    len: u64,
    timeout_ns: i64,
    permit: *mut forebay_permit,
) -> c_int {
    call_with_class(class, |class| {
        // SAFETY: the caller's.
        let out = unsafe { Out::new(permit, "permit")? };
        out.fill(insert_permit(admit(class, self::op(op)?, len, timeout_ns)?))
    })
}

/// `forebay_admit` on the disk that holds the file of `fd`, whatever the disk of the class is. Disks
/// that seek price the request by its `offset` in bytes, or by `FOREBAY_OFFSET_UNKNOWN`. Each call looks
/// up the disk; for many calls use `forebay_class_on_file`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_admit_file(
    class: forebay_class,
    fd: c_int,
    op: c_int,
    offset: i64,
    len: u64,
    timeout_ns: i64,
    permit: *mut forebay_permit,
) -> c_int {
    call_with_class(class, |class| {
        // SAFETY: the caller's.
        let out = unsafe { Out::new(permit, "permit")? };
        let admit = admit_for(class, fd, op, offset, len)?;
        out.fill(insert_permit(wait_for(admit, timeout_ns)?))
    })
}

/// `forebay_admit_file` for the first part of a large request, which costs the disk no more than its
/// effective goal. `part` receives the length of the part in bytes. Do the I/O of that part under the
/// permit, and ask again for the rest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_admit_part(
    class: forebay_class,
    fd: c_int,
    op: c_int,
    offset: i64,
    len: u64,
    timeout_ns: i64,
    permit: *mut forebay_permit,
    part: *mut u64,
) -> c_int {
    call_with_class(class, |class| {
        // SAFETY: the caller's.
        let (out, part) = unsafe { (Out::new(permit, "permit")?, Out::new(part, "part")?) };
        let mut parts = admit_for(class, fd, op, offset, len)?.in_parts()?;
        let (range, admit) = parts.next().ok_or_else(|| Failure::invalid("no part"))?;
        out.set(insert_permit(wait_for(admit, timeout_ns)?)?);
        part.set(range.end);
        Ok(())
    })
}

fn admit_for(
    class: &Class,
    fd: c_int,
    op: c_int,
    offset: i64,
    len: u64,
) -> Result<AdmitFor, Failure> {
    let (op, fd) = (self::op(op)?, descriptor(fd)?);
    Ok(match number(offset, "offset", "FOREBAY_OFFSET_UNKNOWN")? {
        Some(offset) => class.admit_for(&fd, op.at(offset), len),
        None => class.admit_for(&fd, op, len),
    })
}

fn wait_for(admit: AdmitFor, timeout_ns: i64) -> Result<Permit, Failure> {
    let permit = match timeout(timeout_ns)? {
        None => admit.wait()?,
        Some(Duration::ZERO) => at_once(admit.try_now()?)?,
        Some(timeout) => admit.wait_timeout(timeout)?,
    };
    Ok(permit.detach())
}

/// `forebay_admit` for a thread that holds `permit` and completes it only after this nested I/O. The
/// nested request waits for its turn, but not for room in the window, which may be full of permits
/// whose holders wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_admit_nested(
    permit: forebay_permit,
    class: forebay_class,
    op: c_int,
    len: u64,
    timeout_ns: i64,
    nested: *mut forebay_permit,
) -> c_int {
    call_with_class(class, |class| {
        let class = with_permit(permit, |permit| class.nested_in(permit))?;
        // SAFETY: the caller's.
        let out = unsafe { Out::new(nested, "nested")? };
        out.fill(insert_permit(admit(&class, self::op(op)?, len, timeout_ns)?))
    })
}

/// Completes a permit after its I/O, and frees it. `result` is the return value of `pread` or a similar
/// call: the bytes that were transferred, or a negative number. That is counted as an error, and its
/// duration is not used as a measurement of the disk.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_complete(permit: forebay_permit, result: i64) -> c_int {
    call_done(|| {
        let permit = take_permit(permit)?;
        permit.complete(&u64::try_from(result).map_err(|_| io::Error::from(io::ErrorKind::Other)));
        Ok(())
    })
}
