//! Measuring a disk, real or simulated, and describing it to the scheduler.
//!
//! - [`Target`]: what can run a [`Phase`], a load of one kind for some time:
//!   [`DirectoryTarget`] with threads and files, [`SimTarget`] with a simulated disk under
//!   virtual time.
//! - [`Budget`]: how long the measurement takes, and how much it writes at most.
//! - [`measure`]: runs phases on a target, each chosen by what the earlier ones found.
//! - [`Run`]: what was measured. It can be saved, continued, fitted again, compared.
//! - [`Fit`]: what the run says about the disk; [`files`] and [`verdicts`] put it into words.
//! - [`diff`](mod@diff) and [`history`]: two runs compared, and many over time.
#![forbid(unsafe_code)]

mod budget;
mod credits;
pub mod diff;
mod directory;
mod drift;
mod error;
pub mod files;
mod fit;
pub mod history;
mod load;
mod measure;
mod phase;
mod plateau;
mod probe;
mod run;
mod samples;
mod simulated;
mod stalls;
mod statistics;
mod sustained;
mod target;
pub mod verdicts;

pub use budget::Budget;
pub use credits::{Credits, Spent};
pub use directory::{DirectoryTarget, MeasuredDisk};
pub use drift::{Burst, Observation, Steadiness, steadiness};
pub use error::Error;
pub use fit::{
    CostPoint, DiscardCost, Figure, FileStates, Fit, Knee, LatencyAt, Mix, Saturation, Sector,
    Seeks, Sizes, depth_full, fit, saturation_of,
};
pub use measure::{LARGE_REQUEST_BYTES, Progress, measure};
pub use phase::{Bound, FileState, Pattern, Phase, Purpose, Work};
pub use probe::{CreditProbe, DiskCounters};
pub use run::{MeasuredPhase, RUN_VERSION, Run};
pub use samples::{LatencyFigures, Rate, Samples};
pub use simulated::SimTarget;
pub use stalls::Stalls;
pub use sustained::{Buffer, Lasting};
pub use target::{Target, TargetInfo};
