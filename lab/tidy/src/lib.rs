//! Reads the sources of the workspace as far as their order needs: which file imports which, and
//! how long files and functions are. The tests alongside it say what that order is.
//!
//! It knows Rust by its words and braces only. That is enough for `use`, for paths that begin with
//! `crate`, `super` or `self`, and for functions; what a macro writes is not seen.
#![forbid(unsafe_code)]

mod calls;
mod constants;
mod functions;
mod imports;
mod methods;
mod prose;
mod sources;
mod strip;
mod words;

pub use calls::Calls;
pub use constants::{Constant, constants};
pub use functions::{Function, functions};
pub use imports::Graph;
pub use methods::{Method, methods, public_types};
pub use prose::{sentences, words};
pub use sources::{Crate, Source, WINGS, crates, read, root};
pub use strip::{strip, without_tests};
pub use words::places;
