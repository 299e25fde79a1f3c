//! The file system of one file.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use forebay_core::Op;
use forebay_sim::disk::Command;
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::config::ServeConfig;
use crate::disk_thread::Timeline;
use crate::reply::{Reply, errno};

/// The file's name.
pub(crate) const NAME: &str = "disk";

const DISK: INodeNo = INodeNo(2);

/// Nothing about the file changes while it is mounted.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// Asynchronous requests that the kernel hands over before it lets more wait.
const REQUESTS_MAX: u16 = 4096;

/// The largest request, in bytes; the most that Linux sends.
const REQUEST_LEN_MAX: u32 = 1 << 20;

/// Turns the kernel's requests for the file into commands for the disk.
pub(crate) struct DiskFile {
    timeline: Arc<Timeline>,
    capacity: u64,
    sector: u32,
    mounted_at: SystemTime,
}

impl DiskFile {
    pub(crate) fn new(timeline: Arc<Timeline>, config: &ServeConfig) -> Self {
        let ServeConfig { capacity, sector, .. } = *config;
        Self { timeline, capacity, sector, mounted_at: SystemTime::now() }
    }

    fn attr(&self, ino: INodeNo) -> FileAttr {
        let is_disk = ino == DISK;
        let size = if is_disk { self.capacity } else { 0 };
        FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: self.mounted_at,
            mtime: self.mounted_at,
            ctime: self.mounted_at,
            crtime: self.mounted_at,
            kind: if is_disk { FileType::RegularFile } else { FileType::Directory },
            perm: if is_disk { 0o600 } else { 0o755 },
            nlink: if is_disk { 1 } else { 2 },
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn is_aligned(&self, offset: u64, len: u64) -> bool {
        let sector = u64::from(self.sector);
        offset.is_multiple_of(sector) && len.is_multiple_of(sector)
    }

    /// What of a range lies on the disk.
    fn clip(&self, offset: u64, len: u64) -> u64 {
        len.min(self.capacity.saturating_sub(offset))
    }
}

impl Filesystem for DiskFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // without these it works too: older kernels give fewer requests at once
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(REQUEST_LEN_MAX);
        let _ = config.set_max_background(REQUESTS_MAX);
        let _ = config.set_congestion_threshold(REQUESTS_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == NAME {
            reply.entry(&FOR_EVER, &self.attr(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attr(ino));
    }

    /// Ignored, as by a block device: `O_TRUNC` must not fail.
    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.attr(&FOR_EVER, &self.attr(ino));
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (DISK, FileType::RegularFile, NAME),
        ];
        for (next, (ino, kind, name)) in (1..).zip(entries) {
            if next > offset && reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let len = self.clip(offset, u64::from(size));
        if !self.is_aligned(offset, u64::from(size)) {
            reply.error(Errno::EINVAL);
        } else if len == 0 {
            reply.data(&[]);
        } else {
            let mark = self.timeline.store.mark();
            self.timeline.submit(Command { op: Op::Read, offset, len }, mark, Reply::Read(reply));
        }
    }

    /// Stores the data when it arrives: what a write that fails or hangs leaves
    /// behind is open on any disk.
    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let len = data.len() as u64;
        if !self.is_aligned(offset, len) {
            return reply.error(Errno::EINVAL);
        }
        if self.clip(offset, len) < len {
            return reply.error(Errno::ENOSPC);
        }
        match self.timeline.store.write(offset, data) {
            Ok(mark) => {
                let command = Command { op: Op::Write, offset, len };
                self.timeline.submit(command, mark, Reply::Write(reply));
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let command = Command { op: Op::Flush, offset: 0, len: 0 };
        let mark = self.timeline.store.mark();
        self.timeline.submit(command, mark, Reply::Empty(reply));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode != libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let len = self.clip(offset, length);
        if !self.is_aligned(offset, length) || len == 0 {
            return reply.error(Errno::EINVAL);
        }
        match self.timeline.store.discard(offset, len) {
            Ok(mark) => {
                let command = Command { op: Op::Discard, offset, len };
                self.timeline.submit(command, mark, Reply::Empty(reply));
            }
            Err(error) => reply.error(errno(&error)),
        }
    }
}
