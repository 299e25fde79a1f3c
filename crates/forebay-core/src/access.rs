//! What a request asks of the disk: an operation and its position.

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Transfers bytes from the disk.
    Read,
    /// Transfers bytes to the disk.
    Write,
    /// Tells the disk that a range is no longer needed: TRIM, hole punching, the deletion of a file.
    /// Until it is measured, it costs a small write and a little for its bytes.
    /// [Few](crate::DISCARDS_MAX) are in the disk at once.
    Discard,
    /// Makes earlier writes durable (`fdatasync`, `fsync`); it transfers no bytes. Costs a small write
    /// until it is measured.
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

    /// Whether the request counts as a write: everything except a read does.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// An operation, and where it begins. The position matters if the
/// [model](crate::DiskModel::with_sequential) has another price for sequential requests, which begin
/// where another one ended. An [`Op`] alone counts as not sequential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The operation.
    pub op: Op,
    /// Where it begins; `None` if that is not known.
    pub place: Option<Place>,
    /// The number of commands that a discard sends to the disk, from 1: one for each extent that is
    /// deleted. Zero counts as one. Other operations ignore it.
    pub commands: u32,
}

/// The position at which a request begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of the file, which the caller chooses and all its users share; zero for the disk
    /// itself.
    pub file: u64,
    /// The offset from the start of the file or disk, in bytes.
    pub offset: u64,
}

impl From<Op> for Access {
    fn from(op: Op) -> Self {
        Self { op, place: None, commands: 1 }
    }
}

impl Op {
    /// This operation at an offset in bytes: of the disk, or [of](Access::of) a file.
    pub const fn at(self, offset: u64) -> Access {
        Access { op: self, place: Some(Place { file: 0, offset }), commands: 1 }
    }

    /// This operation with a number of commands. A discard of a file, or of a part of one, has one for
    /// each extent. See [`DiskModel::discard_cost`](crate::DiskModel::discard_cost).
    pub const fn commands(self, commands: u32) -> Access {
        Access { op: self, place: None, commands }
    }
}

impl Access {
    /// The same access in the file with this number. No change if the position is not known.
    #[must_use]
    pub const fn of(self, file: u64) -> Self {
        match self.place {
            Some(Place { offset, .. }) => Self { place: Some(Place { file, offset }), ..self },
            None => self,
        }
    }

    /// The part that begins `at` bytes later and has `len` of `whole` bytes. It has its proportion of
    /// the commands, rounded up, and at least one.
    #[must_use]
    pub fn part(self, at: u64, len: u64, whole: u64) -> Self {
        let place = self.place.map(|place| place.plus(at));
        if self.commands <= 1 {
            return Self { place, ..self };
        }
        let due = u128::from(self.commands) * u128::from(len);
        let due = due.div_ceil(u128::from(whole.max(1)));
        let commands = u32::try_from(due).unwrap_or(u32::MAX).clamp(1, self.commands);
        Self { place, commands, ..self }
    }
}

impl Place {
    /// The position `bytes` bytes later.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self { file: self.file, offset: self.offset.wrapping_add(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_discard_has_the_commands_that_are_due_to_it() {
        let whole = Op::Discard.commands(10);
        for (len, commands) in [(1000, 10), (500, 5), (1, 1), (901, 10), (0, 1), (u64::MAX, 10)] {
            assert_eq!(whole.part(7, len, 1000).commands, commands, "{len}");
        }
        let place = Some(Place { file: 3, offset: 40 });
        assert_eq!(Op::Read.at(10).of(3).part(30, 10, 40), Access { place, ..Op::Read.into() });
        assert_eq!(Op::Discard.commands(0).part(0, 1, 0).commands, 0);
    }
}
