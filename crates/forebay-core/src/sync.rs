//! The atomics in use: the real ones, or loom's when its model checker runs
//! (`RUSTFLAGS="--cfg loom"`).
//!
//! Decision: `docs/decisions/0025-no-locks.md`.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A number that is read and written alone: no order with others.
pub(crate) fn get(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

/// Stores such a number.
pub(crate) fn set(number: &AtomicU64, value: u64) {
    number.store(value, Ordering::Relaxed);
}

/// Adds to such a number, unless that changes nothing: shards share its cache line.
pub(crate) fn add(number: &AtomicU64, amount: u64) {
    if amount > 0 {
        number.fetch_add(amount, Ordering::Relaxed);
    }
}

/// Keeps a value on cache lines of its own (two, for the prefetcher).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// A number shared by the shards of a group. Where the group has a single
/// shard nobody else changes it, and plain loads and stores do what would
/// cost a locked instruction each.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    value: AtomicU64,
    sole: bool,
}

impl Tally {
    /// Zero; `sole` if one thread at a time changes it.
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

    /// Takes `amount` away, wrapping, and returns the value before.
    pub(crate) fn fetch_sub(&self, amount: u64, order: Ordering) -> u64 {
        if self.sole {
            self.replace(|value| value.wrapping_sub(amount))
        } else {
            self.value.fetch_sub(amount, order)
        }
    }

    /// Stores what `change` makes of the value, and returns what it was; `None` where it makes
    /// nothing of it.
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
