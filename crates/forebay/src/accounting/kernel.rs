//! The kernel's counters of this process, and of the machine's page cache.

use forebay_block::Machine;

use crate::page_cache::page_size;

/// The bytes that this process had read from disks, and those that it made dirty or wrote directly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnIo {
    pub(super) read: u64,
    pub(super) written: u64,
}

impl OwnIo {
    /// From `/proc/self/io`, which a process may not be allowed to read.
    pub(super) fn of(machine: &Machine) -> Option<Self> {
        let text = machine.text("proc/self/io")?;
        let number = |name: &str| named(&text, name);
        // Dirty bytes that are truncated are never written.
        let cancelled = number("cancelled_write_bytes:").unwrap_or(0);
        let written = number("write_bytes:")?.saturating_sub(cancelled);
        Some(Self { read: number("read_bytes:")?, written })
    }
}

/// The page cache of the machine, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageCache {
    /// The bytes that differ from the disks, or are being written.
    pub(super) dirty: u64,
    /// The bytes that were written back so far.
    pub(super) written_back: u64,
}

impl PageCache {
    pub(super) fn of(machine: &Machine) -> Option<Self> {
        let text = machine.text("proc/vmstat")?;
        let bytes = |name: &str| Some(named(&text, name)?.saturating_mul(page_size()));
        let dirty = bytes("nr_dirty")?.saturating_add(bytes("nr_writeback")?);
        Some(Self { dirty, written_back: bytes("nr_written")? })
    }
}

fn named(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_bytes_were_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::new(dir.path());
        assert_eq!(OwnIo::of(&machine), None);
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        let io = "rchar: 1\nwchar: 2\nread_bytes: 5\nwrite_bytes: 70\ncancelled_write_bytes: 30\n";
        std::fs::write(dir.path().join("proc/self/io"), io).unwrap();
        assert_eq!(OwnIo::of(&machine), Some(OwnIo { read: 5, written: 40 }));
    }

    #[test]
    fn the_page_cache_of_this_machine_is_seen() {
        assert!(PageCache::of(&Machine::this()).is_some());
        assert!(OwnIo::of(&Machine::this()).is_some());
    }
}
