//! The atomics in use: the real ones, or loom's when its model checker runs
//! (`RUSTFLAGS="--cfg loom"`).

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Keeps a value on cache lines of its own (two, for the prefetcher).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
