//! Where on a disk a request is, as far as its price depends on it.

use crate::Op;

/// What is asked of the disk, and where. Where matters on a disk whose
/// [model](crate::DiskModel::with_sequential) has another price for a request
/// that goes on where one ended; an [`Op`] alone is taken for one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What is asked.
    pub op: Op,
    /// Where it begins, if that is known.
    pub place: Option<Place>,
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
        Self { op, place: None }
    }
}

impl Op {
    /// This, at an offset in bytes: of the disk, or [of](Access::of) a file.
    pub const fn at(self, offset: u64) -> Access {
        Access { op: self, place: Some(Place { file: 0, offset }) }
    }
}

impl Access {
    /// The same in the file that has this number.
    #[must_use]
    pub const fn of(self, file: u64) -> Self {
        let Self { op, place } = self;
        match place {
            Some(Place { offset, .. }) => Self { op, place: Some(Place { file, offset }) },
            None => self,
        }
    }
}

impl Place {
    /// What comes so many bytes later.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self { file: self.file, offset: self.offset.wrapping_add(bytes) }
    }
}
