//! How a file gets its length and its blocks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a file gets its length and its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Each write makes the file longer.
    Append,
    /// It has its length before the first write, and no blocks.
    Truncate,
    /// It has its length and its blocks before the first write.
    Fallocate,
    /// A write beyond its end gives it twice its length first, and at the end it is cut.
    Double,
}

impl Strategy {
    /// All, in the order in which they are compared.
    pub const ALL: [Self; 4] = [Self::Append, Self::Truncate, Self::Fallocate, Self::Double];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Truncate => "truncate",
            Self::Fallocate => "fallocate",
            Self::Double => "double",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
