//! What a probe says.

use serde::Serialize;

/// How much a finding matters, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// As it should be.
    Fine,
    /// It could not be seen.
    Unknown,
    /// Good to know; nothing is wrong.
    Note,
    /// It costs throughput or latency.
    Warning,
    /// Nothing good can come of it.
    Error,
}

impl Level {
    /// The word for it, at the head of a line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Unknown => "unknown",
            Self::Note => "note",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

/// One thing that was looked at, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which probe says so.
    pub probe: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What was found.
    pub what: String,
    /// Why it matters, with a figure where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Where the figure comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'static str>,
    /// What fixes it: a command where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    fn new(level: Level, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { probe: "", level, what, why: None, source: None, fix: None }
    }

    /// It is as it should be.
    pub(crate) fn fine(what: impl Into<String>) -> Self {
        Self::new(Level::Fine, what)
    }

    /// It could not be seen.
    pub(crate) fn unknown(what: impl Into<String>) -> Self {
        Self::new(Level::Unknown, what)
    }

    /// It is good to know.
    pub(crate) fn note(what: impl Into<String>) -> Self {
        Self::new(Level::Note, what)
    }

    /// It costs throughput or latency.
    pub(crate) fn warning(what: impl Into<String>) -> Self {
        Self::new(Level::Warning, what)
    }

    /// Nothing good can come of it.
    pub(crate) fn error(what: impl Into<String>) -> Self {
        Self::new(Level::Error, what)
    }

    /// Adds why it matters.
    #[must_use]
    pub(crate) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// Adds where the figure comes from.
    #[must_use]
    pub(crate) fn source(mut self, source: &'static str) -> Self {
        self.source = Some(source);
        self
    }

    /// Adds what fixes it.
    #[must_use]
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}
