//! The handles of a process: numbers that stand for objects in a table.
//!
//! A handle has four parts: the kind of its object, a number of the process, the generation of its
//! slot, and the slot's index. A reused slot has another generation, so a freed handle no longer fits.
//! Each process begins at a random generation. A forked child has an empty table, and never uses its
//! parent's, whose locks may stay locked for ever.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
#[cfg(not(test))]
use std::sync::{Mutex, MutexGuard};
use std::sync::{OnceLock, PoisonError};

// Unit tests run every interleaving of a few threads.
#[cfg(test)]
use loom::sync::{Mutex, MutexGuard};

use crate::code::{FOREBAY_E_BUSY, FOREBAY_E_HANDLE};
use crate::failure::Failure;

const INDEX_BITS: u32 = 22;
const GENERATION_BITS: u32 = 30;
const PROCESS_BITS: u32 = 8;
const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;
/// The distance between the first generations of neighbouring slots: an odd number without a pattern.
const GENERATION_STEP: u32 = 0x9e37_79b1;
/// The number of slots that are allocated at a time. They are reused in turn, so that generations repeat
/// less often.
const CHUNK: usize = if cfg!(test) { 2 } else { 1024 };
const CHUNKS_MAX: usize = if cfg!(test) { 16 } else { (1 << INDEX_BITS) / CHUNK };

/// An object in a table.
pub(crate) trait Kept {
    /// Its kind, 1 to 15.
    fn kind(&self) -> u8;
    /// The name of a kind, for messages.
    fn name_of(kind: u8) -> &'static str;
}

/// A table of objects.
pub(crate) struct Table<T> {
    process: u32,
    first_generation: u32,
    /// Too many for the stack of a thread.
    chunks: Box<[OnceLock<Chunk<T>>]>,
    free: Mutex<Free>,
}

type Chunk<T> = Box<[Mutex<Place<T>>]>;

struct Place<T> {
    generation: u32,
    value: Option<T>,
}

#[derive(Default)]
struct Free {
    places: VecDeque<u32>,
    chunks: usize,
}

#[derive(Clone, Copy)]
struct Parts {
    kind: u8,
    process: u32,
    generation: u32,
    index: u32,
}

impl Parts {
    fn handle(self) -> u64 {
        let Self { kind, process, generation, index } = self;
        let head = (u64::from(kind) << PROCESS_BITS) | u64::from(process);
        (((head << GENERATION_BITS) | u64::from(generation)) << INDEX_BITS) | u64::from(index)
    }

    const fn of(handle: u64) -> Self {
        let above = handle >> INDEX_BITS;
        let head = above >> GENERATION_BITS;
        Self {
            kind: (head >> PROCESS_BITS) as u8,
            process: (head & 0xff) as u32,
            generation: above as u32 & GENERATION_MASK,
            index: (handle as u32) & ((1 << INDEX_BITS) - 1),
        }
    }
}

impl<T: Kept> Table<T> {
    /// An empty table for a process that is `process` forks after the first.
    pub(crate) fn new(process: u32) -> Self {
        // Handles of another process fit only if two random numbers are equal.
        let random = RandomState::new().hash_one(std::process::id()) as u32;
        Self {
            process: process & 0xff,
            first_generation: random & GENERATION_MASK,
            chunks: (0..CHUNKS_MAX).map(|_| OnceLock::new()).collect(),
            free: Mutex::new(Free::default()),
        }
    }

    /// A handle for `value`.
    pub(crate) fn insert(&self, value: T) -> Result<u64, Failure> {
        let index = self.take_place().ok_or_else(|| {
            let text = format!("all {} handles are in use: free some", CHUNK * CHUNKS_MAX);
            Failure::new(FOREBAY_E_BUSY, text)
        })?;
        let kind = value.kind();
        let mut place = lock(self.place(index).ok_or_else(|| self.explain(0))?);
        place.value = Some(value);
        let generation = place.generation;
        Ok(Parts { kind, process: self.process, generation, index }.handle())
    }

