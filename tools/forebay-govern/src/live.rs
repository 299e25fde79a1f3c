//! Keeping a goal while the real load runs.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use forebay_block::Machine;
use forebay_core::Op;

use crate::calibrate::percentile;
use crate::classes::{Class, ClassSpec};
use crate::error::GovernError;
use crate::governed::{Governed, Plan, QosWrites};
use crate::hierarchy::has_controller;
use crate::qos::QosPoint;
use crate::steer::{Action, Sample, Steering};
use crate::tracer::Tracer;

const LOOK: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);
/// Latencies of the last second are looked at, and of more where there are few, up to so many.
const LATENCY_SECONDS: usize = 5;
const REQUESTS_ENOUGH: usize = 100;
/// Fewer requests than these say nothing.
const REQUESTS_MIN: usize = 10;
/// Requests waited "all the time" where they did in this part of the looks.
const WAITED: f64 = 0.8;
/// How often the state is said, in seconds.
const SAY: u64 = 10;
const SECTOR: u64 = 512;

/// What is to be governed.
#[derive(Clone, Debug)]
pub struct Governing {
    /// The classes.
    pub classes: Vec<ClassSpec>,
    /// Whose goal is kept: the place in `classes`.
    pub goal_class: usize,
    /// The rate to begin with, in percent of the model.
    pub rate: u32,
}

/// Keeps the goal of a class until `is_ended`, and puts everything back; `say` gets lines for people.
///
/// # Errors
/// Something is missing, the disk has gone, or something could not be put back.
pub fn govern(
    plan: &Plan,
    machine: &Machine,
    governing: &Governing,
    is_ended: &dyn Fn() -> bool,
    say: &mut dyn FnMut(String),
) -> Result<QosWrites, GovernError> {
    let mut governed = Governed::begin(plan, machine)?;
    let done =
        Live::begin(&mut governed, governing, say).and_then(|mut live| live.run(is_ended, say));
    let writes = governed.writes;
    governed.end(done).map(|()| writes)
}

/// What the disk has done since it began: requests and bytes, read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Served {
    requests: [u64; 2],
    bytes: [u64; 2],
}

struct Live<'a, 'b> {
    governed: &'a mut Governed<'b>,
    /// `None` where somebody else traces.
    tracer: Option<Tracer>,
    classes: Vec<Class>,
    goal_class: usize,
    rate: u32,
    began: Instant,
    steering: Steering,
    /// Of the goal's class, in the latest seconds.
    latencies: Vec<Vec<Duration>>,
    /// Looks in this second, and those in which requests waited.
    looks: u32,
    waited: u32,
    served: Served,
    lost: u64,
}

impl<'a, 'b> Live<'a, 'b> {
    fn begin(
        governed: &'a mut Governed<'b>,
        governing: &Governing,
        say: &mut dyn FnMut(String),
    ) -> Result<Self, GovernError> {
        let &Governing { rate, goal_class, .. } = governing;
        governed.turn_on(QosPoint { rate, bound: None })?;
        let specs = governing.classes.iter().cloned();
        let classes: Vec<Class> = specs.map(|spec| Class::new(spec, governed)).collect();
        if !has_controller(governed.machine, &governed.root, "memory") {
            say("writes through the page cache are charged to no class, because memory is not on cgroup \
                 v2, and io.cost does not slow them down: start the kernel with cgroup_no_v1=all"
                .into());
        }
        let tracer =
            match Tracer::begin(&mut governed.changes, governed.machine, &governed.plan.disk) {
                Ok(tracer) => Some(tracer),
                Err(GovernError::Missing(why)) => {
                    say(format!(
                        "weights and rate stay as they are, for latencies are not known: {why}"
                    ));
                    None
                }
                Err(error) => return Err(error),
            };
        let steering = Steering::new(rate, classes[goal_class].weight, Duration::ZERO);
        let served = Served::of(governed);
        let lost = governed.changes.files.tracefs().map_or(0, |tracefs| tracefs.lost_events());
        let (began, latencies) = (Instant::now(), Vec::new());
        let (looks, waited) = (0, 0);
        Ok(Self {
            governed,
            tracer,
            classes,
            goal_class,
            rate,
            began,
            steering,
            latencies,
            looks,
            waited,
            served,
            lost,
        })
    }

