//! Reading of YAML configuration files, with errors people can act on.
//!
//! A [`Source`] is the text of one file together with its name. [`Source::parse`] turns it into
//! any type that implements [`serde::Deserialize`]; checks made on the parsed value afterwards
//! report through [`Source::error`], so that every error in a file has one form:
//!
//! ```text
//! FILE:LINE:COLUMN: KEY: what is wrong; what was expected; what to do
//! ```
//!
//! Types meant for this crate carry `#[serde(deny_unknown_fields)]`, so that a misspelt key is
//! an error that names the nearest known one, or the mapping that it belongs to, instead of a
//! setting silently ignored, and wrap in
//! [`Located`] every value that a later check may have to point at:
//!
//! ```
//! use forebay_config::{ByteSize, Located, Source};
//!
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Job {
//!     reqsize: Located<ByteSize>,
//! }
//!
//! let source = Source::new("job.yaml", "reqsize: 100\n");
//! let job: Job = source.parse()?;
//! let error = source.error(job.reqsize.at, "100 is not a multiple of 512; write 512 or 1kB");
//! assert_eq!(
//!     error.to_string(),
//!     "job.yaml:1:10: reqsize: 100 is not a multiple of 512; write 512 or 1kB",
//! );
//! # Ok::<(), forebay_config::ConfigError>(())
//! ```
//!
//! Files come from people and from other programs, so nothing in them is trusted: a file is at
//! most [`MAX_FILE_BYTES`] long, nesting and aliases are bounded, a key may appear only once in
//! its mapping, and whatever else is wrong ends in a [`ConfigError`], never in a panic.
//!
//! The units that appear in forebay's files are types of their own: [`ByteSize`] for whole bytes,
//! [`Quantity`] for counts and rates, with the same suffixes, and [`Span`] for lengths of time.

mod deserializer;
mod error;
mod file_kind;
mod located;
mod nearest;
mod quote;
mod schema;
mod source;
mod syntax_tree;
mod text_kind;
mod units;
mod yaml_error;

pub use error::ConfigError;
pub use located::{Located, Position};
pub use nearest::{known, nearest};
pub use source::{MAX_FILE_BYTES, Source, parse, read, read_at_most};
pub use units::{ByteSize, Quantity, Span, UnitError};
