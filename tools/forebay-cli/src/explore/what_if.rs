//! `forebay explore --what-if`: what classes would get of a disk whose region is known.

mod class_demand;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use forebay::properties::{DiskProperties, MixRegion, RegionGoal};
use forebay_config::Source;
use forebay_core::{LATENCY_GOAL_DEFAULT, Policy};
use forebay_explore::{Figures, Goal, Prediction, RADIUS_ONE, Shape, predict};
use forebay_load::job_file::JobFile;
use forebay_load::results::model::{ClassResult, PropertiesSource};
use forebay_report::{Table, paragraph, scaled};
use forebay_sim::simulation::{SchedulerConfig, Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;
use serde::Serialize;

use crate::console::{json, print};
use crate::disk::Disk;
use crate::failure::Failure;
use crate::properties_file;
use class_demand::ClassDemand;

/// Version of the JSON.
const VERSION: u32 = 1;

/// Which classes there would be.
#[derive(Args)]
pub(super) struct WhatIf {
    /// Predict what classes with these loads would get from the disk in this forebay.yaml, by its
    /// region for --goal; with --simulate, next to the results of the simulator
    #[arg(long, value_name = "forebay.yaml", requires = "load", conflicts_with = "from")]
    pub(super) what_if: Option<PathBuf>,
    /// A class: its name, its shares, and its load per second, as reads of 4 KiB or as bytes in
    /// writes of 128 KiB, such as queries:1000:reads=50000, log:200:writes=100MB (powers of 1024)
    /// or compaction:100:writes=max; may be repeated
    #[arg(long, value_name = "NAME:SHARES:LOAD", requires = "what_if")]
    load: Vec<ClassDemand>,
}

/// What would be, for programs.
#[derive(Serialize)]
struct Forecast {
    version: u32,
    /// The region that was taken.
    read_percentile: f64,
    latency_us: f64,
    /// The part of writes in the disk time, and how much of that is used and allowed.
    write_part: f64,
    time: f64,
    radius: f64,
    classes: Vec<ClassForecast>,
}

#[derive(Serialize)]
struct ClassForecast {
    name: String,
    shares: u32,
    writes: bool,
    /// Bytes written or reads per second; null for all.
    wanted: Option<f64>,
    predicted: f64,
    /// Whether requests wait without bound.
    is_less: bool,
    simulated: Option<Simulated>,
}

#[derive(Clone, Copy, Serialize)]
struct Simulated {
    rate: f64,
    disk_p50_us: f64,
    disk_p95_us: f64,
    disk_p99_us: f64,
}

impl WhatIf {
    /// Forecasts, where it is asked.
    pub(super) fn answer(
        &self,
        path: &Path,
        goals: &[Goal],
        disk: Option<&str>,
        is_json: bool,
    ) -> Result<(), Failure> {
        let twice = |index: usize| {
            let name = &self.load[index].name;
            self.load[..index].iter().any(|other| other.name == *name).then_some(name)
        };
        if let Some(name) = (0..self.load.len()).find_map(twice) {
            return Err(Failure::Input(format!("--load {name} is given twice; rename one")));
        }
        let properties = described(path, goals)?;
        let region = region(path, &properties)?;
        let prediction = self.predict(region);
        let simulated = disk.map(|name| self.simulate(name, &properties)).transpose()?;
        let answer = self.answer_of(region, &prediction, simulated.as_deref());
        if is_json { print(&json(&answer)?) } else { print(&answer.text()) }
    }

    fn predict(&self, region: &MixRegion) -> Prediction {
        let radii = region.radii.iter().map(|&radius| f64::from(radius) / f64::from(RADIUS_ONE));
        let figures = Figures {
            write_bandwidth: region.write_bandwidth as f64,
            read_iops: region.read_iops as f64,
        };
        let demands: Vec<_> = self.load.iter().map(ClassDemand::demand).collect();
        predict(&Shape::Radii(radii.collect()), figures, &demands)
    }

    fn answer_of(
        &self,
        region: &MixRegion,
        prediction: &Prediction,
        simulated: Option<&[ClassResult]>,
    ) -> Forecast {
        let class = |demand: &ClassDemand| {
            let found = simulated?.iter().find(|class| class.name == demand.name)?;
            let rate =
                if demand.writes { found.bandwidth_bytes_per_second as f64 } else { found.iops };
            Some(Simulated {
                rate,
                disk_p50_us: found.disk_us.p50,
                disk_p95_us: found.disk_us.p95,
                disk_p99_us: found.disk_us.p99,
            })
        };
        let classes = self.load.iter().zip(&prediction.grants).map(|pair| ClassForecast {
            name: pair.0.name.clone(),
            shares: pair.0.shares,
            writes: pair.0.writes,
            wanted: pair.0.rate,
            predicted: pair.1.rate,
            is_less: pair.1.is_less,
            simulated: class(pair.0),
        });
        let Prediction { write_part, time, radius, .. } = *prediction;
        Forecast {
            version: VERSION,
            read_percentile: region.read_percentile,
            latency_us: region.latency.as_secs_f64() * 1e6,
            write_part,
            time,
            radius,
            classes: classes.collect(),
        }
    }

    /// What the simulator says of each class on the disk called `name`, under the scheduler that
    /// knows the properties.
    fn simulate(
        &self,
        name: &str,
        properties: &DiskProperties,
    ) -> Result<Vec<ClassResult>, Failure> {
        let spec = DiskSpec::resolve(name)?;
        let known = Disk::new(properties, PropertiesSource::File)?;
        let (base_latency, latency_goal) = (known.base_latency, LATENCY_GOAL_DEFAULT);
        let policy = Policy::PaceWindow { latency_goal, base_latency };
        let text = self.load.iter().map(ClassDemand::job).collect::<String>();
        let jobs = JobFile::parse(&Source::new("--load", &text), None, 1)?;
        let mut config = SimulationConfig::new(jobs, spec.build(1));
        config.scheduler = SchedulerConfig {
            model: Some(known.model_under(&policy)),
            policy: Some(policy),
            duplex: known.duplex,
            ..SchedulerConfig::by_figures()
        };
        config.duration = Duration::from_secs(5);
        config.capacity = Some(spec.capacity());
        let outcome = Simulation::new(config).and_then(Simulation::run);
        let outcome =
            outcome.map_err(|error| Failure::Input(format!("on the disk {name}: {error}")))?;
        Ok(outcome.result.classes)
    }
}

/// The disk in the file, priced by its region for the goal if one is given.
fn described(path: &Path, goals: &[Goal]) -> Result<DiskProperties, Failure> {
    let shown = path.display();
    let goal = match goals {
        [] => None,
        [goal] => Some(RegionGoal {
            read_percentile: goal.percentile.number(),
            latency: Duration::from_secs_f64(goal.latency_us / 1e6),
        }),
        _ => {
            return Err(Failure::Input(String::from("--what-if takes one --goal; leave some out")));
        }
    };
    let mut disks = properties_file::load(path)?.disks;
    let count = disks.len();
    let Some(mut disk) = disks.pop().filter(|_| count == 1) else {
        return Err(Failure::Input(format!("`{shown}` describes {count} disks; keep one")));
    };
    disk.measured.region_goal = goal.or(disk.measured.region_goal);
    Ok(disk)
}

/// The region by which the scheduler would price mixes.
fn region<'a>(path: &Path, disk: &'a DiskProperties) -> Result<&'a MixRegion, Failure> {
    let (base_latency, latency_goal) = (disk.measured.base_latency, LATENCY_GOAL_DEFAULT);
    disk.region(&Policy::PaceWindow { latency_goal, base_latency }).ok_or_else(|| {
        Failure::Input(format!(
            "`{0}` holds no regions that the scheduler would use; run `forebay explore DIR -o {0}` \
             on the disk",
            path.display()
        ))
    })
}

