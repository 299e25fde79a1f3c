//! An engine that has its files and its pages already: descriptors that it
//! opened itself, buffers of its own, and a class for a task and all it calls.
//!
//! `cargo run --release -p forebay --example own_buffers` prints, for instance:
//!
//! ```text
//! 256 pages written and read back, in the class `scrub`
//! ```

use std::error::Error;
use std::fs::File;

use forebay::{BufResult, IoBuf, IoBufMut, Scheduler};

const PAGE: usize = 4096;

/// A page of the engine's cache, aligned for direct I/O.
#[repr(align(4096))]
struct Bytes([u8; PAGE]);

/// A page that is in use; none of it moves with the handle.
struct Page(Box<Bytes>);

impl Default for Page {
    fn default() -> Self {
        Self(Box::new(Bytes([0; PAGE])))
    }
}

// SAFETY: what is in a box stays where it is until the box is touched or
// dropped, is initialised, and is nobody else's.
unsafe impl IoBuf for Page {
    fn stable_ptr(&self) -> *const u8 {
        self.0.0.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        PAGE
    }

    fn bytes_total(&self) -> usize {
        PAGE
    }
}

// SAFETY: as above.
unsafe impl IoBufMut for Page {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.0.0.as_mut_ptr()
    }

    // SAFETY: all bytes are initialised from the beginning, so there is nothing to note.
    unsafe fn set_init(&mut self, _len: usize) {}
}

/// Writes pages and reads them back, in whichever class it is called.
async fn scrub(scheduler: &Scheduler, opened: File) -> Result<(), Box<dyn Error>> {
    let file = scheduler.file_from_fd(opened)?;
    let class = scheduler.current_class();
    let mut page = Page::default();
    for number in 0..256u64 {
        page.0.0.fill(number as u8);
        let BufResult(written, same) = file.write_at(&class, page, number * PAGE as u64).await;
        written?;
        let BufResult(read, same) = file.read_at(&class, same, number * PAGE as u64).await;
        if read? != PAGE || same.0.0 != [number as u8; PAGE] {
            return Err("a page came back changed".into());
        }
        page = same;
    }
    // The engine's own I/O, in the same class and on the same disk.
    let permit = scheduler.admit_for(&file, forebay::Op::Flush, 0).await?;
    permit.complete(&rustix::fs::fdatasync(file.direct_file()).map_err(Into::into));
    println!("256 pages written and read back, in the class `{}`", class.name());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let builder = Scheduler::builder().on_event(|event| eprintln!("{event}"));
    let scheduler = builder.build()?;
    let class = scheduler.add_class("scrub", 20)?;
    let mut options = File::options();
    let opened = options.read(true).write(true).create(true).open(dir.path().join("pages"))?;
    class.scope(scrub(&scheduler, opened)).await
}
