//! The C API of forebay. `include/forebay.h` is generated from these sources.
//!
//! A table maps handles to objects, and the library hands out no pointers to its objects. So a wrong
//! handle only gives an error code. Each function preserves `errno`, and no panic leaves it.
#![allow(non_camel_case_types, reason = "the names are those of the header")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the head of the header states the rules for callers"
)]

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
