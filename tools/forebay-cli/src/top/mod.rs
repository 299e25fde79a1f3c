//! `forebay top`: what a process that serves metrics does now.

mod class_table;
mod columns;
mod endpoint;
mod figures;
mod open_metrics;
mod screen;
mod view;

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use self::endpoint::Endpoint;
use self::open_metrics::Scrape;
use self::screen::Screen;
use crate::console::{Format, json, print};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::span;

/// How often is looked for an interrupt and for another size of the terminal.
const LOOK: Duration = Duration::from_millis(100);

/// An endpoint renders its text at most once in each 250 ms.
const INTERVAL_MIN: Duration = Duration::from_millis(300);

/// What the columns are.
const COLUMNS: &str = "\
Columns of disks: `used` is the dispatched disk time; `speed` the throughput as a part of the \
figures while work waited (90 % or more is healthy); `window` the maximum disk time in flight.
Columns of classes: `asked` is the part of the shares of all classes with requests (classes in a \
group divide that of the group), `got` the part of the disk time; `wait` and `disk` are present \
numbers of requests; `p99 q` and `p99 disk` are times in the queue and in the disk, and `max q` is \
the longest time in any queue since the class was added (in terminals of 89 columns or more, and \
in JSON). `why` is the main reason why requests waited: pace (the disk's rate is used up), window \
(the window is full), limit (of the class), ahead (other threads go first), pace? (the rate is \
used up though the disk is nearly empty: its figures may be too low).
Lines with ! state a problem and what to do.";

/// Show the disks, classes and problems of a running process, from the metrics that it serves (for
/// example with `bench --metrics`).
#[derive(Args)]
#[command(after_help = COLUMNS)]
pub(crate) struct Options {
    /// The address of its metrics, such as 127.0.0.1:9180 or http://host:9180/metrics
    #[arg(value_name = "ADDRESS", value_parser = Endpoint::parse)]
    endpoint: Endpoint,
    /// Print one interval as text, and exit
    #[arg(long)]
    once: bool,
    /// The interval of the figures, and of the updates of a live view
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// The output format of one interval; text has lines of 80 columns
    #[arg(long, value_enum, default_value_t = Format::Text, requires = "once")]
    format: Format,
}

/// What is there at one moment.
struct Sample {
    at: Instant,
    scrape: Scrape,
}

fn interval(text: &str) -> Result<Duration, String> {
    span::parse(text)
        .ok()
        .filter(|length| (INTERVAL_MIN..=Duration::from_hours(1)).contains(length))
        .ok_or_else(|| String::from("expected 300ms to 1h, such as 1s"))
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let before = sample(&options.endpoint).map_err(Failure::Run)?;
    if options.once {
        once(options, &interrupt, &before)
    } else {
        live(options, &interrupt, before)
    }
}

fn sample(endpoint: &Endpoint) -> Result<Sample, String> {
    let text = endpoint.get()?;
    let scrape =
        open_metrics::parse(&text).map_err(|error| format!("{}: {error}", endpoint.name()))?;
    Ok(Sample { at: Instant::now(), scrape })
}

fn once(options: &Options, interrupt: &Interrupt, before: &Sample) -> Result<(), Failure> {
    let until = before.at + options.interval;
    while Instant::now() < until {
        interrupt.check()?;
        thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
    }
    let now = sample(&options.endpoint).map_err(Failure::Run)?;
    let shown = between(before, &now);
    let name = options.endpoint.name();
    match options.format {
        Format::Json => print(&json(&view::json(name, &shown))?),
        Format::Text => print(
            &(view::lines(name, &shown, class_table::COLUMNS_WITHOUT_TERMINAL).join("\n") + "\n"),
        ),
    }
}

fn between(before: &Sample, now: &Sample) -> figures::Interval {
    let seconds = (now.at - before.at).as_secs_f64().max(f64::MIN_POSITIVE);
    figures::between(&before.scrape, &now.scrape, seconds)
}

/// Until the user has seen enough. A process that is gone may come again.
fn live(options: &Options, interrupt: &Interrupt, mut before: Sample) -> Result<(), Failure> {
    let failed = |error| Failure::Run(format!("cannot write to the terminal: {error}"));
    let Some(screen) = Screen::begin().map_err(failed)? else {
        let text = "a live view needs a terminal: --once prints one interval";
        return Err(Failure::Input(text.into()));
    };
    let mut shown: Option<figures::Interval> = None;
    let mut trouble = None;
    let mut next = before.at + options.interval;
    loop {
        let size = Screen::size();
        screen.show(&page(options, shown.as_ref(), trouble.as_deref(), size.0)).map_err(failed)?;
        while Instant::now() < next && Screen::size() == size && !interrupt.is_raised() {
            thread::sleep(LOOK.min(next.saturating_duration_since(Instant::now())));
        }
        if interrupt.is_raised() {
            return Ok(());
        }
        if Instant::now() < next {
            continue;
        }
        match sample(&options.endpoint) {
            Ok(now) => {
                (shown, trouble) = (Some(between(&before, &now)), None);
                before = now;
            }
            Err(error) => trouble = Some(error),
        }
        next = Instant::now() + options.interval;
    }
}

fn page(
    options: &Options,
    shown: Option<&figures::Interval>,
    trouble: Option<&str>,
    columns: usize,
) -> Vec<String> {
    let mut lines = trouble.map(|trouble| view::broken("! ", trouble, columns)).unwrap_or_default();
    match shown {
        Some(interval) => lines.extend(view::lines(options.endpoint.name(), interval, columns)),
        None => lines.push(format!("forebay at {}: counting", options.endpoint.name())),
    }
    lines
}
