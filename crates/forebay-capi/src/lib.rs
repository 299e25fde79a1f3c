//! The C API of forebay: what `include/forebay.h` declares, which is made of these sources.
//!
//! What a handle stands for is in a table, and no pointer to anything of the library leaves it. So
//! a wrong handle is an error code, and never more. Each function saves `errno`, and a panic ends
//! in it.
#![allow(non_camel_case_types, reason = "the names are those of the header")]
#![allow(clippy::missing_safety_doc, reason = "the head of the header says what callers must keep")]

mod call;
mod entered;
mod failure;
mod memory;
mod object;
mod table;

pub mod admit;
pub mod buffered;
pub mod class;
pub mod code;
pub mod deleter;
pub mod error;
pub mod events;
pub mod free;
pub mod log_messages;
pub mod scheduler;
pub mod snapshot;
pub mod version;
pub mod waiting;
