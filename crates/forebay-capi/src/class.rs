//! Classes and groups of classes.

use std::ffi::{c_char, c_int};

use forebay::{Class, Limits, Scheduler};

use crate::call::call_done;
use crate::code::FOREBAY_E_NOT_FOUND;
use crate::entered;
use crate::failure::Failure;
use crate::memory::{Out, OutStruct, SizedStruct, descriptor, read, text};
use crate::object::{ClassOf, Either, GroupOf, get, get_either, insert};
use crate::scheduler::forebay_scheduler;

/// A priority class, on one disk of its scheduler. That is the scheduler's first disk, unless
/// `forebay_class_on_disk` or `forebay_class_on_file` made the handle.
pub type forebay_class = u64;
/// A group of classes, which competes with classes and other groups as one class of its shares.
pub type forebay_group = u64;

/// Upper limits of a class or a group on each disk, in addition to its shares; 0 for none.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_limits {
    /// `sizeof(struct forebay_limits)`.
    pub size: usize,
    /// Bytes per second, reads and writes together.
    pub bytes_per_second: u64,
    /// Requests per second.
    pub operations_per_second: u64,
}

// SAFETY: it begins with its size, and all other fields are numbers.
unsafe impl SizedStruct for forebay_limits {
    const SIZE_MIN: usize = 24;
}

/// A class, or a group.
type Member = Either<ClassOf, GroupOf>;

fn member(handle: u64) -> Result<Member, Failure> {
    get_either(handle)
}

fn insert_class(scheduler: &Scheduler, class: Class) -> Result<u64, Failure> {
    insert(ClassOf { scheduler: scheduler.clone(), class })
}

/// Adds a class with `shares` to `parent`, a scheduler or a group, on all disks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_class_add(
    parent: u64,
    name: *const c_char,
    name_len: usize,
    shares: u32,
    class: *mut forebay_class,
) -> c_int {
    call_done(|| {
        let parent = get_either::<Scheduler, GroupOf>(parent)?;
        // SAFETY: the caller keeps the rules of the header.
        let (out, name) = unsafe { (Out::new(class, "class")?, text(name, name_len, "name")?) };
        out.set(match parent {
            Either::One(scheduler) => insert_class(&scheduler, scheduler.add_class(name, shares)?)?,
            Either::Other(of) => insert_class(&of.scheduler, of.group.add_class(name, shares)?)?,
        });
        Ok(())
    })
}

/// Adds a group with `shares` to `parent`, a scheduler or a group, on all disks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_group_add(
    parent: u64,
    name: *const c_char,
    name_len: usize,
    shares: u32,
    group: *mut forebay_group,
) -> c_int {
    call_done(|| {
        let parent = get_either::<Scheduler, GroupOf>(parent)?;
        // SAFETY: the caller keeps the rules of the header.
        let (out, name) = unsafe { (Out::new(group, "group")?, text(name, name_len, "name")?) };
        let (scheduler, group) = match parent {
            Either::One(scheduler) => {
                (Scheduler::clone(&scheduler), scheduler.add_class_group(name, shares)?)
            }
            Either::Other(of) => (of.scheduler.clone(), of.group.add_class_group(name, shares)?),
        };
        out.fill(insert(GroupOf { scheduler, group }))
    })
}

/// Finds the class of that name. `FOREBAY_E_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_class_find(
    scheduler: forebay_scheduler,
    name: *const c_char,
    name_len: usize,
    class: *mut forebay_class,
) -> c_int {
    call_done(|| {
        let scheduler = get::<Scheduler>(scheduler)?;
        // SAFETY: the caller keeps the rules of the header.
        let (out, name) = unsafe { (Out::new(class, "class")?, text(name, name_len, "name")?) };
        let found = scheduler.class(name).ok_or_else(|| {
            let names: Vec<_> = scheduler.classes().iter().map(|of| of.name().to_owned()).collect();
            let text = format!("unknown class `{name}`; the classes are {}", names.join(", "));
            Failure::new(FOREBAY_E_NOT_FOUND, text)
        })?;
        out.fill(insert_class(&scheduler, found))
    })
}

/// Makes a handle of the same class on the disk of that name. Its permits are charged to that disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_class_on_disk(
    class: forebay_class,
    disk: *const c_char,
    disk_len: usize,
    on_disk: *mut forebay_class,
) -> c_int {
    call_done(|| {
        let of = get::<ClassOf>(class)?;
        // SAFETY: the caller keeps the rules of the header.
        let (out, name) = unsafe { (Out::new(on_disk, "on_disk")?, text(disk, disk_len, "disk")?) };
        let disk = of.scheduler.disk(name).ok_or_else(|| {
            let names: Vec<_> =
                of.scheduler.disks().iter().map(|of| of.name().to_owned()).collect();
            let text = format!("unknown disk `{name}`; the disks are {}", names.join(", "));
            Failure::new(FOREBAY_E_NOT_FOUND, text)
        })?;
        out.fill(insert_class(&of.scheduler, of.class.on(&disk)?))
    })
}

