//! Comparison of memory with the disk.

use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{ReadWriteFlags, preadv2};

use super::{page_size, whole_pages};
use crate::AlignedBuf;

/// The pages of a range that are in memory and the same on the disk. Only for threads with a
/// descriptor table of their own. Empty if the file cannot be read past the page cache.
pub(crate) fn pages_on_disk(file: BorrowedFd<'_>, range: &Range<u64>) -> Vec<Range<u64>> {
    // `/proc/self` would be the table of the process.
    let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(direct) = rustix::fs::open(path, flags, Mode::empty()) else { return Vec::new() };
    let (pages, page) = (whole_pages(range), page_size() as usize);
    let Ok(len) = usize::try_from(pages.end - pages.start) else { return Vec::new() };
    let buffers = AlignedBuf::new(len, page).and_then(|one| Ok((one, AlignedBuf::new(len, page)?)));
    let Ok((mut in_memory, mut on_disk)) = buffers else { return Vec::new() };
    let memory = read(file, &mut in_memory, pages.start, ReadWriteFlags::NOWAIT);
    let disk = read(direct.as_fd(), &mut on_disk, pages.start, ReadWriteFlags::empty());
    let both = memory.min(disk);
    let chunks = in_memory[..both].chunks(page).zip(on_disk[..both].chunks(page));
    let starts = (pages.start..).step_by(page);
    let same = starts.zip(chunks).filter(|(_, (memory, disk))| memory == disk);
    same.map(|(start, (memory, _))| start..start + memory.len() as u64).collect()
}

/// Reads up to the end of the file, or to an error. Returns the number of bytes.
fn read(file: BorrowedFd<'_>, bytes: &mut [u8], offset: u64, flags: ReadWriteFlags) -> usize {
    let mut done = 0;
    while let Ok(read @ 1..) =
        preadv2(file, &mut [IoSliceMut::new(&mut bytes[done..])], offset + done as u64, flags)
    {
        done += read;
    }
    done
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn pages_that_differ_on_the_disk_are_left_out() {
        let file = tempfile::tempfile_in(".").unwrap();
        file.write_all_at(&[7; 10_000], 0).unwrap();
        file.sync_all().unwrap();
        let same = pages_on_disk(file.as_fd(), &(0..10_000));
        // Not every file system can be read past the page cache, or without waiting.
        if !same.is_empty() {
            assert_eq!(same.iter().map(|pages| pages.end - pages.start).sum::<u64>(), 10_000);
            let part = pages_on_disk(file.as_fd(), &(5000..6000));
            assert_eq!(part.first(), Some(&whole_pages(&(5000..6000))));
        }
        assert_eq!(pages_on_disk(file.as_fd(), &(1 << 20..2 << 20)), []);
    }
}
