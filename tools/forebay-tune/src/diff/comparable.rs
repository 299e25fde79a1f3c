//! Whether two runs measured the same thing in the same way.

use crate::error::Error;
use crate::run::Run;

/// Why a measurement that is about to begin as `run` could not be compared with `old`, if so.
///
/// # Errors
/// They have not the same budget, threads or disk, or the older one was interrupted.
pub fn check_beforehand(old: &Run, run: &Run, other_disk: bool) -> Result<(), Error> {
    check(old, &Run { complete: true, ..run.clone() }, other_disk)
}

/// Why `new` cannot be compared with `old`, if so.
pub(crate) fn check(old: &Run, new: &Run, other_disk: bool) -> Result<(), Error> {
    let differs = |what: &str, old: &str, new: &str, then: &str| {
        Err(Error::Run(format!("not comparable: {what} {old} before, {new} now; {then}")))
    };
    if !(old.complete && new.complete) {
        return Err(Error::Run(String::from(
            "not comparable: a run was interrupted; continue it with --resume",
        )));
    }
    if old.budget != new.budget {
        let then = format!("measure with --budget {}", old.budget);
        return differs("the budget was", &old.budget, &new.budget, &then);
    }
    let [limits, threads] =
        [[old.written_max, new.written_max], [old, new].map(|run| u64::from(run.target.threads))];
    let unlike = |[old, new]: [u64; 2]| (old != new).then(|| (old.to_string(), new.to_string()));
    if let Some((old, new)) = unlike(limits) {
        let then = format!("measure with --write-limit {old}");
        return differs("the write limit was", &old, &new, &then);
    }
    if let Some((old, new)) = unlike(threads) {
        return differs("threads were", &old, &new, "measure where there are as many processors");
    }
    if old.target.backend != new.target.backend {
        let then = "measure where both have the same";
        return differs("I/O was by", &old.target.backend, &new.target.backend, then);
    }
    if !other_disk && !old.target.is_same_disk(&new.target) {
        let [old, new] = [old, new].map(|run| run.target.disk_name());
        return differs("the disk was", &old, &new, "add --other-disk if that is intended");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::target::TargetInfo;

    fn run(disks: &[&str], path: &str) -> Run {
        let target = TargetInfo {
            disks: disks.iter().map(ToString::to_string).collect(),
            paths: vec![path.to_owned()],
            ..TargetInfo::default()
        };
        Run { complete: true, ..Run::new(&Budget::QUICK, target) }
    }

    #[test]
    fn incomparable_runs_are_refused_with_reason_and_advice() {
        let old = run(&["nvme0n1"], "/a");
        let changed = |change: fn(&mut Run)| {
            let mut new = run(&["nvme0n1"], "/b");
            change(&mut new);
            check(&old, &new, false).map_err(|error| error.to_string())
        };
        assert_eq!(changed(|_| {}), Ok(()), "another directory on the same disk");
        for (change, words) in [
            ((|run| run.complete = false) as fn(&mut Run), "interrupted"),
            (|run| run.budget = String::from("standard"), "--budget quick"),
            (|run| run.written_max = 1, "--write-limit"),
            (|run| run.target.threads = 9, "threads"),
            (|run| run.target.backend = String::from("threads"), "I/O was by"),
            (|run| run.target.disks = vec![String::from("sda")], "nvme0n1 before, sda now"),
        ] {
            let said = changed(change).unwrap_err();
            assert!(said.contains(words) && said.starts_with("not comparable"), "{said}");
        }
    }

    #[test]
    fn a_disk_without_a_name_is_known_by_its_directory() {
        assert!(check(&run(&[], "/a"), &run(&[], "/a"), false).is_ok());
        assert!(check(&run(&[], "/a"), &run(&[], "/b"), false).is_err());
        assert!(check(&run(&[], "/a"), &run(&["sda"], "/a"), false).is_err());
        assert!(check(&run(&[], "/a"), &run(&["sda"], "/b"), true).is_ok());
    }
}
