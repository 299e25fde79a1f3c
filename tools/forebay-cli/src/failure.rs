//! How the program ends when it does not succeed.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use forebay_config::ConfigError;
use forebay_report::DrawError;

/// Why the program ends without success; the text says what to do.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A file or an option given to it is not usable.
    Input(String),
    /// Something went wrong while it worked.
    Run(String),
    /// All was done and saved, and nothing that was measured keeps what was asked for.
    NoRegion(String),
    /// A comparison shows that something was lost.
    Lost(String),
    /// The user ended it.
    Interrupted,
}

impl Failure {
    /// 2, 1, 3, 1, and as a shell counts an end by SIGINT.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Input(_) => ExitCode::from(2),
            Self::Run(_) | Self::Lost(_) => ExitCode::FAILURE,
            Self::NoRegion(_) => ExitCode::from(3),
            Self::Interrupted => ExitCode::from(130),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<DrawError> for Failure {
    fn from(error: DrawError) -> Self {
        Self::Run(format!("cannot draw the charts: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text) | Self::Run(text) | Self::NoRegion(text) | Self::Lost(text) => {
                f.write_str(text)
            }
            Self::Interrupted => f.write_str("interrupted; there are no results"),
        }
    }
}

/// The exit code of another program as a shell has it: 128 and the number of the signal that ended it.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
