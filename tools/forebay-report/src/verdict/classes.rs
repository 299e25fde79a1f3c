//! What is to be said of single classes.

use super::disk::time;
use super::{ClassFigures, DiskFigures, DiskPart, Finding, FindingKind};

/// A class that has less than this part of what its shares are is short of them.
const SHORT: f64 = 0.7;
/// A class waits if its requests do for so long, at the 99th percentile, in seconds,
const WAITS_SECONDS: f64 = 0.005;
/// and if some wait most of the time.
const WAITING: f64 = 0.5;
/// A limit is worth a word where it held a class back for this part of the span.
const LIMITED_PART: f64 = 0.1;
/// Who waited throughout for less than this many seconds is not judged by its shares.
const JUDGED_SECONDS: f64 = 1.0;

pub(super) fn findings(figures: &DiskFigures) -> Vec<Finding> {
    let each = figures.classes.iter().flat_map(|class| {
        let short = by_limit(figures, class).or_else(|| below_share(class));
        [errors(class), held(class), short]
    });
    each.flatten().collect()
}

/// Whether requests of the class waited throughout.
fn waits(class: &ClassFigures) -> bool {
    class.waiting >= WAITING && class.queue_p99 >= WAITS_SECONDS
}

/// A class that its limit holds back.
fn by_limit(figures: &DiskFigures, class: &ClassFigures) -> Option<Finding> {
    let limited = class.limited_seconds / figures.seconds.max(f64::MIN_POSITIVE);
    if !waits(class) || limited < LIMITED_PART {
        return None;
    }
    let what = format!(
        "{} is starved by its limit: it got {:.0} % of the disk's time, and the 99th percentile \
         of its waits was {}",
        class.name,
        class.consumption * 100.0,
        time(class.queue_p99)
    );
    let remedy = "Raise the limit, or remove it: shares alone protect the others";
    Some(Finding::new(FindingKind::StarvedByLimit, what, remedy).of_class(class))
}

/// A class that had less than its shares while it waited throughout, without any limit.
fn below_share(class: &ClassFigures) -> Option<Finding> {
    let DiskPart { seconds, had, by_shares } = class.while_waiting?;
    if seconds < JUDGED_SECONDS || class.queue_p99 < WAITS_SECONDS || had >= by_shares * SHORT {
        return None;
    }
    let what = format!(
        "{} always had requests waiting and got {:.0} % of the disk's time over {}, where its \
         shares are {:.0} %",
        class.name,
        had * 100.0,
        time(seconds),
        by_shares * 100.0
    );
    let remedy = "Possible causes are a thread that polls late, or few requests at a time on each \
                  of many threads";
    Some(Finding::new(FindingKind::BelowShare, what, remedy).of_class(class))
}

/// Requests that the disk, or who holds their permits, does not give back.
fn held(class: &ClassFigures) -> Option<Finding> {
    (class.held > 0).then(|| {
        let count = class.held;
        let (of, verb) = if count == 1 { ("request", "is") } else { ("requests", "are") };
        let what = format!(
            "{count} {of} of {} {verb} in the disk, or have their permits held, since {}",
            class.name,
            time(class.held_seconds)
        );
        let remedy = "The disk hangs, or permits are held during other work: see the system's log \
                      for errors of the device, and the log of the process for slow requests";
        Finding::new(FindingKind::StuckRequests, what, remedy).of_class(class)
    })
}

fn errors(class: &ClassFigures) -> Option<Finding> {
    (class.errors > 0).then(|| {
        let what = format!("{} requests of {} failed", class.errors, class.name);
        let remedy = "See the system's log for errors of the device";
        Finding::new(FindingKind::Errors, what, remedy).of_class(class)
    })
}
