//! How the disk learns what is free: with every delete, from time to time, or never.

use crate::finding::Finding;
use crate::sources::DISCARDS_2024;
use crate::subject::Subject;

/// Where systemd keeps what it starts.
const UNITS: [&str; 2] = ["etc/systemd/system", "run/systemd/system"];

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let (Some(mount), Some(device)) = (&subject.mount, &subject.device) else {
        return Vec::new();
    };
    // where it cannot be read, that is said already
    let Some(takes) = device.queue_number(subject.machine, "discard_max_bytes") else {
        return Vec::new();
    };
    if takes == 0 {
        return vec![Finding::fine("the device takes no discards")];
    }
    if mount.discards() {
        return vec![
            Finding::note("mounted with discard: deletes are discards")
                .why(
                    "64 deleted files of 32 MB per second took the p99 of 4000 reads per second \
                     from 0.26 to 6.2 ms, and the slowest from 0.3 to 65 ms",
                )
                .source(DISCARDS_2024)
                .fix(
                    "forebay rm -r PATH   # in place of rm: frees files in small steps; or mount with \
                     nodiscard, and run `forebay trim` in quiet hours, where there are any",
                ),
        ];
    }
    let timers = timers(subject);
    if !timers.is_empty() {
        return vec![
            Finding::note(format!("mounted without discard; {} trims", timers.join(", ")))
                .why("harmless for most of the day, and then the disk does little else for minutes")
                .fix(format!(
                    "sudo forebay trim {}   # in place of fstrim: at a pace; or see that it runs when \
                     nobody asks: systemctl list-timers '*fstrim*'",
                    mount.point.display()
                )),
        ];
    }
    if !subject.machine.has("etc/systemd/system") {
        return vec![Finding::unknown("whether fstrim runs: there is no systemd to ask")];
    }
    vec![
        Finding::warning("neither discard nor fstrim: the disk never learns what is free")
            .why(
                "what it takes for used it must keep and copy, so that writes become slower with \
                 every turn of the disk",
            )
            .source(DISCARDS_2024)
            .fix("sudo systemctl enable --now fstrim.timer"),
    ]
}

/// The enabled timers that trim.
fn timers(subject: &Subject<'_>) -> Vec<String> {
    let wanted = UNITS.iter().flat_map(|units| {
        let wants = subject.machine.names(units);
        let wants = wants.into_iter().filter(|name| name.ends_with(".wants"));
        wants
            .flat_map(|wants| subject.machine.names(format!("{units}/{wants}")))
            .collect::<Vec<_>>()
    });
    wanted.filter(|name| name.contains("fstrim") && name.ends_with(".timer")).collect()
}