    /// Applies `look` to the object of `handle`.
    pub(crate) fn get<R>(
        &self,
        handle: u64,
        look: impl FnOnce(&T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let place = self.find(handle)?;
        look(place.value.as_ref().ok_or_else(|| self.explain(handle))?)
    }

    /// Takes out the object of `handle`, which is invalid from then on.
    pub(crate) fn remove(
        &self,
        handle: u64,
        is_wanted: impl FnOnce(&T) -> Result<(), Failure>,
    ) -> Result<T, Failure> {
        let mut place = self.find(handle)?;
        let value = place.value.take().ok_or_else(|| self.explain(handle))?;
        if let Err(other) = is_wanted(&value) {
            place.value = Some(value);
            return Err(other);
        }
        place.generation = (place.generation + 1) & GENERATION_MASK;
        drop(place);
        lock(&self.free).places.push_back(Parts::of(handle).index);
        Ok(value)
    }

    /// The slot of `handle`, locked, if the handle is valid.
    fn find(&self, handle: u64) -> Result<MutexGuard<'_, Place<T>>, Failure> {
        let parts = Parts::of(handle);
        let place = self.place(parts.index).map(lock);
        let fits = |place: &MutexGuard<'_, Place<T>>| {
            let has_kind = place.value.as_ref().is_some_and(|value| value.kind() == parts.kind);
            has_kind && place.generation == parts.generation && parts.process == self.process
        };
        place.filter(fits).ok_or_else(|| self.explain(handle))
    }

    fn explain(&self, handle: u64) -> Failure {
        let parts = Parts::of(handle);
        if parts.process != self.process && parts.kind > 0 {
            let text = format!(
                "the handle {handle:#x} of a {} is of another process: a forked child makes its own",
                T::name_of(parts.kind)
            );
            return Failure::new(FOREBAY_E_HANDLE, text);
        }
        let text = match handle {
            0 => String::from("the handle is 0: it was never set"),
            _ => format!(
                "the handle {handle:#x} of a {} was freed, or was never valid",
                T::name_of(parts.kind)
            ),
        };
        Failure::new(FOREBAY_E_HANDLE, text)
    }

    fn place(&self, index: u32) -> Option<&Mutex<Place<T>>> {
        let (chunk, place) = (index as usize / CHUNK, index as usize % CHUNK);
        self.chunks.get(chunk)?.get()?.get(place)
    }

    fn take_place(&self) -> Option<u32> {
        let mut free = lock(&self.free);
        if free.places.is_empty() {
            let first = free.chunks * CHUNK;
            let indices = (first..first + CHUNK).filter_map(|index| u32::try_from(index).ok());
            let made = indices.clone().map(|index| {
                // It is far from the generations of other slots, so that a guessed handle fits none.
                let apart = self.first_generation.wrapping_add(index.wrapping_mul(GENERATION_STEP));
                Mutex::new(Place { generation: apart & GENERATION_MASK, value: None })
            });
            self.chunks.get(free.chunks)?.set(made.collect()).ok()?;
            free.chunks += 1;
            free.places.extend(indices);
        }
        free.places.pop_front()
    }
}

/// Locks a mutex. A panic leaves the tables consistent, so poisoning is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loom::{model, thread};

    use super::*;

    impl Kept for u8 {
        fn kind(&self) -> u8 {
            *self
        }

        fn name_of(_: u8) -> &'static str {
            "number"
        }
    }

    fn value(table: &Table<u8>, handle: u64) -> Option<u8> {
        table.get(handle, |value| Ok(*value)).ok()
    }

    /// Whether `handle` was valid; it is removed.
    fn removes(table: &Table<u8>, handle: u64) -> bool {
        table.remove(handle, |_| Ok(())).is_ok()
    }

    #[test]
    fn a_handle_stands_for_its_value_until_it_is_removed() {
        model(|| {
            let table = Table::new(0);
            let handles: Vec<_> = (1..=15).map(|n| table.insert(n).unwrap()).collect();
            for (n, handle) in handles.iter().enumerate() {
                assert_eq!(value(&table, *handle), Some(n as u8 + 1));
            }
            for handle in &handles {
                assert!(removes(&table, *handle));
                assert!(!removes(&table, *handle));
            }
            // Slots are reused, handles are not.
            let again: Vec<_> = handles.iter().map(|_| table.insert(1).unwrap()).collect();
            assert!(handles.iter().all(|handle| value(&table, *handle).is_none()));
            assert!(again.iter().all(|handle| value(&table, *handle) == Some(1)));
        });
    }

    #[test]
    fn no_other_number_stands_for_a_value() {
        model(|| {
            let table = Table::new(3);
            let handle = table.insert(7).unwrap();
            for bit in 0..64 {
                assert_eq!(value(&table, handle ^ (1 << bit)), None, "bit {bit}");
            }
            for other in [0, u64::MAX, 1, 1 << 60] {
                assert_eq!(value(&table, other), None, "{other:#x}");
            }
            assert_eq!(value(&Table::new(4), handle), None);
        });
    }

    #[test]
    fn a_value_that_is_refused_by_remove_stays() {
        model(|| {
            let table = Table::new(0);
            let handle = table.insert(7).unwrap();
            assert!(table.remove(handle, |_| Err(Failure::invalid("no"))).is_err());
            assert_eq!(value(&table, handle), Some(7));
        });
    }

    #[test]
    fn only_one_of_two_threads_removes_a_handle() {
        model(|| {
            let table = Arc::new(Table::new(0));
            let handle = table.insert(7).unwrap();
            let remover = {
                let table = Arc::clone(&table);
                thread::spawn(move || removes(&table, handle))
            };
            let own = removes(&table, handle);
            assert!(own ^ remover.join().unwrap());
        });
    }

    #[test]
    fn an_old_handle_does_not_see_a_reused_slot() {
        model(|| {
            let table = Arc::new(Table::new(0));
            let handle = table.insert(7).unwrap();
            let user = {
                let table = Arc::clone(&table);
                thread::spawn(move || (value(&table, handle), removes(&table, handle)))
            };
            let was_here = removes(&table, handle);
            let others = [9, 7].map(|other| table.insert(other).unwrap());
            let (seen, removed) = user.join().unwrap();
            assert!(matches!(seen, None | Some(7)));
            assert!(was_here ^ removed);
            assert_eq!(others.map(|other| value(&table, other)), [Some(9), Some(7)]);
        });
    }

    #[test]
    fn handles_that_threads_make_at_the_same_time_differ() {
        model(|| {
            let table = Arc::new(Table::new(0));
            // One slot of the first chunk is left.
            table.insert(1).unwrap();
            let maker = {
                let table = Arc::clone(&table);
                thread::spawn(move || table.insert(2).unwrap())
            };
            let own = table.insert(3).unwrap();
            let other = maker.join().unwrap();
            assert_eq!((value(&table, other), value(&table, own)), (Some(2), Some(3)));
        });
    }
}
