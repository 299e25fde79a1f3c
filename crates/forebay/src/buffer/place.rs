//! A place for one value of any type. A small value needs no allocation.

use std::any::TypeId;
use std::mem::{self, MaybeUninit};

/// The size of a place in words. It is enough for a slice of a slice of a `Vec`, and for most
/// handles of pools.
const WORDS: usize = 8;

/// Holds one value or nothing. It is `Send`, because every value in it is. A shared reference gives
/// no access to the value.
pub(super) struct Place {
    bytes: MaybeUninit<[usize; WORDS]>,
    /// The type of the value in `bytes`.
    holds: Option<Kind>,
}

#[derive(Clone, Copy)]
struct Kind {
    id: TypeId,
    /// [`drop_at`] for the type `id`, with its safety contract.
    drop: unsafe fn(*mut u8),
}

/// Drops the `T` at `at`.
///
/// # Safety
///
/// There is a `T` at `at`, and nobody uses it afterwards.
unsafe fn drop_at<T>(at: *mut u8) {
    // SAFETY: as the caller guarantees.
    unsafe { at.cast::<T>().drop_in_place() };
}

/// Whether a `T` fits in a place without an allocation.
const fn fits<T>() -> bool {
    size_of::<T>() <= size_of::<[usize; WORDS]>() && align_of::<T>() <= align_of::<usize>()
}

impl Place {
    pub(super) const fn empty() -> Self {
        Self { bytes: MaybeUninit::uninit(), holds: None }
    }

    /// Puts `value` into the place, where it stays until it is taken.
    pub(super) fn put<T: Send + 'static>(&mut self, value: T) -> &mut T {
        if fits::<T>() {
            return self.put_here(value);
        }
        let boxed: &mut Box<T> = self.put_here(Box::new(value));
        boxed
    }

    fn put_here<T: Send + 'static>(&mut self, value: T) -> &mut T {
        self.clear();
        let at = self.bytes.as_mut_ptr().cast::<T>();
        // SAFETY: a `T` fits there, and the place is empty.
        unsafe { at.write(value) };
        self.holds = Some(Kind { id: TypeId::of::<T>(), drop: drop_at::<T> });
        // SAFETY: the value was just written, and the reference borrows `self`.
        unsafe { &mut *at }
    }

    /// The value, if it is a `T`.
    pub(super) fn get_mut<T: Send + 'static>(&mut self) -> Option<&mut T> {
        if fits::<T>() { self.get_here() } else { self.get_here::<Box<T>>().map(AsMut::as_mut) }
    }

    fn get_here<T: 'static>(&mut self) -> Option<&mut T> {
        let is_it = self.holds.is_some_and(|kind| kind.id == TypeId::of::<T>());
        // SAFETY: the value is a `T`, and the reference borrows `self`.
        is_it.then(|| unsafe { &mut *self.bytes.as_mut_ptr().cast::<T>() })
    }

    /// Takes the value out, if it is a `T`.
    pub(super) fn take<T: Send + 'static>(&mut self) -> Option<T> {
        if fits::<T>() { self.take_here() } else { self.take_here::<Box<T>>().map(|value| *value) }
    }

    fn take_here<T: 'static>(&mut self) -> Option<T> {
        let at: *const T = self.get_here()?;
        self.holds = None;
        // SAFETY: the value is a `T`, and nobody else takes or drops it, because `holds` is `None`.
        Some(unsafe { at.read() })
    }

    fn clear(&mut self) {
        if let Some(kind) = mem::take(&mut self.holds) {
            // SAFETY: the value is of this kind, and `holds` no longer names it.
            unsafe { (kind.drop)(self.bytes.as_mut_ptr().cast()) };
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_value_of_any_size_comes_back_and_only_as_what_it_is() {
        fn round_trip<T: Clone + PartialEq + std::fmt::Debug + Send + 'static>(value: T) {
            let mut place = Place::empty();
            assert_eq!(*place.put(value.clone()), value);
            assert!(place.take::<Vec<u16>>().is_none());
            assert!(place.get_mut::<[u16; 3]>().is_none());
            assert_eq!(place.get_mut::<T>(), Some(&mut value.clone()));
            assert_eq!(place.take::<T>(), Some(value));
            assert!(place.take::<T>().is_none());
        }
        round_trip(());
        round_trip(vec![7u8; 100]);
        round_trip([1usize; WORDS]);
        round_trip([1usize; WORDS + 1]);
        round_trip(1u128);
        round_trip(vec![1u8].into_boxed_slice());
    }

    #[test]
    fn an_operation_that_is_not_accepted_is_dropped_once() {
        let counted = Arc::new(());
        let mut place = Place::empty();
        place.put(Arc::clone(&counted));
        place.put((Arc::clone(&counted), [0usize; 2 * WORDS]));
        assert_eq!(Arc::strong_count(&counted), 2, "another one in its place");
        drop(place.take::<(Arc<()>, [usize; 2 * WORDS])>());
        assert_eq!(Arc::strong_count(&counted), 1);
        place.put(Arc::clone(&counted));
        drop(place);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
