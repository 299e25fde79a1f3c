//! Stories in words: those of `forebay top --once` from two scrapes, and on the page of the run.

use std::path::Path;
use std::process::Command;

use forebay_load::results::model::RunResult;
use serde_json::Value;

use crate::answers::{ok, serve};
use crate::stories::STORIES;
use crate::story::{DISK, HEALTHY, Run, Story};

/// Disks, and how many requests of a class on a shard keep them busy.
const DISKS: [(&str, u32); 5] = [
    (DISK, 4),
    (include_str!("../../../../lab/forebay-sim/presets/four-channels.yaml"), 32),
    (include_str!("../../../../lab/forebay-sim/presets/gp3.yaml"), 32),
    (include_str!("../../../../lab/forebay-sim/presets/azure-p30.yaml"), 32),
    (include_str!("../../../../lab/forebay-sim/presets/samsung-850-pro.yaml"), 128),
];
const SEEDS: [u64; 3] = [1, 2, 3];
/// When it goes wrong, and when the run ends.
const SECONDS: (u64, u64) = (4, 12);

fn forebay(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(arguments);
    command
}

fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What `top` says of what was between two scrapes: for programs, and for people.
fn top(scrapes: &[String; 2]) -> (Value, String) {
    let shown = |format: &str| {
        let address = serve(&scrapes.each_ref().map(|text| ok(text)));
        stdout(
            forebay(&["top", &address, "--once", "--interval", "300ms"]).args(["--format", format]),
        )
    };
    (serde_json::from_str(&shown("json")).unwrap(), shown("text"))
}

/// What the page of a run says was found, line by line.
fn page(dir: &Path, run: &RunResult) -> Vec<String> {
    let [results, page] = ["run.json", "page.html"].map(|name| dir.join(name));
    std::fs::write(&results, serde_json::to_string(run).unwrap()).unwrap();
    stdout(forebay(&["report"]).arg(&results).arg("--out").arg(&page));
    let html = std::fs::read_to_string(page).unwrap();
    let found = html.split("What was found").nth(1).unwrap().split("<ul>").nth(1).unwrap();
    let found = found.split("</ul>").next().unwrap().split("<li").skip(1);
    found.map(str::to_owned).collect()
}

/// Runs a story on one disk, and reads the verdict on it.
fn check_findings(story: &Story, disk: (&str, u32), seed: u64) {
    let (kind, words) = story.says.unwrap();
    let run = Run {
        disk: disk.0,
        seed,
        parallelism: disk.1,
        trouble_seconds: SECONDS.0,
        seconds: SECONDS.1,
    };
    let mut scrapes = [String::new(), String::new()];
    let result = story.run(run, &mut |second, text| {
        scrapes[usize::from(second > SECONDS.0)] = text.to_owned();
    });
    let name = format!("{}, seed {seed}, on {:.60}", story.name, disk.0);
    let (of_top, text) = top(&scrapes);
    let findings = &of_top["disks"][0]["findings"];
    assert_eq!(findings[0]["kind"], kind, "{name}: top says {text}");
    // a terminal breaks lines
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(words), "{name}: top says {text}");
    let dir = tempfile::tempdir().unwrap();
    let found = page(dir.path(), &result);
    assert!(found[0].contains(words), "{name}: the page says {found:?}");
    if kind == "healthy" {
        assert_eq!(findings.as_array().unwrap().len(), 1, "{name}: {findings}");
        let warns = found.iter().any(|line| line.contains("class=\"warns\""));
        assert!(!warns && found.len() == 1, "{name}: the page says {found:?}");
    }
}

/// On all disks, those side by side.
fn told_on_all_disks(story: &Story) {
    for seed in SEEDS {
        std::thread::scope(|scope| {
            DISKS
                .iter()
                .for_each(|&disk| _ = scope.spawn(move || check_findings(story, disk, seed)));
        });
    }
}

#[test]
fn each_story_is_told_in_words_by_top_and_on_its_page() {
    STORIES.iter().filter(|story| story.says.is_some()).for_each(told_on_all_disks);
}

/// A shard that waits for a slow disk alone polls when the disk answers, however late that is.
#[test]
fn threads_that_wait_for_a_hard_disk_under_a_whole_datastore_are_not_called_late() {
    let story = Story {
        name: "a whole datastore",
        jobs: Some(include_str!("../../../../examples/datastore.yaml")),
        ..HEALTHY
    };
    for disk in [
        include_str!("../../../../lab/forebay-sim/presets/hdd-7200rpm.yaml"),
        include_str!("../../../../lab/forebay-sim/presets/gp3.yaml"),
    ] {
        for seed in SEEDS {
            let run = Run { disk, seed, parallelism: 1, trouble_seconds: 2, seconds: 12 };
            let mut scrapes = [String::new(), String::new()];
            story.run(run, &mut |second, text| {
                scrapes[usize::from(second > run.trouble_seconds)] = text.to_owned();
            });
            let (found, text) = top(&scrapes);
            let findings = found["disks"][0]["findings"].as_array().unwrap();
            let blames = |finding: &&Value| {
                ["turns-late", "shard-stalled"].contains(&finding["kind"].as_str().unwrap())
            };
            assert!(!findings.iter().any(|finding| blames(&finding)), "{seed}: {text}");
        }
    }
}
