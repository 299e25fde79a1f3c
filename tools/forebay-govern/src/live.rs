//! Holds a setting while the real load runs.

use std::thread;
use std::time::{Duration, Instant};

use forebay_block::Machine;
use forebay_core::Op;

use crate::calibrate::percentile;
use crate::classes::{Class, ClassSpec};
use crate::error::GovernError;
use crate::governed::{Governed, Plan};
use crate::hierarchy::has_controller;
use crate::qos::QosPoint;
use crate::tracer::Tracer;

const LOOK: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);
/// Latencies are reported every this many seconds.
const REPORT_SECONDS: u32 = 10;
/// Latencies of fewer requests are not reported.
const REQUESTS_MIN: usize = 10;

/// A setting to hold, with the weights of classes.
#[derive(Clone, Debug)]
pub struct Governing {
    /// The classes.
    pub classes: Vec<ClassSpec>,
    /// The index in `classes` of the class whose latencies are reported.
    pub goal_class: usize,
    /// The setting.
    pub point: QosPoint,
}

/// Holds a setting and the weights of classes until `is_ended` returns true, then restores everything.
/// `say` gets messages for people. Every ten seconds one reports the latencies of the goal's class.
///
/// # Errors
/// A requirement is missing, the disk was removed, or a setting could not be restored.
pub fn govern(
    plan: &Plan,
    machine: &Machine,
    governing: &Governing,
    is_ended: &dyn Fn() -> bool,
    say: &mut dyn FnMut(String),
) -> Result<(), GovernError> {
    let mut governed = Governed::begin(plan, machine, say)?;
    let done = Live::begin(&mut governed, governing, say)
        .and_then(|mut live| live.run(governing.goal_class, is_ended, say));
    governed.end(done)
}

struct Live<'a, 'b> {
    governed: &'a mut Governed<'b>,
    /// `None` if another program uses the tracer.
    tracer: Option<Tracer>,
    classes: Vec<Class>,
    /// The number of lost events that was reported before.
    lost: u64,
}

impl<'a, 'b> Live<'a, 'b> {
    fn begin(
        governed: &'a mut Governed<'b>,
        governing: &Governing,
        say: &mut dyn FnMut(String),
    ) -> Result<Self, GovernError> {
        governed.turn_on(governing.point)?;
        let specs = governing.classes.iter().cloned();
        let classes: Vec<Class> = specs.map(|spec| Class::new(spec, governed)).collect();
        if !has_controller(governed.machine, &governed.root, "memory") {
            say("writes through the page cache are charged to no class, because memory is not on \
                 cgroup v2, and io.cost does not slow them down: start the kernel with cgroup_no_v1=all"
                .into());
        }
        let disk = &governed.plan.disk;
        let tracer = Tracer::begin(&mut governed.changes, governed.machine, disk);
        let tracer = tracer.map_err(|why| say(format!("latencies are not known: {why}"))).ok();
        let lost = lost_events(governed);
        Ok(Self { governed, tracer, classes, lost })
    }

    fn run(
        &mut self,
        goal_class: usize,
        is_ended: &dyn Fn() -> bool,
        say: &mut dyn FnMut(String),
    ) -> Result<(), GovernError> {
        let mut latencies = Vec::new();
        for second in 1u32.. {
            for class in &mut self.classes {
                class.refresh(self.governed)?.into_iter().for_each(&mut *say);
            }
            // a second from now: a governor that was stopped has nothing to make up for
            let until = Instant::now() + SECOND;
            while Instant::now() < until {
                if is_ended() {
                    return Ok(());
                }
                thread::sleep(LOOK);
                self.read(goal_class, &mut latencies)?;
            }
            if !self.governed.changes.has_disk() {
                let disk = &self.governed.plan.disk.name;
                return Err(GovernError::Failed(format!("the disk {disk} was removed")));
            }
            if second % REPORT_SECONDS == 0 && self.tracer.is_some() {
                say(self.status(&mut latencies));
                latencies.clear();
            }
        }
        Ok(())
    }

    fn read(
        &mut self,
        goal_class: usize,
        latencies: &mut Vec<Duration>,
    ) -> Result<(), GovernError> {
        let Some(tracer) = &mut self.tracer else { return Ok(()) };
        let class = &self.classes[goal_class];
        let (root, is_read) = (&self.governed.root, self.governed.plan.goal.op() == Op::Read);
        tracer.read(|done| {
            if done.is_read == is_read && class.has(root, done.cgroup) {
                latencies.push(done.latency);
            }
        })
    }

    fn status(&self, latencies: &mut [Duration]) -> String {
        let goal = self.governed.plan.goal;
        let lost = match lost_events(self.governed).saturating_sub(self.lost) {
            0 => String::new(),
            lost => format!("; {lost} events of the trace were lost"),
        };
        let requests = latencies.len();
        let latency = percentile(latencies, goal.permille()).filter(|_| requests >= REQUESTS_MIN);
        latency.map_or_else(
            || format!("{goal}: {requests} requests in {REPORT_SECONDS} s are too few{lost}"),
            |latency| {
                let is_kept = if latency <= goal.latency() { "kept" } else { "missed" };
                let ms = latency.as_secs_f64() * 1e3;
                format!("{goal}: {is_kept}, {ms:.2} ms of {requests} requests{lost}")
            },
        )
    }
}

fn lost_events(governed: &Governed) -> u64 {
    governed.changes.files.tracefs().map_or(0, |tracefs| tracefs.lost_events())
}
