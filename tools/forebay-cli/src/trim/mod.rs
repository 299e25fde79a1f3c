//! `forebay trim`: tells a disk what is free on a file system, at a pace.

mod fitrim;
mod pace;
mod place;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use forebay_config::ByteSize;
use forebay_core::{DiskModel, DiskTime, saturating_nanos};
use indicatif::{HumanBytes, HumanDuration};
use rustix::io::Errno;

use crate::console::{note, print, progress_bar};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{properties_file, span};
use pace::{Pace, Trimmed};
use place::Place;

/// Discards keep the disk busy for this part of the time, in thousandths, unless told otherwise.
const SHARE_DEFAULT: u64 = 100;
/// How long a Ctrl-C may go unnoticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// It has got those of a range when it counts no more for so long, looked at a few times.
const SOON: Duration = Duration::from_millis(2);
const SOON_LOOKS: usize = 10;
/// The device may get discards later than the file system answers: so long is waited for the last.
const SETTLE_MAX: Duration = Duration::from_secs(2);

/// Discard the free space of a file system, like fstrim, but at a limited rate.
///
/// fstrim sends discards as fast as the disk takes them, and reads wait behind them. This command
/// trims one range after the other, with pauses in between. Each range is so short that the disk
/// discards it within the latency goal. It is for mounts without online discard, and needs root.
/// Ctrl-C ends it after the present range, and it prints its progress.
#[derive(Args)]
pub(crate) struct Options {
    /// The mountpoint of the file system: ext4, xfs or f2fs
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,
    /// Discard at most this many bytes per second, such as 500MB
    #[arg(long, value_name = "SIZE")]
    rate: Option<ByteSize>,
    /// Limit discards to this share of the disk's time [default: 10%]
    #[arg(long, value_name = "PERCENT", value_parser = permille)]
    disk_share: Option<u64>,
    /// The longest time for which a step may keep the disk busy, by the costs of discards in
    /// --properties
    #[arg(long, value_name = "TIME", default_value = "0.75ms", value_parser = span::parse_positive)]
    latency_goal: Duration,
    /// Skip free extents that are shorter than this
    #[arg(long, value_name = "SIZE")]
    min_len: Option<ByteSize>,
    /// The properties of the disk: a file that `forebay tune` wrote
    #[arg(long, value_name = "FILE")]
    properties: Option<PathBuf>,
    /// Discard nothing; print what would be done, and how long it would take
    #[arg(long, short = 'n')]
    dry_run: bool,
}

