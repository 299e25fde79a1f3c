//! The atomic types: those of `core`, or those of loom when its model checker runs (`RUSTFLAGS="--cfg
//! loom"`).
//!
//! Decision: `docs/decisions/0025-no-locks.md`.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Loads a number without ordering: no other memory depends on it.
pub(crate) fn get(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

/// Stores such a number.
pub(crate) fn set(number: &AtomicU64, value: u64) {
    number.store(value, Ordering::Relaxed);
}

/// Adds to such a number, unless `amount` is zero: a write would take the cache line from other shards.
pub(crate) fn add(number: &AtomicU64, amount: u64) {
    if amount > 0 {
        number.fetch_add(amount, Ordering::Relaxed);
    }
}

/// Keeps a value on cache lines of its own (two, because of the prefetcher).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// A number shared by the shards of a group. If the group is made for a single shard, no other thread
/// changes it. Plain loads and stores then replace locked instructions.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    value: AtomicU64,
    sole: bool,
}

impl Tally {
    /// Creates a zero; `sole` if one thread at a time changes it.
    pub(crate) fn new(sole: bool) -> Self {
        Self { value: AtomicU64::new(0), sole }
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        self.value.load(order)
    }

    /// Adds `amount`, wrapping, and returns the value before.
    pub(crate) fn fetch_add(&self, amount: u64, order: Ordering) -> u64 {
        if self.sole {
            self.replace(|value| value.wrapping_add(amount))
        } else {
            self.value.fetch_add(amount, order)
        }
    }

    /// Subtracts `amount`, wrapping, and returns the value before.
    pub(crate) fn fetch_sub(&self, amount: u64, order: Ordering) -> u64 {
        if self.sole {
            self.replace(|value| value.wrapping_sub(amount))
        } else {
            self.value.fetch_sub(amount, order)
        }
    }

    /// Replaces the value by the result of `change`, and returns the value before. If `change` returns
    /// `None`, the value stays, and the result is `None`.
    #[inline]
    pub(crate) fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        if !self.sole {
            return self.value.fetch_update(Ordering::AcqRel, Ordering::Relaxed, change).ok();
        }
        let before = self.load(Ordering::Relaxed);
        self.value.store(change(before)?, Ordering::Relaxed);
        Some(before)
    }

    fn replace(&self, change: impl FnOnce(u64) -> u64) -> u64 {
        let before = self.value.load(Ordering::Relaxed);
        self.value.store(change(before), Ordering::Relaxed);
        before
    }
}
