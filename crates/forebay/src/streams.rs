//! Where the directions of a disk have a budget each.

use std::sync::Arc;

use forebay_core::{ClassId, Op};

use crate::Class;
use crate::disk::DiskGroup;

/// Most streams of a disk.
pub(crate) const STREAMS_MAX: usize = 2;

/// The I/O groups that the requests of a disk are divided among: one for all,
/// or on a duplex disk one for reads and one for all others. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    reads: Arc<DiskGroup>,
    /// Where they are not with the reads.
    others: Option<Arc<DiskGroup>>,
}

impl Streams {
    pub(crate) const fn new(reads: Arc<DiskGroup>, others: Option<Arc<DiskGroup>>) -> Self {
        Self { reads, others }
    }

    pub(crate) const fn is_duplex(&self) -> bool {
        self.others.is_some()
    }

    /// The number of the stream that such requests are in.
    pub(crate) fn number_of(&self, op: Op) -> usize {
        usize::from(self.is_duplex() && op != Op::Read)
    }

    /// The I/O group that such requests are in.
    pub(crate) fn of(&self, op: Op) -> &Arc<DiskGroup> {
        match &self.others {
            Some(others) if op != Op::Read => others,
            _ => &self.reads,
        }
    }

    /// All of them, by their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<DiskGroup>> {
        std::iter::once(&self.reads).chain(&self.others)
    }
}

/// A class as one of the streams knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamClass {
    pub(crate) stream: usize,
    pub(crate) id: ClassId,
    /// Whoever asks holds a permit.
    pub(crate) holder: bool,
}

impl StreamClass {
    /// `class` where such requests go; `None` once it is removed.
    pub(crate) fn of(class: &Class, streams: &Streams, op: Op) -> Option<Self> {
        let id = class.id_on(streams.of(op))?;
        let holder = class.holder;
        Some(Self { stream: streams.number_of(op), id, holder })
    }

    /// A small number, unique among the classes of a disk: for tables.
    pub(crate) fn index(self) -> usize {
        self.id.index() * STREAMS_MAX + self.stream
    }
}
