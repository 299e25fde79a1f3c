//! The objects that handles stand for, and the table of this process.

use std::any::Any;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Once};

use forebay::{Class, ClassGroup, Deleter, Deletion, Permit, Scheduler};

use crate::call::call_done;
use crate::code::FOREBAY_E_HANDLE;
use crate::failure::Failure;
use crate::table::{Kept, Table};

/// The kinds of handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scheduler = 1,
    Class,
    Group,
    Permit,
    Waiting,
    Events,
    Writer,
    Deleter,
    Deletion,
    Snapshot,
}

const NAMES: [&str; 10] = [
    "scheduler",
    "class",
    "class group",
    "permit",
    "waiting request",
    "event queue",
    "buffered writer",
    "deleter",
    "deletion",
    "snapshot",
];

/// The object that a handle stands for.
pub(crate) enum Object {
    Permit(Permit),
    Shared(Kind, Arc<dyn Any + Send + Sync>),
}

/// An object that any number of threads may use at the same time.
pub(crate) trait Shared: Any + Send + Sync {
    const KIND: Kind;
}

/// A class, and the scheduler that can remove it.
pub(crate) struct ClassOf {
    pub(crate) scheduler: Scheduler,
    pub(crate) class: Class,
}

/// A group of classes, and the scheduler that can remove it.
pub(crate) struct GroupOf {
    pub(crate) scheduler: Scheduler,
    pub(crate) group: ClassGroup,
}

impl Shared for Scheduler {
    const KIND: Kind = Kind::Scheduler;
}

impl Shared for ClassOf {
    const KIND: Kind = Kind::Class;
}

impl Shared for GroupOf {
    const KIND: Kind = Kind::Group;
}

impl Shared for Deleter {
    const KIND: Kind = Kind::Deleter;
}

impl Shared for Deletion {
    const KIND: Kind = Kind::Deletion;
}

impl Kept for Object {
    fn kind(&self) -> u8 {
        match self {
            Self::Permit(_) => Kind::Permit as u8,
            Self::Shared(kind, _) => *kind as u8,
        }
    }

    fn name_of(kind: u8) -> &'static str {
        NAMES.get(usize::from(kind).wrapping_sub(1)).copied().unwrap_or("unknown kind")
    }
}

/// The table of this process; null before the first handle.
static TABLE: AtomicPtr<Table<Object>> = AtomicPtr::new(ptr::null_mut());
/// The table of the parent process. It is never freed, because threads of the parent may have held its
/// locks.
static OF_PARENT: AtomicPtr<Table<Object>> = AtomicPtr::new(ptr::null_mut());
/// The number of forks between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Gives a forked child an empty table.
extern "C" fn begin_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let parents = TABLE.swap(ptr::null_mut(), Ordering::Relaxed);
    if !parents.is_null() {
        OF_PARENT.store(parents, Ordering::Relaxed);
    }
}

/// The table of this process.
fn table() -> &'static Table<Object> {
    // SAFETY: no published table is ever freed.
    let present = unsafe { TABLE.load(Ordering::Acquire).as_ref() };
    present.unwrap_or_else(make_table)
}

#[cold]
fn make_table() -> &'static Table<Object> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the library is never unloaded, so the handler stays valid; it only stores numbers.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(begin_child)) };
    });
    let made = Box::into_raw(Box::new(Table::new(FORKS.load(Ordering::Relaxed))));
    let none = ptr::null_mut();
    match TABLE.compare_exchange(none, made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: a published table is never freed.
        Ok(_) => unsafe { &*made },
        // SAFETY: no other thread has seen the new table; the other one is never freed.
        Err(other) => unsafe {
            drop(Box::from_raw(made));
            &*other
        },
    }
}

/// A handle for `shared`.
pub(crate) fn insert<T: Shared>(shared: T) -> Result<u64, Failure> {
    insert_shared(Arc::new(shared))
}

/// A handle for an object that is already shared.
pub(crate) fn insert_shared<T: Shared>(shared: Arc<T>) -> Result<u64, Failure> {
    table().insert(Object::Shared(T::KIND, shared))
}

/// The object that `handle` stands for.
pub(crate) fn get<T: Shared>(handle: u64) -> Result<Arc<T>, Failure> {
    table().get(handle, |object| shared(object).ok_or_else(|| other_kind(object)))
}

/// The object of a handle that may be of two kinds.
pub(crate) enum Either<A, B> {
    One(Arc<A>),
    Other(Arc<B>),
}

/// The object that `handle` stands for, which is one of two kinds.
pub(crate) fn get_either<A: Shared, B: Shared>(handle: u64) -> Result<Either<A, B>, Failure> {
    table().get(handle, |object| {
        let other = || shared(object).map(Either::Other);
        shared(object).map(Either::One).or_else(other).ok_or_else(|| other_kind(object))
    })
}

fn shared<T: Shared>(object: &Object) -> Option<Arc<T>> {
    match object {
        Object::Shared(kind, shared) if *kind == T::KIND => Arc::clone(shared).downcast().ok(),
        _ => None,
    }
}

/// The failure of a handle whose kind does not fit the function.
fn other_kind(object: &Object) -> Failure {
    let name = Object::name_of(object.kind());
    let text = format!("a handle of the kind `{name}` does not fit this function");
    Failure::new(FOREBAY_E_HANDLE, text)
}

/// Does `work` with the class of the handle. For the handle of a scheduler that is the class which the
/// thread has entered.
pub(crate) fn with_class<R>(
    handle: u64,
    work: impl FnOnce(&Class) -> Result<R, Failure>,
) -> Result<R, Failure> {
    match get_either::<ClassOf, Scheduler>(handle)? {
        Either::One(of) => work(&of.class),
        Either::Other(scheduler) => work(&scheduler.current_class()),
    }
}

/// A call of the library that does `work` with a class, as [`with_class`] does.
pub(crate) fn call_with_class(
    handle: u64,
    work: impl FnOnce(&Class) -> Result<(), Failure>,
) -> c_int {
    call_done(|| with_class(handle, work))
}

/// A handle for a permit.
pub(crate) fn insert_permit(permit: Permit) -> Result<u64, Failure> {
    table().insert(Object::Permit(permit))
}

/// Applies `look` to a permit.
pub(crate) fn with_permit<R>(handle: u64, look: impl FnOnce(&Permit) -> R) -> Result<R, Failure> {
    table().get(handle, |object| match object {
        Object::Permit(permit) => Ok(look(permit)),
        other @ Object::Shared(..) => Err(other_kind(other)),
    })
}

/// Takes a permit out of the table, which frees its handle.
pub(crate) fn take_permit(handle: u64) -> Result<Permit, Failure> {
    let wanted = |object: &Object| match object {
        Object::Permit(_) => Ok(()),
        other @ Object::Shared(..) => Err(other_kind(other)),
    };
    match table().remove(handle, wanted)? {
        Object::Permit(permit) => Ok(permit),
        other @ Object::Shared(..) => Err(other_kind(&other)),
    }
}

/// Takes an object of any kind out of the table, which frees its handle.
pub(crate) fn take(handle: u64) -> Result<Object, Failure> {
    table().remove(handle, |_| Ok(()))
}
