//! The parts of a file that ask for permits, and their end when the file is abandoned.

use std::sync::{Arc, Weak};

use crate::sys::lock::Lock;

/// A part that asks for a permit.
pub(super) trait ActivePart: Send + Sync {
    /// It asks no more, and ends. Nothing if it has the permit.
    fn cancel(&self);

    /// It asks again, in the class that the file has now. Nothing if it has the permit.
    fn restart(self: Arc<Self>);
}

/// What becomes of that which is dirty and not written back by the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abandoned {
    /// The kernel writes it.
    ToKernel,
    /// Nobody does: the file is deleted.
    Deleted,
}

/// Those that ask now.
#[derive(Default)]
pub(super) struct ActiveParts(Lock<State>);

#[derive(Default)]
struct State {
    parts: Vec<Weak<dyn ActivePart>>,
    abandoned: Option<Abandoned>,
}

impl ActiveParts {
    /// One more is about to ask; whether it may.
    pub(super) fn add(&self, part: &Arc<impl ActivePart + 'static>) -> bool {
        let part: Arc<dyn ActivePart> = Arc::clone(part) as _;
        let mut state = self.0.lock();
        state.parts.retain(|other| other.strong_count() > 0);
        state.parts.push(Arc::downgrade(&part));
        state.abandoned.is_none()
    }

    /// None may ask any more; returns those that did.
    pub(super) fn abandon(&self, abandoned: Abandoned) -> Vec<Arc<dyn ActivePart>> {
        let mut state = self.0.lock();
        state.abandoned.get_or_insert(abandoned);
        state.parts.iter().filter_map(Weak::upgrade).collect()
    }

    /// Those that ask, or have their permit.
    pub(super) fn all(&self) -> Vec<Arc<dyn ActivePart>> {
        self.0.lock().parts.iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn abandoned(&self) -> Option<Abandoned> {
        self.0.lock().abandoned
    }
}
