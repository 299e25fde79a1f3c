//! Recorded traces: what is read of them, and what is found in them.

mod blktrace;
mod recorded;
mod requests;
mod series;
mod texts;
