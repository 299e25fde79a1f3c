//! What measuring a real disk and measuring a simulated one have in common.
//!
//! - [`job_file`]: which load a run consists of, read from a file in the format of Seastar's
//!   io_tester.
//! - [`generator`]: that load, request by request.
//! - [`recorder`]: what is written down about each request.
//! - [`results`]: what comes of it, for programs and for people.
//!
//! Nothing here has a clock, a thread or a file: time is passed in, and random numbers follow
//! from a seed. On a virtual clock a seed yields the same run on every machine.
//!
//! ```
//! use forebay_config::Source;
//! use forebay_core::Time;
//! use forebay_load::generator::Generator;
//! use forebay_load::job_file::JobFile;
//! use forebay_load::recorder::{Completion, MeasuredInterval, Recorder};
//! use forebay_load::results::summary::{ShardRecords, over_all_shards};
//!
//! let text = "
//! - name: reads
//!   type: randread
//!   shards: all
//!   shard_info: {parallelism: 2, rps: 500, reqsize: 4kB}
//! ";
//! let file = JobFile::parse(&Source::new("reads.yaml", text), None, 1)?;
//!
//! // A disk that answers at once, on a virtual clock that stands still meanwhile.
//! let measured = MeasuredInterval { from: Time::ZERO, to: Time::from_nanos(1_000_000_000) };
//! let mut generator = Generator::new(&file.jobs[0], 0, 0, 1, measured.from);
//! let mut recorder = Recorder::new(measured)?;
//! while let Some(now) = generator.next_event().filter(|&now| now < measured.to) {
//!     while let Some(action) = generator.poll(now) {
//!         recorder.record(&Completion {
//!             intended: action.intended,
//!             enqueued: now,
//!             dispatched: now,
//!             completed: now,
//!             bytes: 4096,
//!             ok: true,
//!             flush: false,
//!         });
//!         generator.completed(now, action.fiber, true);
//!     }
//! }
//! let records = ShardRecords { shard: 0, jobs: vec![(0, recorder)] };
//! assert_eq!(over_all_shards(&file, &[records])[0].iops, 1000.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod generator;
pub mod job_file;
pub mod recorder;
pub mod results;
mod rng;
pub mod significance;

pub use rng::Rng;
