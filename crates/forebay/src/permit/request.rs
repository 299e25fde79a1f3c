//! What is asked of a queue of permits, and why it may say no.

use std::io;

use forebay_core::{Access, ClassId, EnqueueError, Op};

/// Why there is no grant.
pub(crate) enum NoGrant {
    Refused(EnqueueError),
    TimedOut,
    Timer(io::Error),
}

/// What a permit is asked for.
#[derive(Clone, Copy)]
pub(crate) struct PermitRequest {
    pub(crate) class: ClassId,
    pub(crate) access: Access,
    pub(crate) len: u64,
    /// The caller holds a permit that others may wait for.
    pub(crate) holder: bool,
}

/// What permits are asked for at once.
#[derive(Clone, Copy)]
pub(crate) struct BatchRequest<'a> {
    pub(crate) class: ClassId,
    pub(crate) requests: &'a [(Op, u64)],
    pub(crate) holder: bool,
}
