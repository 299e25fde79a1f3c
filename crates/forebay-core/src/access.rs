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

/// What is asked of the disk, and where. Where matters on a disk whose
/// [model](crate::DiskModel::with_sequential) has another price for a request
/// that goes on where one ended; an [`Op`] alone is taken for one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What is asked.
    pub op: Op,
    /// Where it begins, if that is known.
    pub place: Option<Place>,
    /// Of a discard, how many the disk gets for it, from 1: one for each extent of what is
    /// deleted. Zero counts as one, and other requests heed it not.
    pub commands: u32,
}

/// Where a request begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// A number of the caller's for the file, the same for all that use it; zero
    /// for the disk itself.
    pub file: u64,
    /// Bytes from the beginning of that.
    pub offset: u64,
}

impl From<Op> for Access {
    fn from(op: Op) -> Self {
        Self { op, place: None, commands: 1 }
    }
}

impl Op {
    /// This, at an offset in bytes: of the disk, or [of](Access::of) a file.
    pub const fn at(self, offset: u64) -> Access {
        Access { op: self, place: Some(Place { file: 0, offset }), commands: 1 }
    }

    /// This, for which the disk gets this many commands: a discard of a file, or of a part of one,
    /// has one for each extent. See [`DiskModel::discard_cost`](crate::DiskModel::discard_cost).
    pub const fn commands(self, commands: u32) -> Access {
        Access { op: self, place: None, commands }
    }
}

impl Access {
    /// The same in the file that has this number.
    #[must_use]
    pub const fn of(self, file: u64) -> Self {
        match self.place {
            Some(Place { offset, .. }) => Self { place: Some(Place { file, offset }), ..self },
            None => self,
        }
    }

    /// The part of this that begins `at` bytes later and is `len` of `whole` bytes long: its
    /// commands are as many as are due to its bytes, at least one.
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
    /// What comes this many bytes later.
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
