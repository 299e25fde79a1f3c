//! What a probe says.

use serde::Serialize;

/// How much a finding matters, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Level {
    /// As it should be.
    Fine,
    /// It could not be seen.
    Unseen,
    /// Good to know; nothing is wrong.
    Note,
    /// It costs throughput or latency.
    Warning,
    /// Nothing good can come of it.
    Error,
}

impl Level {
    /// The word for it, at the head of a line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Unseen => "unseen",
            Self::Note => "note",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

/// One thing that was looked at, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Which probe says so.
    pub(super) probe: &'static str,
    pub(super) level: Level,
    /// What was found.
    pub(super) what: String,
    /// Why it matters, with a figure where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    /// Where the figure comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<&'static str>,
    /// What mends it: a command where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mend: Option<String>,
}

impl Finding {
    fn new(level: Level, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { probe: "", level, what, why: None, source: None, mend: None }
    }

    /// It is as it should be.
    pub(super) fn fine(what: impl Into<String>) -> Self {
        Self::new(Level::Fine, what)
    }

    /// It could not be seen.
    pub(super) fn unseen(what: impl Into<String>) -> Self {
        Self::new(Level::Unseen, what)
    }

    /// It is good to know.
    pub(super) fn note(what: impl Into<String>) -> Self {
        Self::new(Level::Note, what)
    }

    /// It costs throughput or latency.
    pub(super) fn warning(what: impl Into<String>) -> Self {
        Self::new(Level::Warning, what)
    }

    /// Nothing good can come of it.
    pub(super) fn error(what: impl Into<String>) -> Self {
        Self::new(Level::Error, what)
    }

    /// Adds why it matters.
    #[must_use]
    pub(super) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// Adds where the figure comes from.
    #[must_use]
    pub(super) fn source(mut self, source: &'static str) -> Self {
        self.source = Some(source);
        self
    }

    /// Adds what mends it.
    #[must_use]
    pub(super) fn mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = Some(mend.into());
        self
    }
}
