//! Files that are written through the page cache, and how what is dirty gets to the disk.

mod block_on;
mod dirty_file;
mod dirty_pieces;
mod failure;
mod part;
mod ranges;
mod sync;
mod write_back_path;
mod writer;
mod writing;

pub use self::writer::BufferedWriter;
