//! Whether a place in the tree is in use, by whom, and what keeps it there.

use super::error::ClassError;
use crate::sync::{AtomicU64, Ordering};

/// Encoding: One more change of hands in a place's word, above the bits of its users. The number of
/// changes is odd while the place is in use.
const CHANGE: u64 = 1 << 32;
/// Encoding: The bits of a place's word that count its users.
const USERS: u64 = CHANGE - 1;

/// A place in the tree. One word says how often it changed hands and how many
/// users keep it, so that removing it and starting to use it cannot pass each
/// other: of a class the shards that have work of it, of a group what is in it.
#[derive(Debug)]
pub(super) struct Slot {
    word: AtomicU64,
}

impl Slot {
    /// A free place.
    pub(super) fn new() -> Self {
        Self { word: AtomicU64::new(0) }
    }

    /// Whether it is in use by who was given it with this generation.
    pub(super) fn is_of(&self, generation: u16) -> bool {
        is_of(self.word.load(Ordering::Acquire), generation)
    }

    pub(super) fn users(&self) -> u64 {
        self.word.load(Ordering::Acquire) & USERS
    }

    /// One more user, who keeps it from being removed; how many there were.
    pub(super) fn enter(&self, generation: u16) -> Result<u64, ClassError> {
        let mut word = self.word.load(Ordering::Relaxed);
        while is_of(word, generation) {
            match self.exchange(word, word + 1) {
                Ok(()) => return Ok(word & USERS),
                Err(seen) => word = seen,
            }
        }
        Err(ClassError::Unknown)
    }

    /// One user less; `sole` if there can be one only, as nobody else changes
    /// the word while it is there.
    pub(super) fn leave(&self, sole: bool) {
        debug_assert!(self.users() > 0, "who leaves has entered");
        if sole {
            self.word.store(self.word.load(Ordering::Relaxed) - 1, Ordering::Release);
        } else {
            self.word.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Takes it if it is free; the generation with which it is taken.
    pub(super) fn take(&self) -> Option<u16> {
        let mut word = self.word.load(Ordering::Relaxed);
        while !in_use(word) {
            match self.exchange(word, word.wrapping_add(CHANGE)) {
                Ok(()) => return Some(generation(word.wrapping_add(CHANGE))),
                Err(seen) => word = seen,
            }
        }
        None
    }

    /// Frees it if nobody uses it.
    pub(super) fn free(&self, generation: u16) -> Result<(), ClassError> {
        let mut word = self.word.load(Ordering::Relaxed);
        while is_of(word, generation) {
            if word & USERS > 0 {
                return Err(ClassError::InUse);
            }
            match self.exchange(word, word.wrapping_add(CHANGE)) {
                Ok(()) => return Ok(()),
                Err(seen) => word = seen,
            }
        }
        Err(ClassError::Unknown)
    }

    fn exchange(&self, word: u64, new: u64) -> Result<(), u64> {
        let (done, seen) = (Ordering::AcqRel, Ordering::Relaxed);
        self.word.compare_exchange_weak(word, new, done, seen).map(|_| ())
    }
}

fn in_use(word: u64) -> bool {
    word & CHANGE != 0
}

fn generation(word: u64) -> u16 {
    (word >> (CHANGE.trailing_zeros() + 1)) as u16
}

fn is_of(word: u64, by: u16) -> bool {
    in_use(word) && generation(word) == by
}