impl Forecast {
    fn text(&self) -> String {
        let Self { read_percentile, latency_us, write_part, time, radius, .. } = self;
        let title = format!("By the region for p{read_percentile} = {latency_us:.0} us");
        // without a simulated disk there is nothing to stand in the last columns
        let columns = ["class", "shares", "wants", "gets", "simulated", "p95 in the disk"];
        let is_simulated = self.classes.iter().any(|class| class.simulated.is_some());
        let columns = if is_simulated { &columns[..] } else { &columns[..4] };
        let mut table = Table::new(&title, columns);
        for class in &self.classes {
            let rate = |rate: f64| {
                if class.writes {
                    format!("{:.1} MB/s", rate / 1e6)
                } else {
                    format!("{} reads/s", scaled(rate.round()))
                }
            };
            let simulated = class.simulated;
            let mut cells = vec![
                class.name.clone(),
                class.shares.to_string(),
                class.wanted.map_or_else(|| String::from("all"), rate),
                rate(class.predicted),
            ];
            if let Some(simulated) = simulated {
                cells.extend([rate(simulated.rate), format!("{:.0} us", simulated.disk_p95_us)]);
            }
            table.row(cells);
        }
        let mut text = format!("{table}\n");
        paragraph(
            &mut text,
            "",
            &format!(
                "{time:.2} s of disk time per second, counted by the straight line, of {radius:.2} \
                 that the region allows with {:.0} % writes in it. While no more is let through, \
                 {read_percentile} of 100 reads take no longer than {latency_us:.0} us in the disk.",
                write_part * 100.0
            ),
        );
        let less: Vec<&str> =
            self.classes.iter().filter(|class| class.is_less).map(|class| &*class.name).collect();
        if less.is_empty() {
            paragraph(
                &mut text,
                "",
                "Every class gets what it demands, so that none waits for long.",
            );
        } else {
            let less = less.join(", ");
            let said = format!(
                "These classes get less than they demand, and their requests wait \
                                without bound: {less}."
            );
            paragraph(&mut text, "", &said);
        }
        text
    }
}