/// Makes a handle of the same class on the disk that holds the file of `fd`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_class_on_file(
    class: forebay_class,
    fd: c_int,
    on_disk: *mut forebay_class,
) -> c_int {
    call_done(|| {
        let of = get::<ClassOf>(class)?;
        // SAFETY: the caller keeps the rules of the header.
        let out = unsafe { Out::new(on_disk, "on_disk")? };
        let disk = of.scheduler.disk_of_file(descriptor(fd)?)?;
        out.fill(insert_class(&of.scheduler, of.class.on(&disk)?))
    })
}

/// Removes a class or a group from all disks. Its handles still have to be freed; other calls with
/// them return `FOREBAY_E_REMOVED`. Returns `FOREBAY_E_BUSY` while it has queued requests or contains
/// classes.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_remove(class_or_group: u64) -> c_int {
    call_done(|| {
        match member(class_or_group)? {
            Member::One(of) => of.scheduler.remove_class(&of.class)?,
            Member::Other(of) => of.scheduler.remove_class_group(&of.group)?,
        }
        Ok(())
    })
}

/// Gets the present shares of a class or a group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_get_shares(class_or_group: u64, shares: *mut u32) -> c_int {
    call_done(|| {
        let member = member(class_or_group)?;
        // SAFETY: the caller keeps the rules of the header.
        let out = unsafe { Out::new(shares, "shares")? };
        out.set(match member {
            Member::One(of) => of.class.shares(),
            Member::Other(of) => of.group.shares(),
        });
        Ok(())
    })
}

/// Changes the shares of a class or a group, on all disks, from the next request on.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_set_shares(class_or_group: u64, shares: u32) -> c_int {
    call_done(|| {
        match member(class_or_group)? {
            Member::One(of) => of.class.set_shares(shares)?,
            Member::Other(of) => of.group.set_shares(shares)?,
        }
        Ok(())
    })
}

/// Gets the present upper limits of a class or a group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_get_limits(
    class_or_group: u64,
    limits: *mut forebay_limits,
) -> c_int {
    call_done(|| {
        let member = member(class_or_group)?;
        // SAFETY: the caller keeps the rules of the header.
        let out = unsafe { OutStruct::new(limits, "limits")? };
        let Limits { bytes_per_second, operations_per_second } = match member {
            Member::One(of) => of.class.limits(),
            Member::Other(of) => of.group.limits(),
        };
        out.set(&forebay_limits {
            size: 0,
            bytes_per_second: bytes_per_second.unwrap_or(0),
            operations_per_second: operations_per_second.unwrap_or(0),
        });
        Ok(())
    })
}

/// Changes the upper limits of a class or a group, on each disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_set_limits(
    class_or_group: u64,
    limits: *const forebay_limits,
) -> c_int {
    call_done(|| {
        let member = member(class_or_group)?;
        // SAFETY: the caller keeps the rules of the header.
        let given = unsafe { read(limits, "limits")? };
        let limit = |rate: u64| (rate > 0).then_some(rate);
        let limits = Limits {
            bytes_per_second: limit(given.bytes_per_second),
            operations_per_second: limit(given.operations_per_second),
        };
        match member {
            Member::One(of) => of.class.set_limits(&limits)?,
            Member::Other(of) => of.group.set_limits(&limits)?,
        }
        Ok(())
    })
}

/// Makes this the class of the calling thread until it leaves it: calls on the scheduler that name no
/// class use it. A thread may enter several classes; the last one applies. Leave the class before its
/// handle is freed.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_class_enter(class: forebay_class) -> c_int {
    call_done(|| {
        let of = get::<ClassOf>(class)?;
        if entered::enter(class, &of.class) {
            return Ok(());
        }
        Err(Failure::invalid("the thread is ending and cannot enter a class"))
    })
}

/// Leaves the class that the calling thread last entered with this handle.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_class_leave(class: forebay_class) -> c_int {
    call_done(|| {
        let of = get::<ClassOf>(class)?;
        if entered::leave(class) {
            return Ok(());
        }
        let text = format!("this thread has not entered the class `{}`", of.class.name());
        Err(Failure::invalid(text))
    })
}
