//! Events from the kernel, while they happen.

use std::os::fd::OwnedFd;
use std::time::Duration;

use forebay_block::DeviceNumber;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::block_event::Tracepoint;
use crate::error::TraceError;
use crate::instance::Instance;
use crate::kernel_line::{ASYNC_WORK, KernelEvent};
use crate::tracefs;

/// Of each processor: 40,000 events or more between two looks.
const BUFFER_KIB: &str = "4096";

/// What is read at once.
const READ_BYTES: usize = 64 << 10;

/// More than any line that is understood; what is longer is thrown away.
pub(crate) const LINE_BYTES_MAX: usize = 4096;

/// What some disks are asked, recorded by the kernel until this is dropped.
#[derive(Debug)]
pub struct Recording {
    // before the instance: that one is not removed while it is read from
    pipe: OwnedFd,
    instance: Instance,
    began: Duration,
    lines: Lines,
}

/// What was not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events that found no room in the kernel's buffer.
    pub events: u64,
    /// Lines of the trace that were not understood.
    pub lines: u64,
}

impl Recording {
    /// Records the discards of these disks, or of all if there are none.
    ///
    /// # Errors
    /// This process is not root's, or the kernel does not trace.
    pub fn discards(devices: &[DeviceNumber], tracepoint: Tracepoint) -> Result<Self, TraceError> {
        Self::begin(&[tracepoint], &filter(Some(DISCARDS), devices), false)
    }

    /// Records how requests come to these disks, are split and end, or those of all disks if there
    /// are none; and which requests of io_uring, of any process, the kernel gives to its threads.
    ///
    /// # Errors
    /// This process is not root's, or the kernel does not trace.
    pub fn requests(devices: &[DeviceNumber]) -> Result<Self, TraceError> {
        let points = [
            Tracepoint::BioQueue,
            Tracepoint::Split,
            Tracepoint::RequestIssue,
            Tracepoint::RequestRequeue,
            Tracepoint::RequestComplete,
            Tracepoint::BioComplete,
        ];
        Self::begin(&points, &filter(None, devices), true)
    }

    fn begin(
        tracepoints: &[Tracepoint],
        filter: &str,
        with_io_uring: bool,
    ) -> Result<Self, TraceError> {
        let root = tracefs::open()?;
        let instance = Instance::new(&root)?;
        let dir = &instance.dir;
        tracefs::write(dir, "trace_clock", "mono")?;
        tracefs::write(dir, "buffer_size_kb", BUFFER_KIB)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = rustix::fs::openat(dir, "trace_pipe", flags, Mode::empty());
        let pipe = pipe.map_err(TraceError::at("trace_pipe"))?;
        for event in tracepoints {
            tracefs::write(dir, &format!("events/block/{}/filter", event.name()), filter)?;
        }
        let began = clock();
        if with_io_uring {
            // a kernel without io_uring gives nothing to threads
            let _ = tracefs::write(dir, &format!("events/io_uring/{ASYNC_WORK}/enable"), "1");
        }
        for event in tracepoints.iter().rev() {
            tracefs::write(dir, &format!("events/block/{}/enable", event.name()), "1")?;
        }
        Ok(Self { pipe, instance, began, lines: Lines::default() })
    }

    /// How long it has been recording.
    pub fn elapsed(&self) -> Duration {
        clock().saturating_sub(self.began)
    }

    /// Gives all that was recorded since the last call to `see`, with the time since the beginning.
    /// Does not wait. Includes lines that arrive while it reads, up to a million reads.
    ///
    /// # Errors
    /// The kernel does not let it read.
    pub fn read(&mut self, mut see: impl FnMut(Duration, &KernelEvent)) -> Result<(), TraceError> {
        let mut buffer = vec![0; READ_BYTES];
        for _ in 0..READS_MAX {
            let count = match rustix::io::read(&self.pipe, &mut buffer[..]) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(TraceError::at("trace_pipe")(error)),
                Ok(count) => count,
            };
            self.lines.take(&buffer[..count], |event| {
                see(event.time().saturating_sub(self.began), event);
            });
        }
        Ok(())
    }

    /// What was lost so far.
    pub fn lost(&self) -> Lost {
        let events = tracefs::lost_events(&self.instance.dir);
        Lost { events, lines: self.lines.not_understood }
    }
}

