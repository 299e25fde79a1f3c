//! What is not tried on a machine that has no processor to spare.

use forebay_core::LatencyTarget;
use forebay_load::results::PROCESSOR_WAIT_MAX;
use forebay_load::results::model::RunResult;

use crate::console::note;

/// The latency target of the run that follows `before`. Where threads wait for a processor, requests
/// are late whatever the disk is sent, so a target that nobody `asks` for would hold it back for
/// nothing.
pub(super) fn target(
    before: &RunResult,
    target: Option<LatencyTarget>,
    asks: bool,
) -> Option<LatencyTarget> {
    let part = before.processor_wait.unwrap_or(0.0);
    let is_left_out =
        part >= PROCESSOR_WAIT_MAX && target == Some(LatencyTarget::OF_WINDOW) && !asks;
    if is_left_out {
        note(format_args!(
            "the machine is busy: threads waited {:.0} % of the time for a processor, for which the \
             default latency target would be missed; it is left out (--latency-target {} insists)",
            part * 100.0,
            LatencyTarget::OF_WINDOW
        ));
    }
    target.filter(|_| !is_left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_target_alone_is_left_out_where_threads_wait_for_a_processor() {
        let golden = include_str!("../../../forebay-load/tests/golden/run.json");
        let mut before: RunResult = serde_json::from_str(golden).unwrap();
        let default = Some(LatencyTarget::OF_WINDOW);
        let stated = "p95=1ms".parse::<crate::latency_target::TargetOption>().unwrap().0;
        before.processor_wait = Some(PROCESSOR_WAIT_MAX);
        assert_eq!(target(&before, default, false), None);
        assert_eq!(target(&before, default, true), default);
        assert_eq!(target(&before, stated, false), stated);
        for quiet in [None, Some(PROCESSOR_WAIT_MAX / 2.0)] {
            before.processor_wait = quiet;
            assert_eq!(target(&before, default, false), default);
        }
    }
}
