//! The names of entries of a trash.

use std::ffi::{OsStr, OsString};

/// The prefix of the names of all entries. Other files in a trash are not touched.
const PREFIX: &str = "forebay-";
/// The number of hexadecimal digits of an owner, and the most of an entry's number.
const DIGITS: usize = 16;
/// The bit of an owner that marks entries which their deleter could not delete and left to others.
const GIVEN_UP: u64 = 1 << 63;

/// The name of an entry: the number of the deleter that moved it there, and a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct EntryName {
    pub(super) owner: u64,
    pub(super) number: u64,
}

/// Unique names for the entries of one deleter.
pub(super) struct EntryNames {
    pub(super) owner: u64,
    next: u64,
}

impl EntryName {
    /// Parses a name; `None` if it is not that of an entry.
    pub(super) fn parse(name: &OsStr) -> Option<Self> {
        let rest = name.to_str()?.strip_prefix(PREFIX)?;
        let (owner, number) = rest.split_once('-')?;
        let of_hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let parsed = Self { owner: of_hex(owner)?, number: of_hex(number)? };
        // Only the exact form that `to_os` writes is accepted.
        (parsed.to_os() == name && owner.len() == DIGITS).then_some(parsed)
    }

    pub(super) fn to_os(self) -> OsString {
        format!("{PREFIX}{:016x}-{:x}", self.owner, self.number).into()
    }

    /// The name of the entry after its deleter has left it to others.
    pub(super) fn given_up(self) -> Self {
        Self { owner: self.owner | GIVEN_UP, ..self }
    }
}

impl EntryNames {
    pub(super) const fn new(owner: u64) -> Self {
        Self { owner: owner & !GIVEN_UP, next: 0 }
    }

    pub(super) fn next(&mut self) -> EntryName {
        self.next += 1;
        EntryName { owner: self.owner, number: self.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_known_by_their_names_alone() {
        let mut names = EntryNames::new(0xabc);
        let one = names.next();
        assert_eq!(one.to_os(), "forebay-0000000000000abc-1");
        assert_ne!(one, names.next());
        assert_eq!(EntryName::parse(&one.to_os()), Some(one));
        assert_eq!(EntryName::parse(&one.given_up().to_os()), Some(one.given_up()));
        for other in [
            "",
            "forebay-",
            "forebay-abc-1",
            "forebay-0000000000000abc-",
            "forebay-0000000000000abc",
            "forebay-0000000000000ABC-1",
            "forebay-0000000000000abc-1x",
            "forebay-0000000000000abc-01",
            "xforebay-0000000000000abc-1",
            "forebay-+000000000000abc-1",
            "forebay-0000000000000abc-1-2",
        ] {
            assert_eq!(EntryName::parse(OsStr::new(other)), None, "{other}");
        }
    }
}
