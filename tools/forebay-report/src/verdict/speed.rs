//! What a disk does of what its figures say.

use super::{DiskFigures, Finding, FindingKind};

/// Where work waited for less than this part of the span, nothing is said of the disk's speed.
const WAITED_MIN: f64 = 0.1;
/// A disk that does less of what its figures say does not do what they say,
const SPEED_HEALTHY: f64 = 0.9;
/// and one that does more neither.
const SPEED_ABOVE: f64 = 1.15;
/// Perhaps neither does one that is nearly empty, while requests wait for its rate, for this part of
/// the queues' time.
const IDLE_PART: f64 = 0.25;
/// It got slow if it does less than this part of what it did before.
pub const SLOWER: f64 = 0.85;

/// Whether it does clearly less than its figures say.
pub(super) fn is_too_slow(figures: &DiskFigures) -> bool {
    is_judged(figures) && figures.speed.is_some_and(|speed| speed < SPEED_HEALTHY)
}

/// Whether work waited for long enough to say something of the disk's speed.
fn is_judged(figures: &DiskFigures) -> bool {
    figures.waited_seconds >= figures.seconds * WAITED_MIN
}

/// The part of its figures that the disk reaches while it does not stall.
pub(super) fn speed(figures: &DiskFigures) -> Option<Finding> {
    let running = figures.waited_seconds - figures.stalls.seconds;
    let is_judged = running > 0.0 && running >= figures.seconds * WAITED_MIN;
    let speed = figures.speed.map(|speed| speed * figures.waited_seconds / running);
    let speed = speed.filter(|&speed| is_judged && speed > 0.0);
    match speed {
        Some(speed) if speed < SPEED_HEALTHY => Some(too_slow(figures, speed)),
        // requests that wait for the rate do not wait in vain where none goes faster without
        _ if figures.more_unscheduled == Some(false) => None,
        Some(speed) if speed > SPEED_ABOVE => {
            let what = format!("The disk does {:.0} % of its figures", speed * 100.0);
            let remedy = "They are too low for this mix: run `forebay tune DIR`";
            Some(Finding::new(FindingKind::ModelTooSlow, what, remedy))
        }
        _ => idle(figures),
    }
}

/// A disk that does less than its figures say.
fn too_slow(figures: &DiskFigures, speed: f64) -> Finding {
    let percent = speed * 100.0;
    let before = figures.speed_before.filter(|before| speed < before * SLOWER);
    let did = before.map(|before| format!("and did {:.0} %", before * 100.0));
    if let Some(did) = did.as_ref().filter(|_| !figures.mix_changed) {
        let what =
            format!("The disk became slow: it does {percent:.0} % of its figures, {did} before");
        let remedy = "Possible causes are garbage collection, a neighbour, used-up credits or a \
                      failing disk: wait, check the device (`smartctl`), and free space on it";
        return Finding::new(FindingKind::DiskGotSlow, what, remedy);
    }
    let did = did.map(|did| format!(", {did} of another mix of requests")).unwrap_or_default();
    let what = format!(
        "The disk does {percent:.0} % of its figures{did}: for this mix they are {:.0} % too high",
        (1.0 / speed - 1.0) * 100.0
    );
    let remedy = if figures.target.is_some() {
        "Run `forebay tune DIR`, and `forebay explore DIR` for mixes of reads and writes, unless \
         `--latency-target off` shows that the latency target is the reason"
    } else {
        "Run `forebay tune DIR`, and `forebay explore DIR` for mixes of reads and writes"
    };
    Finding::new(FindingKind::ModelTooFast, what, remedy)
}

/// A disk that is nearly empty while requests wait for its rate.
fn idle(figures: &DiskFigures) -> Option<Finding> {
    let all = figures.seconds * f64::from(figures.queues.max(1));
    let part = figures.blocked.pace_disk_idle / all.max(f64::MIN_POSITIVE);
    (part > IDLE_PART).then(|| {
        let what = format!(
            "Requests waited for the disk's rate for {:.0} % of the time while the disk was nearly \
             empty",
            part * 100.0
        );
        let remedy = if figures.more_unscheduled == Some(true) {
            "Without a scheduler the same load was faster, so its figures may be too low for this \
             mix: run `forebay tune DIR`, and `forebay explore DIR` for mixes"
        } else {
            "Its figures may be too low for this mix: if `forebay bench` shows that the load is \
             faster without a scheduler, run `forebay tune DIR`, and `forebay explore DIR` for \
             mixes"
        };
        Finding::new(FindingKind::ModelTooSlow, what, remedy)
    })
}
