//! The active parts of a file, and their end when the file is abandoned.

use std::sync::{Arc, Weak};

use crate::sys::lock::Lock;

/// A part that asks for a permit or holds one.
pub(super) trait ActivePart: Send + Sync {
    /// Cancels the request for a permit, and ends the part. It has no effect if the permit is
    /// granted.
    fn cancel(&self);

    /// Repeats the request, in the present class of the file. It has no effect if the permit is
    /// granted.
    fn restart(self: Arc<Self>);
}

/// What happens to dirty bytes that the library does not write back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abandoned {
    /// The kernel writes them.
    ToKernel,
    /// Nobody writes them, because the file is deleted.
    Deleted,
}

/// The present active parts.
#[derive(Default)]
pub(super) struct ActiveParts(Lock<State>);

#[derive(Default)]
struct State {
    parts: Vec<Weak<dyn ActivePart>>,
    abandoned: Option<Abandoned>,
}

impl ActiveParts {
    /// Adds a part that is about to ask. Returns whether it may ask.
    pub(super) fn add(&self, part: &Arc<impl ActivePart + 'static>) -> bool {
        let part: Arc<dyn ActivePart> = Arc::clone(part) as _;
        let mut state = self.0.lock();
        state.parts.retain(|other| other.strong_count() > 0);
        state.parts.push(Arc::downgrade(&part));
        state.abandoned.is_none()
    }

    /// Lets no more parts ask. Returns the active parts.
    pub(super) fn abandon(&self, abandoned: Abandoned) -> Vec<Arc<dyn ActivePart>> {
        let mut state = self.0.lock();
        state.abandoned.get_or_insert(abandoned);
        state.parts.iter().filter_map(Weak::upgrade).collect()
    }

    /// All active parts.
    pub(super) fn all(&self) -> Vec<Arc<dyn ActivePart>> {
        self.0.lock().parts.iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn abandoned(&self) -> Option<Abandoned> {
        self.0.lock().abandoned
    }
}
