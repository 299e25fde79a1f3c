//! What a request asks of the disk.

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Transfers bytes from the disk.
    Read,
    /// Transfers bytes to the disk.
    Write,
    /// Tells the disk that a range is no longer needed: TRIM, hole punching, the
    /// deletion of a file. Costs a small write and a little for its bytes until
    /// it is measured, and [few](crate::DISCARDS_MAX) are in the disk at once.
    Discard,
    /// Makes earlier writes durable (`fdatasync`, `fsync`); moves no bytes of
    /// its own. Costs a small write until it is measured.
    Flush,
}

impl Op {
    /// Every kind, in the order used by tables indexed with [`Op::index`].
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Discard, Self::Flush];

    /// Position of this kind in [`Op::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Discard => 2,
            Self::Flush => 3,
        }
    }

    /// Whether the request is accounted with the writes: everything but a read.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Read)
    }
}
