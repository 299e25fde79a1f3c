//! Requests to a queue of permits, and the reasons why one is not granted.

use std::io;

use forebay_core::{Access, ClassId, EnqueueError, Op};

/// Why there is no grant.
pub(crate) enum NoGrant {
    Refused(EnqueueError),
    TimedOut,
    Timer(io::Error),
}

/// A request for a permit.
#[derive(Clone, Copy)]
pub(crate) struct PermitRequest {
    pub(crate) class: ClassId,
    pub(crate) access: Access,
    pub(crate) len: u64,
    /// Whether the caller holds a permit, so that the request is nested.
    pub(crate) holder: bool,
}

/// Several requests for one permit.
#[derive(Clone, Copy)]
pub(crate) struct BatchRequest<'a> {
    pub(crate) class: ClassId,
    pub(crate) requests: &'a [(Op, u64)],
    pub(crate) holder: bool,
}
