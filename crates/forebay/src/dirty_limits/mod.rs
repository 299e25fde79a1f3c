//! The limits of dirty bytes in memory that were written through a disk's writers.

mod room_queue;

pub(crate) use self::room_queue::RoomQueue;
use crate::sys::lock::Lock;
use crate::sys::waker::KeptWaker;
use crate::wait_list::WaiterId;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Weak};

/// The most dirty bytes of all files on a disk. Beyond it each class may have [`CLASS_LEAST`].
pub(crate) const DISK_MAX: u64 = 128 << 20;
/// The most dirty bytes of a class's files on a disk.
pub(crate) const CLASS_MAX: u64 = 64 << 20;
/// The dirty bytes that each class may have in any case, so that it does not wait for other
/// classes.
pub(crate) const CLASS_LEAST: u64 = 1 << 20;

/// A file with dirty bytes that are not handed over for write-back.
pub(crate) trait HandOver: Send + Sync {
    fn hand_over(self: Arc<Self>);
}

/// The dirty bytes of a disk, and the writes that wait for room.
#[derive(Default)]
pub(crate) struct DirtyLimits {
    total: AtomicU64,
    lists: Lock<Lists>,
    /// The number of classes with writes that wait for room.
    waiting: AtomicU64,
}

#[derive(Default)]
struct Lists {
    classes: Vec<(String, Weak<AtomicU64>)>,
    /// The waiting writes of each class.
    queues: Vec<(Arc<AtomicU64>, RoomQueue)>,
    /// The files with dirty bytes that are not handed over, each at most once.
    files: Vec<Weak<dyn HandOver>>,
}

/// The dirty bytes of a class on a disk.
#[derive(Clone)]
pub(crate) struct ClassDirt {
    limits: Arc<DirtyLimits>,
    of_class: Arc<AtomicU64>,
}

impl DirtyLimits {
    /// The dirty bytes of all files of the disk.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(SeqCst)
    }

    /// The account of the class with this name.
    pub(crate) fn class(self: &Arc<Self>, name: &str) -> ClassDirt {
        let mut lists = self.lists.lock();
        lists.classes.retain(|(_, dirt)| dirt.strong_count() > 0);
        let known = lists.classes.iter().find(|(known, _)| known == name);
        let of_class = known.and_then(|(_, dirt)| dirt.upgrade()).unwrap_or_else(|| {
            let dirt = Arc::default();
            lists.classes.push((name.to_owned(), Arc::downgrade(&dirt)));
            dirt
        });
        ClassDirt { limits: Arc::clone(self), of_class }
    }

    /// The bytes that a class with `of_class` dirty bytes may add. `None` is any number, for a
    /// class without dirty bytes.
    fn room(&self, of_class: u64, total: u64) -> Option<u64> {
        let least = CLASS_LEAST.saturating_sub(of_class);
        let most = CLASS_MAX.saturating_sub(of_class).min(DISK_MAX.saturating_sub(total));
        (of_class > 0).then_some(least.max(most))
    }
}

impl Lists {
    fn queue_of(&mut self, of_class: &Arc<AtomicU64>) -> Option<usize> {
        self.queues.iter().position(|(known, _)| Arc::ptr_eq(known, of_class))
    }
}

impl ClassDirt {
    /// Counts `bytes` if they fit within the bounds and no write waits for room.
    pub(crate) fn try_add(&self, bytes: u64) -> bool {
        !self.anybody_waits() && self.try_add_in_turn(bytes)
    }

    /// [`Self::try_add`] for the first of the waiting writes.
    fn try_add_in_turn(&self, bytes: u64) -> bool {
        let (of_class, total) = self.add(bytes);
        let fits = self.limits.room(of_class, total).is_none_or(|room| bytes <= room);
        if !fits {
            self.subtract(bytes);
        }
        fits
    }

    /// Counts `bytes`, even beyond the bounds. Returns the earlier dirty bytes of the class and of
    /// the disk.
    pub(crate) fn add(&self, bytes: u64) -> (u64, u64) {
        (self.of_class.fetch_add(bytes, SeqCst), self.limits.total.fetch_add(bytes, SeqCst))
    }

    /// [`Self::try_add`], or waits: then `waker` is woken in turn when there is room, and all files
    /// of the disk hand over their dirty bytes.
    pub(crate) fn add_or_wait(&self, bytes: u64, id: WaiterId, waker: KeptWaker) -> bool {
        let mut lists = self.limits.lists.lock();
        let at = lists.queue_of(&self.of_class).unwrap_or_else(|| {
            lists.queues.push((Arc::clone(&self.of_class), RoomQueue::default()));
            lists.queues.len() - 1
        });
        let queue = &mut lists.queues[at].1;
        let before = queue.add(id, bytes, waker);
        let is_turn = queue.is_turn_of(id);
        self.limits.waiting.store(lists.queues.len() as u64, SeqCst);
        // Parts that end from here on see that this write waits.
        let fits = is_turn && self.try_add_in_turn(bytes);
        let own = if fits { self.take_out(&mut lists, id) } else { None };
        let files = if fits { Vec::new() } else { std::mem::take(&mut lists.files) };
        drop(lists);
        drop((before, own));
        files.iter().filter_map(Weak::upgrade).for_each(HandOver::hand_over);
        fits
    }