    fn run(
        &mut self,
        is_ended: &dyn Fn() -> bool,
        say: &mut dyn FnMut(String),
    ) -> Result<(), GovernError> {
        for second in 1.. {
            for class in &mut self.classes {
                class.look(self.governed)?.into_iter().for_each(&mut *say);
            }
            self.watch(SECOND * second)?;
            if is_ended() {
                return Ok(());
            }
            let sample = self.sample();
            if self.tracer.is_none() {
                continue;
            }
            for action in self.steering.step(self.began.elapsed(), sample) {
                self.act(action, say)?;
            }
            if u64::from(second) % SAY == 0 {
                say(self.status(sample));
            }
        }
        Ok(())
    }

    /// Reads what is traced until so long after the beginning.
    fn watch(&mut self, until: Duration) -> Result<(), GovernError> {
        let goal = &self.classes[self.goal_class];
        let (root, is_read) = (&self.governed.root, self.governed.plan.goal.op() == Op::Read);
        let mut latencies = Vec::new();
        while self.began.elapsed() < until {
            thread::sleep(LOOK.min(until.saturating_sub(self.began.elapsed())));
            let Some(tracer) = &mut self.tracer else { continue };
            tracer.read(|done| {
                if done.is_read == is_read && goal.has(root, done.cgroup) {
                    latencies.push(done.latency);
                }
            })?;
            self.looks += 1;
            self.waited += u32::from(tracer.waiting() > 0);
        }
        let disk = &self.governed.plan.disk.name;
        if !Path::new("/sys/block").join(disk).join("stat").exists() {
            return Err(GovernError::Failed(format!("the disk {disk} has gone")));
        }
        self.latencies.insert(0, latencies);
        self.latencies.truncate(LATENCY_SECONDS);
        Ok(())
    }

    fn sample(&mut self) -> Sample {
        let plan = self.governed.plan;
        let mut all = Vec::new();
        for second in &self.latencies {
            if all.len() < REQUESTS_ENOUGH {
                all.extend_from_slice(second);
            }
        }
        let latency = percentile(&mut all, plan.goal.permille());
        let latency = latency.filter(|_| all.len() >= REQUESTS_MIN);
        let part = latency.map(|latency| latency.as_secs_f64() / plan.goal.latency().as_secs_f64());
        let before = std::mem::replace(&mut self.served, Served::of(self.governed));
        let part_of = |now: [u64; 2], then: [u64; 2]| {
            [0, 1].map(|index| now[index].saturating_sub(then[index]) as f64)
        };
        let requests = part_of(self.served.requests, before.requests);
        let used = plan.costs.cost(requests, part_of(self.served.bytes, before.bytes));
        let waits = f64::from(self.waited) >= WAITED * f64::from(self.looks.max(1));
        (self.looks, self.waited) = (0, 0);
        Sample { latency: part, used, waits }
    }

    fn act(&mut self, action: Action, say: &mut dyn FnMut(String)) -> Result<(), GovernError> {
        match action {
            Action::Weight(weight) => {
                let class = &mut self.classes[self.goal_class];
                say(format!("{}: weight {weight}", class.spec.name));
                class.set_weight(self.governed, weight)
            }
            Action::Rate(rate) => {
                say(format!("rate {rate} %"));
                self.rate = rate;
                self.governed.set(QosPoint { rate, bound: None })
            }
            Action::Cannot => {
                say("the goal cannot be kept: no weight and no rate does it".into());
                Ok(())
            }
        }
    }

    fn status(&mut self, sample: Sample) -> String {
        let goal = self.governed.plan.goal;
        let latency = sample.latency.map_or_else(
            || "few requests".into(),
            |part| format!("{:.2} ms", part * goal.latency().as_secs_f64() * 1e3),
        );
        let QosWrites { count, longest } = self.governed.writes;
        let lost = self.governed.changes.files.tracefs().map_or(0, |tracefs| tracefs.lost_events());
        let lost = match lost.saturating_sub(self.lost) {
            0 => String::new(),
            lost => format!(", {lost} events of the trace lost"),
        };
        format!(
            "{latency} for {goal}; {:.0} % of the disk used; rate {} %, weight {}; {count} writes of \
             io.cost.qos, the longest {:.0} ms{lost}",
            100.0 * sample.used,
            self.rate,
            self.classes[self.goal_class].weight,
            longest.as_secs_f64() * 1e3
        )
    }
}

impl Served {
    fn of(governed: &Governed) -> Self {
        let path = format!("sys/block/{}/stat", governed.plan.disk.name);
        let text = governed.machine.text(path).unwrap_or_default();
        let of = |index: usize| {
            text.split_whitespace().nth(index).and_then(|word| word.parse().ok()).unwrap_or(0_u64)
        };
        Self { requests: [of(0), of(4)], bytes: [of(2) * SECTOR, of(6) * SECTOR] }
    }
}
