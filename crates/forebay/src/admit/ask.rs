//! Requests of a class to the queue of permits.

use std::sync::Arc;

use forebay_core::{Access, Op};

use crate::permit::{AdmitError, DiskGroup, NoGrant, PermitQueue, PermitRequest};
use crate::{Class, Scheduler};

impl Class {
    /// Checks a request. Returns the queue and the request to it.
    #[inline(always)]
    pub(super) fn ask<'a>(
        &self,
        group: &'a Arc<DiskGroup>,
        access: Access,
        len: u64,
    ) -> Result<(&'a PermitQueue, PermitRequest), AdmitError> {
        check(access.op, len)?;
        self.disk.process.check()?;
        let class = self.id_on(group).ok_or_else(|| AdmitError::removed(self.name()))?;
        let permits =
            group.permits().map_err(|full| AdmitError::no_shard(full, &self.disk.name))?;
        Ok((permits, PermitRequest { class, access, len, holder: self.holder }))
    }

    /// The class of untagged work, on the same disk.
    pub(super) fn default_class(&self) -> Self {
        let untagged = Scheduler::of(&self.scheduler).default_class();
        Self { disk: Arc::clone(&self.disk), holder: self.holder, ..untagged }
    }

    #[cold]
    pub(super) fn explain(&self, error: NoGrant) -> AdmitError {
        AdmitError::new(error, self.name(), &self.disk.name)
    }
}

/// Checks that `len` is valid for `op`.
pub(super) fn check(op: Op, len: u64) -> Result<(), AdmitError> {
    if len == 0 && op != Op::Flush {
        return Err(AdmitError::ZeroLength { op });
    }
    if i64::try_from(len).is_err() {
        return Err(AdmitError::TooLong { op, len });
    }
    Ok(())
}
