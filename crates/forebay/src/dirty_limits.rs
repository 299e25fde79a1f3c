//! How much may be dirty in memory, of what is written through a disk's writers.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::task::Waker;

use crate::sys::lock::{Lock, LockGuard};
use crate::sys::waker::KeptWaker;
use crate::wait_list::{WaitList, WaiterId};

/// The most that is dirty of all files on a disk, in bytes; beyond that each class may have
/// [`CLASS_LEAST`].
pub(crate) const DISK_MAX: u64 = 128 << 20;
/// The most that is dirty of the files of a class on a disk, in bytes.
pub(crate) const CLASS_MAX: u64 = 64 << 20;
/// What a class may have dirty whatever the others have: it does not wait for their turns.
pub(crate) const CLASS_LEAST: u64 = 1 << 20;

/// Somebody who has dirt that was not handed over to be written back.
pub(crate) trait HandOver: Send + Sync {
    fn hand_over(&self);
}

/// Those of a disk.
#[derive(Default)]
pub(crate) struct DirtyLimits {
    total: AtomicU64,
    lists: Lock<Lists>,
    /// How many wait for room.
    waiting: AtomicU64,
}

#[derive(Default)]
struct Lists {
    classes: Vec<(String, Weak<AtomicU64>)>,
    waiting: WaitList,
    files: Vec<Weak<dyn HandOver>>,
}

/// What is dirty of a class on a disk.
#[derive(Clone)]
pub(crate) struct ClassDirt {
    limits: Arc<DirtyLimits>,
    of_class: Arc<AtomicU64>,
}

impl DirtyLimits {
    /// Bytes that are dirty of all files of the disk.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(SeqCst)
    }

    /// The account of the class of that name.
    pub(crate) fn class(self: &Arc<Self>, name: &str) -> ClassDirt {
        let mut lists = self.lock();
        lists.classes.retain(|(_, dirt)| dirt.strong_count() > 0);
        let known = lists.classes.iter().find(|(known, _)| known == name);
        let of_class = known.and_then(|(_, dirt)| dirt.upgrade()).unwrap_or_else(|| {
            let dirt = Arc::default();
            lists.classes.push((name.to_owned(), Arc::downgrade(&dirt)));
            dirt
        });
        ClassDirt { limits: Arc::clone(self), of_class }
    }

    /// A file has dirt from now on, as long as it is there.
    pub(crate) fn add_file(&self, file: Weak<dyn HandOver>) {
        let mut lists = self.lock();
        lists.files.retain(|file| file.strong_count() > 0);
        lists.files.push(file);
    }

    fn lock(&self) -> LockGuard<'_, Lists> {
        self.lists.lock()
    }
}

impl ClassDirt {
    /// Whether so much more may be dirty; then it is counted.
    pub(crate) fn try_add(&self, bytes: u64) -> bool {
        let of_class = self.of_class.fetch_add(bytes, SeqCst);
        let total = self.limits.total.fetch_add(bytes, SeqCst);
        let fits = of_class == 0
            || (of_class + bytes <= CLASS_MAX && total + bytes <= DISK_MAX)
            || of_class + bytes <= CLASS_LEAST;
        if !fits {
            self.subtract(bytes);
        }
        fits
    }

    /// [`Self::try_add`]; if not, `waker` is woken when there is less, and all files of the disk
    /// hand over what they have.
    pub(crate) fn add_or_wait(&self, bytes: u64, id: WaiterId, waker: &Waker) -> bool {
        if self.try_add(bytes) {
            return true;
        }
        let waker = KeptWaker::of(waker);
        let mut lists = self.limits.lock();
        let before = lists.waiting.add(id, waker);
        self.limits.waiting.store(lists.waiting.len() as u64, SeqCst);
        let files: Vec<_> = lists.files.iter().filter_map(Weak::upgrade).collect();
        drop(lists);
        drop(before);
        files.iter().for_each(|file| file.hand_over());
        // What ended since the first look may not have seen the waker.
        self.try_add(bytes)
    }

    /// It waits no more.
    pub(crate) fn leave(&self, id: WaiterId) {
        if self.limits.waiting.load(SeqCst) > 0 {
            let mut lists = self.limits.lock();
            let waker = lists.waiting.remove(id);
            self.limits.waiting.store(lists.waiting.len() as u64, SeqCst);
            drop(lists);
            drop(waker);
        }
    }

    /// So much is dirty no more. Returns who is to be woken for it.
    #[must_use]
    pub(crate) fn remove(&self, bytes: u64) -> WaitList {
        self.subtract(bytes);
        if self.limits.waiting.load(SeqCst) == 0 {
            return WaitList::default();
        }
        let mut lists = self.limits.lock();
        let waiting = lists.waiting.take();
        self.limits.waiting.store(0, SeqCst);
        waiting
    }

    fn subtract(&self, bytes: u64) {
        self.of_class.fetch_sub(bytes, SeqCst);
        self.limits.total.fetch_sub(bytes, SeqCst);
    }
}

impl std::fmt::Debug for DirtyLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirtyLimits").field("total", &self.total).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::wait_list::wake_all;

    #[test]
    fn a_class_has_its_least_whatever_the_others_have() {
        let limits = Arc::new(DirtyLimits::default());
        let [one, two, late] = ["one", "two", "late"].map(|name| limits.class(name));
        assert!(one.try_add(CLASS_MAX) && !one.try_add(1));
        assert!(two.try_add(CLASS_MAX) && !two.try_add(1));
        assert!(late.try_add(CLASS_LEAST), "the disk's bound is reached");
        assert!(!late.try_add(1));
        drop(one.remove(CLASS_MAX));
        assert!(late.try_add(1));
        assert!(!limits.class("two").try_add(1), "the same account");
        assert!(one.try_add(CLASS_MAX + DISK_MAX), "nothing is too large for ever");
    }

    #[test]
    fn who_waits_is_woken_when_there_is_less() {
        let limits = Arc::new(DirtyLimits::default());
        let class = limits.class("class");
        assert!(class.try_add(CLASS_MAX));
        let id = WaiterId::new();
        assert!(!class.add_or_wait(1, id, Waker::noop()));
        assert_eq!(limits.waiting.load(SeqCst), 1);
        wake_all([class.remove(1)]);
        assert_eq!(limits.waiting.load(SeqCst), 0);
        assert!(class.add_or_wait(1, id, Waker::noop()));
    }
}