    /// Whether a write waits for room on the disk. All dirty bytes are handed over then.
    pub(crate) fn anybody_waits(&self) -> bool {
        self.limits.waiting.load(SeqCst) > 0
    }

    /// Lists `file`, which has dirty bytes that are not handed over. Returns `false` if it has to
    /// hand them over at once, because a write waits for room.
    pub(crate) fn list(&self, file: Weak<dyn HandOver>) -> bool {
        let mut lists = self.limits.lists.lock();
        let nobody_waits = lists.queues.is_empty();
        if nobody_waits {
            // Dropped files are removed each time the list would grow. It grows if few are dropped.
            if lists.files.len() == lists.files.capacity() {
                lists.files.retain(|file| file.strong_count() > 0);
                let files = lists.files.len();
                lists.files.reserve(files + 1);
            }
            lists.files.push(file);
        }
        nobody_waits
    }

    /// Removes a waiter. Returns the wakers of writes that now have room, to be woken without a
    /// lock.
    #[must_use]
    pub(crate) fn leave(&self, id: WaiterId) -> Vec<KeptWaker> {
        if !self.anybody_waits() {
            return Vec::new();
        }
        let mut lists = self.limits.lists.lock();
        let waker = self.take_out(&mut lists, id);
        drop(lists);
        drop(waker);
        self.take_fitting()
    }

    fn take_out(&self, lists: &mut Lists, id: WaiterId) -> Option<KeptWaker> {
        let at = lists.queue_of(&self.of_class)?;
        let waker = lists.queues[at].1.remove(id);
        self.limits.forget_empty(lists);
        waker
    }

    /// Subtracts bytes that are no longer dirty. Returns the wakers of writes that now have room,
    /// to be woken without a lock.
    #[must_use]
    pub(crate) fn remove(&self, bytes: u64) -> Vec<KeptWaker> {
        self.subtract(bytes);
        self.take_fitting()
    }

    /// The wakers of writes that now have room, to be woken without a lock.
    #[must_use]
    pub(crate) fn take_fitting(&self) -> Vec<KeptWaker> {
        if !self.anybody_waits() {
            return Vec::new();
        }
        let mut lists = self.limits.lists.lock();
        let mut woken = Vec::new();
        for (of_class, queue) in &mut lists.queues {
            let room = self.limits.room(of_class.load(SeqCst), self.limits.total());
            woken.append(&mut queue.take_fitting(room));
        }
        self.limits.forget_empty(&mut lists);
        woken
    }

    fn subtract(&self, bytes: u64) {
        self.of_class.fetch_sub(bytes, SeqCst);
        self.limits.total.fetch_sub(bytes, SeqCst);
    }
}

impl DirtyLimits {
    /// Removes queues without waiting writes.
    fn forget_empty(&self, lists: &mut Lists) {
        lists.queues.retain(|(_, queue)| !queue.is_empty());
        self.waiting.store(lists.queues.len() as u64, SeqCst);
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
    use crate::sys::waker::wake_all;

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
    fn writes_that_wait_for_room_are_woken_when_less_is_dirty() {
        let limits = Arc::new(DirtyLimits::default());
        let class = limits.class("class");
        assert!(class.try_add(CLASS_MAX));
        let id = WaiterId::new();
        assert!(!class.add_or_wait(1, id, KeptWaker::of(Waker::noop())));
        assert_eq!(limits.waiting.load(SeqCst), 1);
        wake_all(class.remove(1));
        assert_eq!(limits.waiting.load(SeqCst), 0);
        assert!(class.add_or_wait(1, id, KeptWaker::of(Waker::noop())));
    }

    #[derive(Default)]
    struct Reported(AtomicU64);

    impl HandOver for Reported {
        fn hand_over(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn files_hand_over_their_dirt_for_who_finds_no_room_and_for_nobody_else() {
        let limits = Arc::new(DirtyLimits::default());
        let [one, two] = ["one", "two"].map(|name| limits.class(name));
        let file = Arc::new(Reported::default());
        let listed = || {
            let file: Weak<Reported> = Arc::downgrade(&file);
            one.list(file)
        };
        assert!(listed());
        let wait = |class: &ClassDirt, bytes| {
            let id = WaiterId::new();
            (class.add_or_wait(bytes, id, KeptWaker::of(Waker::noop())), id)
        };
        assert!(wait(&one, CLASS_MAX).0);
        assert_eq!(file.0.load(SeqCst), 0, "there was room");
        let (has_room, id) = wait(&one, 1);
        assert!(!has_room);
        assert_eq!(file.0.load(SeqCst), 1);
        assert!(!listed(), "it hands over at once");
        assert!(wait(&two, 1).0, "another class has room");
        assert_eq!(one.leave(id).len(), 0);
        assert!(listed());
    }

    #[test]
    fn a_leaving_waiter_makes_way_for_later_ones() {
        let limits = Arc::new(DirtyLimits::default());
        let class = limits.class("class");
        assert!(class.try_add(CLASS_MAX - 1));
        let [large, small] = [2, 1].map(|bytes| {
            let id = WaiterId::new();
            assert!(!class.add_or_wait(bytes, id, KeptWaker::of(Waker::noop())));
            id
        });
        assert_eq!(class.leave(large).len(), 1, "the small one is woken");
        assert_eq!(class.leave(small).len(), 0);
    }
}
