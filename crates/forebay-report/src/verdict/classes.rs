//! What is to be said of single classes.

use super::disk::time;
use super::{ClassFigures, DiskFigures, Finding, FindingKind};

/// A class that has less than this part of what its shares are is short of them.
const SHORT: f64 = 0.7;
/// A class waits if its requests do for so long, at the 99th percentile, in seconds,
const WAITS_SECONDS: f64 = 0.005;
/// and if some wait most of the time.
const WAITING: f64 = 0.5;
/// A limit is worth a word where it held a class back for this part of the span.
const LIMITED_PART: f64 = 0.1;
/// Below this part of the disk's time in use nobody takes from anybody.
const BUSY: f64 = 0.5;

pub(super) fn findings(figures: &DiskFigures) -> Vec<Finding> {
    let each = figures.classes.iter().flat_map(|class| {
        let short = by_limit(figures, class).or_else(|| below_share(figures, class));
        [errors(class), short]
    });
    each.flatten().collect()
}

/// Whether requests of the class waited throughout.
fn waits(class: &ClassFigures) -> bool {
    class.waiting >= WAITING && class.queue_p99 >= WAITS_SECONDS
}

/// The part of the disk time dispatched that the class would have by its shares, of what all those
/// have that wait and what the others leave them.
fn entitled(figures: &DiskFigures, class: &ClassFigures) -> f64 {
    let total: f64 = figures.classes.iter().map(|class| class.consumption).sum();
    let wanting = || figures.classes.iter().filter(|other| waits(other) || is(other, class));
    let taken: f64 = wanting().map(|class| class.consumption).sum();
    let shares: u32 = wanting().map(|class| class.shares).sum();
    // who wants no more than it has leaves the rest
    let content = total - taken;
    (figures.consumption.unwrap_or(total).max(total) - content) * f64::from(class.shares)
        / f64::from(shares.max(1))
}

fn is(one: &ClassFigures, other: &ClassFigures) -> bool {
    core::ptr::eq(one, other)
}

/// A class that its limit holds back.
fn by_limit(figures: &DiskFigures, class: &ClassFigures) -> Option<Finding> {
    let limited = class.limited_seconds / figures.seconds.max(f64::MIN_POSITIVE);
    if !waits(class) || limited < LIMITED_PART {
        return None;
    }
    let what = format!(
        "{} is starved by its limit: it had {:.0} % of the disk's time, and its requests waited \
         for {} at the 99th percentile",
        class.name,
        class.consumption * 100.0,
        time(class.queue_p99)
    );
    let remedy = "Raise the limit, or take it away: shares alone keep it from harming others";
    Some(Finding::new(FindingKind::StarvedByLimit, what, remedy).of_class(class))
}

/// A class that waits and has less than its shares, without any limit.
fn below_share(figures: &DiskFigures, class: &ClassFigures) -> Option<Finding> {
    let total: f64 = figures.classes.iter().map(|class| class.consumption).sum();
    let entitled = entitled(figures, class);
    let alone = figures.classes.iter().filter(|class| waits(class)).count() < 2;
    if !waits(class) || alone || total < BUSY || class.consumption >= entitled * SHORT {
        return None;
    }
    let what = format!(
        "{} waits and has {:.0} % of the disk's time, where its shares are {:.0} %",
        class.name,
        class.consumption * 100.0,
        entitled * 100.0
    );
    let remedy = "A thread that turns late, few requests at a time on each of many threads, or a \
                  limit of its group does that";
    Some(Finding::new(FindingKind::BelowShare, what, remedy).of_class(class))
}

fn errors(class: &ClassFigures) -> Option<Finding> {
    (class.errors > 0).then(|| {
        let what = format!("{} requests of {} failed", class.errors, class.name);
        let remedy = "See the system's log for errors of the device";
        Finding::new(FindingKind::Errors, what, remedy).of_class(class)
    })
}
