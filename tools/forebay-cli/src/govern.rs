//! `forebay govern`: settings of io.cost that keep a latency goal.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_block::{BlockDevice, Machine, Stack};
use forebay_core::LatencyTarget;
use forebay_govern::{
    Calibrated, CalibrationLoad, ClassSpec, GovernError, GovernedDisk, Governing, Plan, QosPoint,
    calibrate, govern, restore,
};

use crate::console::{note, print};
use crate::failure::Failure;
use crate::info;
use crate::interrupt::Interrupt;
use crate::whole_number;

/// Meet a latency goal for unmodified programs with the kernel's io.cost. Needs root.
///
/// With --calibrate it finds the settings that meet the goal and leave the most to other classes.
/// It uses a load of its own, on a disk that no other program uses. Without --calibrate it holds a
/// setting and the weights of classes until it is ended, and reports whether the goal is met. It
/// saves the old settings in /run/forebay/DEV.json, and restores them at the end, or with --restore
/// after it was killed.
#[derive(Args)]
pub(crate) struct Options {
    /// The disk, such as nvme0n1: not a partition, and not a device above disks
    #[arg(long, alias = "disk", value_name = "DEV", required_unless_present = "restore")]
    device: Option<String>,
    /// The goal: CLASS:p95=2ms for reads, CLASS:writes:p95=5ms for writes; without a class for
    /// --calibrate
    #[arg(long, value_name = "GOAL", value_parser = Goal::parse, required_unless_present = "restore")]
    goal: Option<Goal>,
    /// The properties of the disk: a forebay.yaml of `forebay tune`, or an io-properties file
    #[arg(long, value_name = "FILE", required_unless_present = "restore")]
    properties: Option<PathBuf>,
    /// A class: NAME=CGROUP:WEIGHT, or NAME=process:PATTERN:WEIGHT for processes with PATTERN in their
    /// titles, which are moved into a cgroup
    #[arg(long, value_name = "CLASS")]
    class: Vec<ClassSpec>,
    /// The rate of the setting, in percent of the model, as --calibrate found it
    #[arg(long, value_name = "N", default_value_t = 80, value_parser = whole_number::within::<u32>(5..=150))]
    rate: u32,
    /// The latency above which the kernel lowers that rate, as a multiple of the goal, or off; as
    /// --calibrate found it
    #[arg(long, value_name = "N|off", default_value = "4", value_parser = Bound::parse)]
    bound: Bound,
    /// Find the settings that meet the goal and leave the most to other classes, in at most five
    /// minutes
    #[arg(long, requires = "dir", conflicts_with = "class")]
    calibrate: bool,
    /// Measure each setting of a grid once instead of searching, which takes six minutes
    #[arg(long, requires = "calibrate")]
    grid: bool,
    /// The place for the files of --calibrate: a directory on the disk, or with --overwrite-device
    /// the disk
    #[arg(long, value_name = "DIR", requires = "calibrate")]
    dir: Option<PathBuf>,
    /// Allow the data on the disk named with --dir to be destroyed
    #[arg(long, requires = "calibrate")]
    overwrite_device: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Restore the settings that a killed governor of this disk has changed
    #[arg(long, value_name = "DEV", conflicts_with_all = ["device", "goal", "calibrate"])]
    restore: Option<String>,
}

/// A latency bound in tenths of the goal.
#[derive(Clone, Copy, Debug)]
struct Bound(Option<u32>);

impl Bound {
    fn parse(text: &str) -> Result<Self, String> {
        let goals = text.parse::<f64>().ok().filter(|goals| (0.1..=100.0).contains(goals));
        match (text, goals) {
            ("off", _) => Ok(Self(None)),
            (_, Some(goals)) => Ok(Self(Some((goals * 10.0).round() as u32))),
            _ => Err("expected a number of goals from 0.1 to 100, or off".into()),
        }
    }
}

/// A latency, and whose it is.
#[derive(Clone, Debug)]
struct Goal {
    class: Option<String>,
    target: LatencyTarget,
}

impl Goal {
    fn parse(text: &str) -> Result<Self, String> {
        let (class, target) = match text.parse::<LatencyTarget>() {
            Ok(target) => (None, Ok(target)),
            Err(error) => match text.split_once(':') {
                Some((class, target)) => (Some(class.to_owned()), target.parse()),
                None => (None, Err(error)),
            },
        };
        let target = target.map_err(|error| error.to_string())?;
        if target.is_in_disk() {
            return Err(
                "a goal counts from when a request is passed to the kernel; leave `disk:` out"
                    .into(),
            );
        }
        Ok(Self { class, target })
    }
}