/// Reads `20%` or `20` as 200.
fn permille(text: &str) -> Result<u64, String> {
    let number: Option<f64> = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    let part = number.map(|percent| percent * 10.0).filter(|part| (1.0..=1000.0).contains(part));
    part.map(|part| part as u64).ok_or_else(|| String::from("expected 0.1% to 100%, such as 20%"))
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    if options.rate.is_some_and(|rate| rate.0 == 0) {
        return Err(Failure::Input("--rate 0 would never end; give at least 1".into()));
    }
    let place = Place::find(&options.mountpoint)?;
    let pace = options.pace(&place)?;
    if options.dry_run {
        print(&would(&place, &pace, options.properties.is_some()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Run("only root may trim: run it with sudo".into()));
    }
    let interrupt = Interrupt::on_signals()?;
    let trim = Trim { min_len: options.min_len.map_or(0, |len| len.0), place, pace, interrupt };
    trim.run()
}

impl Options {
    fn pace(&self, place: &Place) -> Result<Pace, Failure> {
        let model = match &self.properties {
            Some(file) => {
                let properties = properties_file::load(file)?;
                let disk = properties.disk_for(&place.mount.point);
                let disk = disk.map_err(|error| Failure::Input(error.to_string()))?;
                disk.model().map_err(|error| Failure::Input(error.to_string()))?
            }
            None => DiskModel::unmeasured(),
        };
        let cost = DiskTime::from_nanos(saturating_nanos(self.latency_goal));
        let rate = self.rate.map(|rate| rate.0);
        // who names a rate means it
        let share = match (self.disk_share, rate) {
            (Some(share), _) => share,
            (None, Some(_)) => 1000,
            (None, None) => SHARE_DEFAULT,
        };
        Ok(Pace::new(model, cost, rate, share))
    }
}

fn would(place: &Place, pace: &Pace, is_measured: bool) -> String {
    let (time, ranges) = pace.estimate(place.free, place.size);
    let time = match time < Duration::from_secs(60) {
        true => format!("{time:.1?}"),
        false => HumanDuration(time).to_string(),
    };
    format!(
        "would trim {} ({}): {} free of {}, in {ranges} ranges of {} or less, within about {time}{}\n",
        place.mount.point.display(),
        place.mount.kind,
        HumanBytes(place.free),
        HumanBytes(place.size),
        HumanBytes(pace.range()),
        if is_measured {
            ""
        } else {
            ", if its discards have the usual speed: use --properties \
                                      for better figures"
        }
    )
}

/// A trim under way.
struct Trim {
    place: Place,
    pace: Pace,
    min_len: u64,
    interrupt: Interrupt,
}

/// How far it has come.
#[derive(Default)]
struct Progress {
    /// Bytes from the beginning of the file system.
    at: u64,
    /// What the file system says that it discarded, or the device where it does not say.
    trimmed: u64,
    /// The longest that a range took.
    longest: Duration,
}

impl Trim {
    fn run(mut self) -> Result<ExitCode, Failure> {
        let began = Instant::now();
        let counted = self.place.discards();
        let Place { mount, free, size, .. } = &self.place;
        let (free, size) = (HumanBytes(*free), HumanBytes(*size));
        note(format_args!(
            "trimming {} ({}): {free} free of {size}",
            mount.point.display(),
            mount.kind
        ));
        let template = "{wide_bar} {bytes} of {total_bytes} {msg} {eta}";
        let bar = progress_bar(self.place.size, template);
        let mut progress = Progress::default();
        while progress.at < self.place.size && !self.interrupt.is_raised() {
            if !self.step(&mut progress)? {
                break;
            }
            bar.set_position(progress.at.min(self.place.size));
            bar.set_message(format!("{} discarded", HumanBytes(progress.trimmed)));
        }
        bar.finish_and_clear();
        let is_interrupted = self.interrupt.is_raised() && progress.at < self.place.size;
        let counted = counted.map(|before| self.settled(before, progress.trimmed));
        let text = done(&self.place, &progress, counted, began.elapsed());
        if is_interrupted {
            let left = self.place.size.saturating_sub(progress.at);
            note(format_args!("interrupted: {}{} not examined", text, HumanBytes(left)));
            return Ok(Failure::Interrupted.exit_code());
        }
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Trims a range, and pauses after it; whether there is another.
    fn step(&mut self, progress: &mut Progress) -> Result<bool, Failure> {
        let range = self.pace.range().min(self.place.size - progress.at);
        let before = self.place.discards();
        let began = Instant::now();
        let bytes = match fitrim::trim(&self.place.dir, progress.at, range, self.min_len) {
            Ok(bytes) => bytes,
            // behind the end of the file system, which is shorter than the device
            Err(Errno::INVAL) if progress.at > 0 => return Ok(false),
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(refused(&self.place.mount.point, self.min_len, error)),
        };
        let took = began.elapsed();
        let counted = before.map(|before| self.counted_soon(before));
        let (bytes, commands) = match counted {
            // it answers with the length of the range, however much of that was free
            Some((commands, bytes)) if self.place.mount.kind == "xfs" => (bytes, Some(commands)),
            counted => (bytes, counted.map(|(commands, _)| commands)),
        };
        progress.at += range;
        progress.trimmed += bytes;
        progress.longest = progress.longest.max(took);
        let after = self.pace.after(&Trimmed { range, bytes, commands, took });
        let next = began.checked_add(after);
        while !self.interrupt.is_raised() && progress.at < self.place.size {
            let wait =
                next.map_or(LOOK_EVERY, |next| next.saturating_duration_since(Instant::now()));
            if wait.is_zero() {
                break;
            }
            thread::sleep(wait.min(LOOK_EVERY));
        }
        Ok(true)
    }

    /// What the device has counted since a range was asked for: how many discards, and their bytes.
    fn counted_soon(&self, before: (u64, u64)) -> (u64, u64) {
        let mut seen = self.place.discards().unwrap_or(before);
        for _ in 0..SOON_LOOKS {
            thread::sleep(SOON);
            let now = self.place.discards().unwrap_or(seen);
            if now == seen {
                break;
            }
            seen = now;
        }
        (seen.0.saturating_sub(before.0), seen.1.saturating_sub(before.1))
    }

    /// What the device has counted since, once it has got all, or after a while.
    fn settled(&self, before: (u64, u64), trimmed: u64) -> (u64, u64) {
        let until = Instant::now() + SETTLE_MAX;
        loop {
            let now = self.place.discards().unwrap_or(before);
            let since = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
            if since.1 >= trimmed || Instant::now() >= until || self.interrupt.is_raised() {
                return since;
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// What was done, for people.
fn done(place: &Place, progress: &Progress, counted: Option<(u64, u64)>, took: Duration) -> String {
    let mut text = format!(
        "{}: {} ({} bytes) discarded in {took:.1?}; the longest range took {:.1?}\n",
        place.mount.point.display(),
        HumanBytes(progress.trimmed),
        progress.trimmed,
        progress.longest
    );
    if let (Some((commands, bytes)), Some(disk)) = (counted, &place.iostat_disk) {
        let (name, bytes) = (&disk.name, HumanBytes(bytes));
        text += &format!("/dev/{name} got {commands} discards of {bytes} in this time\n");
    }
    text
}

/// Why the file system refuses, in one line.
fn refused(point: &Path, min_len: u64, error: Errno) -> Failure {
    let point = point.display();
    match error {
        Errno::PERM | Errno::ACCESS => Failure::Run(format!("only root may trim `{point}`")),
        Errno::OPNOTSUPP => Failure::Input(format!("the disk of `{point}` takes no discards")),
        Errno::NOTTY => Failure::Input(format!("the file system of `{point}` cannot be trimmed")),
        Errno::ROFS => Failure::Input(format!(
            "the file system at `{point}` is read-only, so it cannot be trimmed; remount it with `rw`"
        )),
        Errno::INVAL if min_len > 0 => Failure::Input(format!(
            "the file system of `{point}` has no free extents of {min_len} bytes; lower --min-len"
        )),
        _ => Failure::Run(format!("cannot trim `{point}`: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_between_a_thousandth_and_all() {
        assert_eq!((permille("20%"), permille("100"), permille("0.1")), (Ok(200), Ok(1000), Ok(1)));
        for text in ["", "%", "0", "0%", "101%", "-1%", "x", "nan", "inf"] {
            assert!(permille(text).is_err(), "{text}");
        }
    }

    #[test]
    fn each_refusal_is_one_line_with_its_exit_code() {
        let point = Path::new("/data");
        let cases = [
            (Errno::PERM, "only root"),
            (Errno::OPNOTSUPP, "takes no discards"),
            (Errno::NOTTY, "cannot be trimmed"),
            (Errno::ROFS, "read-only"),
            (Errno::INVAL, "lower --min-len"),
            (Errno::IO, "cannot trim"),
        ];
        for (error, expected) in cases {
            let text = refused(point, 4096, error).to_string();
            assert!(text.contains(expected) && text.contains("`/data`"), "{text}");
            assert_eq!(text.lines().count(), 1);
        }
    }
}
