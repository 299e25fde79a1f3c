//! The results of a run: [`model`] is what is written as JSON or YAML, [`text()`] what people
//! read, and [`verdict`] what a comparison comes to, in words.

mod advice;
pub mod consumption;
pub mod difference;
mod figures;
mod job_load;
mod members;
pub mod model;
pub mod series;
pub mod summary;
pub mod table;
mod text;
pub mod verdict;

pub use advice::PROCESSOR_WAIT_MAX;
pub use members::MembersResult;
pub use text::text;
