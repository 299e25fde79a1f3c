//! Writes that wait for room, in the order of arrival.

use std::collections::BTreeMap;

use crate::sys::waker::KeptWaker;
use crate::wait_list::WaiterId;

/// A waiting write.
#[derive(Debug)]
struct Waiting {
    bytes: u64,
    waker: KeptWaker,
}

/// The waiters, in the order of arrival. A woken waiter leaves the queue. If it finds no room, it
/// returns to its place. So a waiter that is woken and not polled does not block others.
///
/// Wakers run code of others, so returned wakers are woken or dropped without a lock.
#[derive(Debug, Default)]
pub(crate) struct RoomQueue(BTreeMap<WaiterId, Waiting>);

impl RoomQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether no earlier waiter waits.
    pub(crate) fn is_turn_of(&self, id: WaiterId) -> bool {
        self.0.first_key_value().is_none_or(|(first, _)| id <= *first)
    }

    /// Adds a waiter for room of `bytes`. Returns its previous waker.
    #[must_use]
    pub(crate) fn add(&mut self, id: WaiterId, bytes: u64, waker: KeptWaker) -> Option<KeptWaker> {
        self.0.insert(id, Waiting { bytes, waker }).map(|before| before.waker)
    }

    /// Removes a waiter. Returns its waker.
    #[must_use]
    pub(crate) fn remove(&mut self, id: WaiterId) -> Option<KeptWaker> {
        self.0.remove(&id).map(|waiting| waiting.waker)
    }

    /// Takes the first waiters whose bytes fit in `room` together, or all of them for `None`.
    #[must_use]
    pub(crate) fn take_fitting(&mut self, room: Option<u64>) -> Vec<KeptWaker> {
        let mut left = room;
        let mut woken = Vec::new();
        while let Some(first) = self.0.first_entry() {
            let bytes = first.get().bytes;
            left = match left.map(|left| left.checked_sub(bytes)) {
                Some(None) => break,
                Some(left) => left,
                None => None,
            };
            woken.push(first.remove().waker);
        }
        woken
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn waker() -> KeptWaker {
        KeptWaker::of(Waker::noop())
    }

    #[test]
    fn a_waiter_that_is_woken_comes_back_to_its_place() {
        let mut queue = RoomQueue::default();
        let [first, second, third] = [(); 3].map(|()| WaiterId::new());
        for (id, bytes) in [(second, 2), (third, 3), (first, 1)] {
            assert!(queue.add(id, bytes, waker()).is_none());
        }
        assert_eq!(queue.take_fitting(Some(0)).len(), 0);
        assert_eq!(
            queue.take_fitting(Some(2)).len(),
            1,
            "no place before the second, who is larger"
        );
        assert!(queue.is_turn_of(first) && queue.is_turn_of(second) && !queue.is_turn_of(third));
        assert!(queue.add(first, 1, waker()).is_none());
        assert!(!queue.is_turn_of(second));
        assert!(queue.add(first, 4, waker()).is_some(), "its waker of before");
        assert!(queue.remove(second).is_some() && queue.remove(second).is_none());
        assert_eq!(queue.take_fitting(Some(7)).len(), 2);
        assert!(queue.add(first, u64::MAX, waker()).is_none());
        assert_eq!(queue.take_fitting(None).len(), 1);
        assert!(queue.is_empty());
    }
}
