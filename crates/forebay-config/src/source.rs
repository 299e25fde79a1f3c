//! The text of one file: reading it, parsing it, saying what is wrong with it.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::ops::RangeInclusive;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_setfl};
use serde::de::DeserializeOwned;

use crate::deserializer::from_tree;
use crate::syntax_tree::SyntaxTree;
use crate::yaml_error::config_error;
use crate::{ConfigError, Located, Position};

/// The largest file that is read, in bytes. Real ones are a few kilobytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// Reads the file at `path`, a configuration file. It may be a pipe that a program writes into.
///
/// # Errors
/// The file cannot be opened or read, is a pipe that no program has open for writing, longer than
/// [`MAX_FILE_BYTES`], empty, or no UTF-8 text.
pub fn read(path: &Path) -> Result<String, ConfigError> {
    read_at_most(path, MAX_FILE_BYTES)
}

/// Reads the file at `path`, which may have `bytes_max` bytes.
///
/// # Errors
/// As for [`read`], with that length.
pub fn read_at_most(path: &Path, bytes_max: usize) -> Result<String, ConfigError> {
    let name = path.display().to_string();
    let bytes = read_bytes(path, bytes_max as u64 + 1).map_err(|error| {
        ConfigError::whole_file(&name, format!("cannot be read: {error}; check the path"))
    })?;
    // no text has it in any of its usual encodings but UTF-16
    if bytes.contains(&0) {
        let message = "a binary file, or text in UTF-16; expected UTF-8 text; is this the right \
                       file?";
        return Err(ConfigError::whole_file(&name, message));
    }
    check_size(&name, bytes.len(), bytes_max)?;
    if bytes.is_empty() {
        return Err(ConfigError::whole_file(&name, "the file is empty; is this the right file?"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("not UTF-8 text at byte {at}; save the file as UTF-8");
        ConfigError::whole_file(&name, message)
    })?;
    // spreadsheets begin a file so
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}

/// The first bytes of a file. Of a pipe it waits for them only while a program can write into it.
fn read_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // Otherwise opening a pipe waits until a program opens it for writing.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    let kind = file.metadata()?.file_type();
    let waits = kind.is_fifo() || file.is_terminal();
    let mut bytes = Vec::new();
    let mut file = file.take(bytes_max);
    let read = match file.read_to_end(&mut bytes) {
        Err(error) if waits && error.kind() == ErrorKind::WouldBlock => {
            fcntl_setfl(file.get_ref(), OFlags::empty())?;
            file.read_to_end(&mut bytes)
        }
        read => read,
    };
    read?;
    if bytes.is_empty() && kind.is_fifo() {
        return Err(io::Error::other("it is a pipe that no program writes into"));
    }
    Ok(bytes)
}

/// Parses the YAML `text` of the file called `file`: [`Source::parse`] for callers that make no
/// checks afterwards.
///
/// # Errors
/// As [`Source::parse`].
pub fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ConfigError> {
    Source::new(file, text).parse()
}

/// The text of a file and the name it has in messages.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    file: &'a str,
    text: &'a str,
    /// The keys that may have no value.
    optional: &'a [&'a str],
}

impl<'a> Source<'a> {
    /// A file called `file` that holds `text`.
    pub fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, optional: &[] }
    }

    /// The same file, in which these keys may have no value: where the type has an `Option`, that
    /// is `None`.
    #[must_use]
    pub fn with_optional(self, optional: &'a [&'a str]) -> Self {
        Self { optional, ..self }
    }

    /// Parses the text as one YAML document.
    ///
    /// # Errors
    /// The text is not one YAML document within the bounds of this crate, or does not fit `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        check_size(self.file, self.text.len(), MAX_FILE_BYTES)?;
        let tree = SyntaxTree::of(self.file, self.text, self.optional)?;
        from_tree(&tree).map_err(|error| config_error::<T>(self.file, self.text, &tree, &error))
    }

    /// An error at the value at `at`, found by a check made after parsing.
    ///
    /// The keys that lead there are looked up in the text. `message` says what is wrong, what was
    /// expected, and what to do.
    pub fn error(&self, at: Position, message: impl Into<String>) -> ConfigError {
        let tree = SyntaxTree::of(self.file, self.text, self.optional).unwrap_or_default();
        let node = tree.value_at(at).or_else(|| tree.keyed_at(at));
        let key = node.and_then(|node| tree.path(node));
        ConfigError::at(self.file, at, key, message)
    }

    /// A number of `things`, for a check made after parsing.
    ///
    /// # Errors
    /// It is not within `range`, or `T` does not hold it.
    pub fn number<T: TryFrom<u64>>(
        &self,
        given: &Located<u64>,
        range: RangeInclusive<u64>,
        things: &str,
    ) -> Result<T, ConfigError> {
        match T::try_from(given.value) {
            Ok(number) if range.contains(&given.value) => Ok(number),
            _ => {
                let (first, last) = range.into_inner();
                let message = format!("{} {things}; expected {first} to {last}", given.value);
                Err(self.error(given.at, message))
            }
        }
    }
}

fn check_size(file: &str, bytes: usize, bytes_max: usize) -> Result<(), ConfigError> {
    if bytes > bytes_max {
        let message = format!(
            "longer than {bytes_max} bytes, the most that is read; is this the right file?"
        );
        return Err(ConfigError::whole_file(file, message));
    }
    Ok(())
}
