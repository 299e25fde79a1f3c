//! Simulated disks: what they have in common.

mod arbiter;
mod cloud;
mod faults;
mod flash;
mod hdd;
mod ideal;
mod partial_sectors;
mod raid0;
mod servers;
mod surface;

use core::time::Duration;

use forebay_core::{
    CostCurve, DiskModel, DiskRates, DiskTime, ModelError, Op, Time, saturating_nanos,
};

pub use arbiter::Batches;
pub use cloud::Cloud;
pub use faults::{Fault, Range};
pub use flash::Flash;
pub use hdd::Hdd;
pub use ideal::Ideal;
pub use partial_sectors::PartialSectors;
pub use raid0::Raid0;
pub use surface::Surface;

pub(crate) use arbiter::Arbiter;
pub(crate) use cloud::CloudDisk;
pub(crate) use faults::Faulty;
pub(crate) use flash::FlashDisk;
pub(crate) use hdd::HddDisk;
pub(crate) use ideal::IdealDisk;
pub(crate) use servers::{Due, Timed};

/// What is asked of a simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub op: Op,
    /// Where, in bytes from the start of the disk.
    pub offset: u64,
    /// How much, in bytes; zero for a flush.
    pub len: u64,
}

/// How a command of a simulated disk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It did what was asked.
    Done,
    /// It could not: the range is bad (`EIO`).
    Failed,
}

/// A command that a simulated disk has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The number under which it was submitted.
    pub id: u64,
    /// When the disk was done with it.
    pub at: Time,
    /// How it ended.
    pub status: Status,
}

/// For how long the members of an array had commands in flight, in nanoseconds, summed over these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembersInFlight {
    /// By member.
    pub nanos: Vec<u64>,
    /// Of the member that had most at each moment.
    pub fullest_nanos: u64,
}

/// A disk in virtual time, without I/O: a simulation asks it under a virtual
/// clock, a file system server under the real one.
///
/// Time never steps back between calls. The same calls give the same answers.
pub trait SimDisk: Send {
    /// Starts a command under a number that no unfinished command has.
    /// May change what the other verbs answer.
    fn submit(&mut self, now: Time, id: u64, command: Command);

    /// A command that was finished by `now`, in the order of finishing; to be
    /// asked until it returns `None`.
    fn poll_completion(&mut self, now: Time) -> Option<Completion>;

    /// When [`SimDisk::poll_completion`] can next return something, if nothing is
    /// submitted before; `None` while nothing is under way, or all of it hangs.
    fn next_event(&self) -> Option<Time>;

    /// What the disk truly does: small operations and bytes per second.
    fn rates(&self) -> DiskRates;

    /// What the members of an array had in flight until `now`; nothing of a single disk.
    fn members(&self, _now: Time) -> MembersInFlight {
        MembersInFlight::default()
    }

    /// Whether a command that begins where the last one ended takes its bytes alone.
    fn seeks(&self) -> bool {
        false
    }

    /// How long a flush truly takes after a write; `None` where it is as long as a small write.
    fn flush(&self) -> Option<Duration> {
        None
    }

    /// What a discard truly costs, where that was said of the disk.
    fn discards(&self) -> Option<CostCurve> {
        None
    }

    /// What requests truly cost.
    ///
    /// # Errors
    /// The rates make no model.
    fn model(&self) -> Result<DiskModel, ModelError> {
        let rates = self.rates();
        let model = DiskModel::from_rates(&rates)?;
        let model = match self.discards() {
            Some(discards) => model.with_discard(discards),
            None => model,
        };
        let model = match self.flush() {
            Some(flush) => model.with_flush(DiskTime::from_nanos(saturating_nanos(flush))),
            None => model,
        };
        if !self.seeks() {
            return Ok(model);
        }
        let curve = |direction, bandwidth| {
            CostCurve::transfer(bandwidth).map_err(|cause| ModelError { direction, cause })
        };
        let read = curve(Op::Read, rates.read_bandwidth)?;
        Ok(model.with_sequential(read, curve(Op::Write, rates.write_bandwidth)?))
    }

    /// Median latency of a small read on the idle disk.
    fn base_latency(&self) -> Duration;
}