/// So that a storm without end does not keep one call for ever.
const READS_MAX: u32 = 1_000_000;

/// Which requests are discards, for the kernel.
const DISCARDS: &str = "rwbs ~ \"*D*\"";

/// What the kernel shall record of these disks, or of all if there are none; `0` is what removes a
/// filter. `dev` is what the kernel makes of the two parts of a number.
fn filter(requests: Option<&str>, devices: &[DeviceNumber]) -> String {
    let is_of = |device: &DeviceNumber| {
        format!("dev == {}", (u64::from(device.major) << 20) | u64::from(device.minor))
    };
    let devices: Vec<String> = devices.iter().map(is_of).collect();
    match (requests, devices.is_empty()) {
        (None, true) => "0".to_owned(),
        (None, false) => devices.join(" || "),
        (Some(requests), true) => requests.to_owned(),
        (Some(requests), false) => format!("{requests} && ({})", devices.join(" || ")),
    }
}

/// The clock of the trace.
fn clock() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), nanos)
}

/// Bytes of a trace, line by line.
#[derive(Debug, Default)]
struct Lines {
    begun: Vec<u8>,
    not_understood: u64,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], mut see: impl FnMut(&KernelEvent)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LINE_BYTES_MAX.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&part[..part.len().min(room)]);
            if !part.ends_with(b"\n") {
                return;
            }
            let line = String::from_utf8_lossy(&self.begun);
            match KernelEvent::parse(line.trim_end()) {
                Some(event) => see(&event),
                // those are counted by `stats`
                None if line.contains("[LOST ") => {}
                None => self.not_understood += 1,
            }
            self.begun.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernel_is_asked_for_discards_of_the_disks_only() {
        assert_eq!(filter(Some(DISCARDS), &[]), "rwbs ~ \"*D*\"");
        let devices = ["7:3", "259:0"].map(|text| text.parse().unwrap());
        let expected = "rwbs ~ \"*D*\" && (dev == 7340035 || dev == 271581184)";
        assert_eq!(filter(Some(DISCARDS), &devices), expected);
        assert_eq!(filter(None, &devices), "dev == 7340035 || dev == 271581184");
        assert_eq!(filter(None, &[]), "0");
    }

    #[test]
    fn a_line_that_never_ends_takes_no_memory() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            lines.take(&[b'x'; 1000], |_| unreachable!());
        }
        assert!(lines.begun.len() <= LINE_BYTES_MAX);
        lines.take(b"\n", |_| unreachable!());
        assert_eq!((lines.begun.len(), lines.not_understood), (0, 1));
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_are_cut(cut in 1_usize..200) {
            let text = "x-1 [000] 1.0: block_rq_issue: 8,0 D 4096 () 0 + 8 [x]\n\
                        CPU:1 [LOST 3 EVENTS]\nnonsense\n\
                        x-1 [000] 2.0: block_rq_issue: 8,0 D 4096 () 8 + 8 [x]\n";
            let (mut lines, mut offsets) = (Lines::default(), Vec::new());
            for part in text.as_bytes().chunks(cut) {
                lines.take(part, |event| {
                    let KernelEvent::Block(event) = event else { return };
                    offsets.push(event.offset);
                });
            }
            prop_assert_eq!((offsets, lines.not_understood), (vec![0, 4096], 1));
        }

        #[test]
        fn any_bytes_are_read_or_left_out(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            Lines::default().take(&bytes, |_| {});
        }
    }
}
