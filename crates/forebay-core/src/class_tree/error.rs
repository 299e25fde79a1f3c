//! Why a class could not be made, changed or removed.

use core::fmt;

use super::id::{CLASS_GROUP_DEPTH_MAX, CLASS_GROUPS_MAX, CLASSES_MAX, SHARES_MAX};
use crate::limit::Limits;

/// Why a class or group of classes could not be made, changed or removed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ClassError {
    /// Shares outside `1..=SHARES_MAX`.
    Shares(u32),
    /// A limit of zero, or above what any disk does.
    Limits(Limits),
    /// All [`CLASSES_MAX`] classes or [`CLASS_GROUPS_MAX`] groups are in use.
    Full,
    /// The class or group was removed earlier.
    Unknown,
    /// Groups would nest deeper than [`CLASS_GROUP_DEPTH_MAX`].
    TooDeep,
    /// It still has work queued, or classes in it.
    InUse,
}

crate::error_text::debug_as_display!(ClassError);

impl fmt::Display for ClassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shares(shares) => write!(f, "{shares} shares: give 1 to {SHARES_MAX}"),
            Self::Limits(limits) => {
                write!(f, "{limits:?}: give at least 1 per second, or no limit at all")
            }
            Self::Full => {
                write!(f, "no room: at most {CLASSES_MAX} classes and {CLASS_GROUPS_MAX} groups")
            }
            Self::Unknown => write!(f, "the class was removed earlier"),
            Self::TooDeep => write!(f, "groups of classes nest {CLASS_GROUP_DEPTH_MAX} deep"),
            Self::InUse => write!(
                f,
                "the class still has work queued, or the group has classes: wait for the work, or \
                 cancel it, and remove the classes first"
            ),
        }
    }
}

impl core::error::Error for ClassError {}
