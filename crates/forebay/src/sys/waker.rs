//! The wakers of others: the one place where they are cloned, woken and dropped.
//!
//! All three run others' code, which may call the library, block or panic. So none is done under a
//! lock of the library, which debug builds [check](assert_none_held), and threads that the library
//! has parked are woken before them: a waker may block for one of these.
//!
//! Decision: `docs/decisions/0029-foreign-code.md`.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::task::{Context, Waker};
use std::{mem, ptr};

use super::lock::assert_none_held;
use super::panics::contain;

thread_local! {
    /// The data of the library's own waker with which the thread polls.
    static OWN: Cell<*const ()> = const { Cell::new(ptr::null()) };
    /// Those that wait for the end of a [`put_off`], if the thread is in one. It is there also while
    /// the thread's other variables are dropped, one of which may be a file of an engine.
    static PUT_OFF: ManuallyDrop<RefCell<Option<Vec<KeptWaker>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
    /// Wakers of others that the thread runs, for which it counts as a holder.
    static WAKING: Cell<u32> = const { Cell::new(0) };
}

/// A waker that the library keeps for a while. A panic in its drop ends there, since the
/// code that drops it may be in the middle of something.
#[derive(Debug)]
pub(crate) struct KeptWaker {
    /// Taken when it is woken.
    waker: Option<Waker>,
    owner: Owner,
}

/// Whose code a waker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Library,
    Others,
}

impl Drop for KeptWaker {
    fn drop(&mut self) {
        if let Some(waker) = self.waker.take() {
            drop_of(self.owner, waker);
        }
    }
}

#[cold]
fn drop_of(owner: Owner, waker: Waker) {
    match owner {
        Owner::Library => drop(waker),
        Owner::Others => {
            assert_none_held();
            contain(|| drop(waker));
        }
    }
}

impl KeptWaker {
    /// A clone of the waker that a future is polled with.
    pub(crate) fn of(waker: &Waker) -> Self {
        let own = OWN.get();
        let is_own = !own.is_null() && own == waker.data();
        let owner = if is_own { Owner::Library } else { Owner::Others };
        if !is_own {
            assert_none_held();
        }
        Self { waker: Some(waker.clone()), owner }
    }

    /// Whether it wakes a thread or a part of the library, and runs no code of others.
    pub(crate) fn is_own(&self) -> bool {
        self.owner == Owner::Library
    }

    /// Whether it wakes the same as `waker`.
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        self.waker.as_ref().is_some_and(|own| own.will_wake(waker))
    }

    /// What it does then ends with it, also by a panic.
    pub(crate) fn wake(mut self) {
        if self.is_own() {
            return self.waker.take().into_iter().for_each(Waker::wake);
        }
        let put_off = PUT_OFF.with(|list| match &mut *list.borrow_mut() {
            Some(list) => {
                list.push(self);
                None
            }
            None => Some(self),
        });
        if let Some(mut others) = put_off {
            assert_none_held();
            let waker = others.waker.take();
            contain(|| waker.into_iter().for_each(Waker::wake));
        }
    }
}

/// Wakes all, those of the library first.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = KeptWaker>) {
    let mut others = Vec::new();
    for waker in wakers {
        if waker.is_own() { waker.wake() } else { others.push(waker) }
    }
    others.into_iter().for_each(KeptWaker::wake);
}

/// Polls with a `waker` of the library, which runs no code of others.
pub(crate) fn with_own<R>(waker: &Waker, poll: impl FnOnce(&mut Context<'_>) -> R) -> R {
    struct Restore(*const ());
    impl Drop for Restore {
        fn drop(&mut self) {
            OWN.set(self.0);
        }
    }
    let _restore = Restore(OWN.replace(waker.data()));
    poll(&mut Context::from_waker(waker))
}

/// Wakers of others that were put off. They are woken when this is dropped.
#[derive(Default)]
pub(crate) struct PutOff(Vec<KeptWaker>);

impl PutOff {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Drop for PutOff {
    fn drop(&mut self) {
        let wakers = mem::take(&mut self.0);
        if !wakers.is_empty() {
            as_holder(|| wake_all(wakers));
        }
    }
}

/// Does `work`, in whose middle wakers of others are not to run: those are returned.
pub(crate) fn put_off<R>(work: impl FnOnce() -> R) -> (R, PutOff) {
    /// Those of the work around this one; put back also where the work panics.
    struct Around(Option<Vec<KeptWaker>>);
    impl Drop for Around {
        fn drop(&mut self) {
            let left = PUT_OFF.with(|list| list.replace(self.0.take()));
            drop(PutOff(left.unwrap_or_default()));
        }
    }
    let around = Around(PUT_OFF.with(|list| list.replace(Some(Vec::new()))));
    let result = work();
    let wakers = PUT_OFF.with(|list| list.borrow_mut().as_mut().map(mem::take));
    drop(around);
    (result, PutOff(wakers.unwrap_or_default()))
}

/// Does `work`, and wakes others after it.
pub(crate) fn wake_after<R>(work: impl FnOnce() -> R) -> R {
    put_off(work).0
}

/// Runs `wake`, during which the calling thread counts as a holder of a permit: others may wait for
/// what it does next.
pub(crate) fn as_holder(wake: impl FnOnce()) {
    WAKING.set(WAKING.get() + 1);
    wake();
    WAKING.set(WAKING.get().saturating_sub(1));
}

/// Whether the thread runs a waker of others for somebody.
pub(crate) fn is_waking() -> bool {
    WAKING.get() > 0
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::task::Wake;

    use super::*;

    struct Notes(&'static str, Arc<Mutex<Vec<&'static str>>>);

    impl Wake for Notes {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    #[test]
    fn own_wakers_are_woken_at_once_and_those_of_others_after_the_work() {
        let woken = Arc::default();
        let [own, other] =
            ["own", "other"].map(|name| Waker::from(Arc::new(Notes(name, Arc::clone(&woken)))));
        let of_own = with_own(&own, |context| KeptWaker::of(context.waker()));
        let kept = [KeptWaker::of(&other), of_own];
        assert!(kept[1].is_own() && !kept[0].is_own());
        wake_after(|| {
            wake_all(kept);
            assert_eq!(*woken.lock().unwrap(), ["own"]);
        });
        assert_eq!(*woken.lock().unwrap(), ["own", "other"]);
    }

    #[test]
    fn a_waker_without_data_is_not_taken_for_one_of_the_library() {
        assert!(Waker::noop().data().is_null());
        assert!(!KeptWaker::of(Waker::noop()).is_own());
    }
}