impl From<GovernError> for Failure {
    fn from(error: GovernError) -> Self {
        match error {
            GovernError::Missing(text) => Self::Input(text),
            GovernError::Failed(text) => Self::Run(text),
            GovernError::Interrupted => Self::Interrupted,
        }
    }
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if let Some(disk) = &options.restore {
        let text = if restore(disk)? { "restored" } else { "nothing to restore" };
        return print(&format!("{text}\n"));
    }
    let (Some(disk), Some(goal), Some(properties)) =
        (&options.device, &options.goal, &options.properties)
    else {
        return Err(Failure::Input("name --device, --goal and --properties".into()));
    };
    let machine = Machine::this();
    let disk = GovernedDisk::find(&machine, disk)?;
    let costs = info::disk_costs(properties)?;
    let plan = Plan { disk, goal: goal.target, costs };
    if options.calibrate {
        return options.calibrate(&plan, &machine);
    }
    let governing = options.governing(goal)?;
    if options.dry_run {
        plan.check(&machine)?;
        let mut text = lines(&plan, &machine, options.point())?;
        for class in &options.class {
            let _ = writeln!(text, "{class}");
        }
        return print(&text);
    }
    let interrupt = Interrupt::on_signals()?;
    govern(&plan, &machine, &governing, &|| interrupt.is_raised(), &mut |line| note(line))?;
    Ok(())
}

impl Options {
    fn point(&self) -> QosPoint {
        QosPoint { rate: self.rate, bound: self.bound.0 }
    }

    fn governing(&self, goal: &Goal) -> Result<Governing, Failure> {
        let named = |name: &String| self.class.iter().position(|class| class.name == *name);
        let goal_class = goal.class.as_ref().and_then(named).ok_or_else(|| {
            let example = "--goal db:p95=2ms --class db=system.slice/postgresql.service:1000";
            Failure::Input(format!(
                "the goal needs one of the classes of --class, such as {example}"
            ))
        })?;
        let mut names: Vec<&str> = self.class.iter().map(|class| class.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::Input(format!("the class {} is given twice", pair[0])));
        }
        Ok(Governing { classes: self.class.clone(), goal_class, point: self.point() })
    }

    fn calibrate(&self, plan: &Plan, machine: &Machine) -> Result<(), Failure> {
        let dir = self.dir.clone().unwrap_or_default();
        let mut place: Vec<OsString> = vec!["--dir".into(), dir.clone().into()];
        if let Some(properties) = &self.properties {
            place.extend(["--properties".into(), properties.clone().into()]);
        }
        place.extend(self.overwrite_device.then(|| "--overwrite-device".into()));
        check_place(plan, machine, &dir)?;
        if self.dry_run {
            let text = lines(plan, machine, self.point())?;
            let dir = dir.display();
            return print(&format!(
                "{text}then up to five minutes of reads and writes in {dir}, with other rates and bounds\n"
            ));
        }
        let program = std::env::current_exe()
            .map_err(|error| Failure::Run(format!("cannot find this program: {error}")))?;
        let load = CalibrationLoad { program, place, is_device: self.overwrite_device };
        let interrupt = Interrupt::on_signals()?;
        let is_ended = || interrupt.is_raised();
        let found = calibrate(plan, machine, &load, self.grid, &is_ended, &mut |line| note(line))?;
        self.report(plan, machine, &found)
    }

    fn report(&self, plan: &Plan, machine: &Machine, found: &Calibrated) -> Result<(), Failure> {
        let goal_ms = plan.goal.latency().as_secs_f64() * 1e3;
        let mut text = String::new();
        for (point, latency, work, times) in found.search.points() {
            let (latency, work) = (latency * goal_ms, 100.0 * work);
            let _ = writeln!(
                text,
                "{point}: {latency:.2} ms, others {work:.1} %, measured {times} times"
            );
        }
        let seconds = found.took.as_secs();
        let cut =
            if found.is_cut_short { "; the time was up before the search had ended" } else { "" };
        let _ = writeln!(
            text,
            "{seconds} s, {} writes of io.cost.qos, the longest {:.0} ms{cut}",
            found.writes.count,
            found.writes.longest.as_secs_f64() * 1e3
        );
        let Some((best, _)) = found.search.best() else {
            print(&text)?;
            return Err(Failure::NoRegion(format!("no setting meets {} on this disk", plan.goal)));
        };
        let _ =
            write!(text, "\nthe best for {}: {best}\n{}", plan.goal, lines(plan, machine, best)?);
        print(&text)
    }
}

/// The load has to be on the disk that is governed.
fn check_place(plan: &Plan, machine: &Machine, dir: &Path) -> Result<(), Failure> {
    let stack = Stack::of_path(machine, dir).map_err(|error| {
        Failure::Input(format!("cannot look up `{}`: {error}; check the path", dir.display()))
    })?;
    let device = stack.block_device().and_then(|number| BlockDevice::find(machine, number));
    let device = device.ok_or_else(|| {
        Failure::Input(format!("`{}` is not on a disk; name a directory on one", dir.display()))
    })?;
    let below = device.leaves();
    if below.iter().all(|disk| disk.disk == plan.disk.name) {
        return Ok(());
    }
    let below: Vec<&str> = below.iter().map(|disk| disk.disk.as_str()).collect();
    let (dir, disk) = (dir.display(), &plan.disk.name);
    Err(Failure::Input(format!("`{dir}` is on {}, not only on {disk}", below.join(", "))))
}

/// What is written where.
fn lines(plan: &Plan, machine: &Machine, point: QosPoint) -> Result<String, Failure> {
    let root = plan.check(machine)?;
    let [model, qos] = plan.lines(point);
    let root = root.display();
    Ok(format!("{root}/io.cost.model\n  {model}\n{root}/io.cost.qos\n  {qos}\n"))
}
