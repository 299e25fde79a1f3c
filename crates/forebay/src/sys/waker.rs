//! The wakers of others. They are cloned, woken and dropped only here.
//!
//! Each of these runs code of others, which may call the library, block or panic. So none is done
//! under a lock of the library, and debug builds [check](assert_none_held) that. The library wakes
//! the threads that it has parked before it runs wakers of others, because such a waker may wait
//! for one of them.
//!
//! Decision: `docs/decisions/0029-foreign-code.md`.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::task::{Context, Waker};
use std::{mem, ptr};

use super::lock::assert_none_held;
use super::panics::contain;

thread_local! {
    /// The data pointer of the library's own waker with which the thread is polling.
    static OWN: Cell<*const ()> = const { Cell::new(ptr::null()) };
    /// The wakers that wait for the end of a [`put_off`], if the thread is in one. It is never
    /// dropped, because the drops of other thread-local variables use it. One of these may be a
    /// file of an engine.
    static PUT_OFF: ManuallyDrop<RefCell<Option<Vec<KeptWaker>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
    /// The number of wakers of others that the thread is running. It counts as a holder meanwhile.
    static WAKING: Cell<u32> = const { Cell::new(0) };
}

/// A waker that the library keeps for a while. A panic in its drop is contained, because the
/// calling code may be in the middle of a change.
#[derive(Debug)]
pub(crate) struct KeptWaker {
    /// `None` once it is woken.
    waker: Option<Waker>,
    owner: Owner,
}

/// The owner of the code that a waker runs.
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
    /// A clone of the waker with which a future is polled.
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

    /// Whether it wakes the same task as `waker`.
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        self.waker.as_ref().is_some_and(|own| own.will_wake(waker))
    }

    /// Wakes it, or puts it off inside a [`put_off`]. A panic of the waker is contained.
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

/// Wakes all of them, the library's own first.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = KeptWaker>) {
    let mut others = Vec::new();
    for waker in wakers {
        if waker.is_own() { waker.wake() } else { others.push(waker) }
    }
    others.into_iter().for_each(KeptWaker::wake);
}

/// Polls with `waker`, which belongs to the library and runs no code of others.
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

/// Wakers of others that were put off. The drop wakes them.
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

/// Does `work`, during which no wakers of others run. Returns them instead.
pub(crate) fn put_off<R>(work: impl FnOnce() -> R) -> (R, PutOff) {
    /// The list of the enclosing `put_off`. The drop restores it, even if the work panics.
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

/// Does `work`, and then wakes the wakers of others.
pub(crate) fn wake_after<R>(work: impl FnOnce() -> R) -> R {
    put_off(work).0
}

/// Runs `wake`. The calling thread counts as a holder of a permit meanwhile, because others may
/// wait for its next steps.
pub(crate) fn as_holder(wake: impl FnOnce()) {
    WAKING.set(WAKING.get() + 1);
    wake();
    WAKING.set(WAKING.get().saturating_sub(1));
}

/// Whether the thread is running a waker of others.
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
