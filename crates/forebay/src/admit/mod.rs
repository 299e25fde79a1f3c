//! Requests for permits by threads and tasks, for one request or several, on the disk of a class or
//! of a file.

mod ask;
mod class;
mod counters;
mod future;
mod many;
mod parts;
mod target;

pub use self::future::AdmitFuture;
pub use self::many::AdmitMany;
pub use self::parts::AdmitParts;
pub use self::target::{AdmitFor, AdmitForFuture, OnDisk};
