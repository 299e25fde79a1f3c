//! The README shows what the program prints and draws.
//!
//! After a change of the scheduler or of the output, `FOREBAY_BLESS=1 cargo test -p forebay-cli --test
//! program readme` writes the recorded run, the picture and the output in the README again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::loop_mount::Lab;
use crate::process::{Ended, run};
use crate::report::{forebay, numbers};

/// The recorded run of the picture, and the command of the README that draws it.
const RECORDED: &str = "docs/img/compaction.json";
const DRAW: &str =
    "forebay report docs/img/compaction.json --latency-of reads --out docs/img/read-latency.svg";
/// The least lines of output that the README shows.
const LINES_MIN: usize = 12;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `file` in the repository is `made`, or it is written.
fn check(file: &str, made: &str) {
    let path = root().join(file);
    if std::env::var_os("FOREBAY_BLESS").is_some() {
        fs::write(&path, made).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == made,
        "{file} is not what the program makes now; if the program is right, run `FOREBAY_BLESS=1 cargo \
         test -p forebay-cli --test program readme`"
    );
}

/// Runs a command line of the README, in the repository.
fn run_line(line: &str, arguments: &[&str]) -> Ended {
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[0], "forebay");
    let mut command = forebay(&words[1..]);
    let ended = run(command.args(arguments).current_dir(root()));
    assert_eq!(ended.code, Some(0), "{line}: {}", ended.stderr);
    ended
}

/// The README before the output that it shows, the command, the output, and the rest.
fn shown(readme: &str) -> (String, String, String, String) {
    let (before, rest) = readme.split_once("```console\n$ ").unwrap();
    let (line, rest) = rest.split_once('\n').unwrap();
    let (output, rest) = rest.split_once("```").unwrap();
    assert!(!rest.contains("```console"), "only one block is checked");
    (before.to_owned(), line.to_owned(), output.to_owned(), rest.to_owned())
}

#[test]
fn readme_shows_the_first_lines_that_its_command_prints() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (before, line, output, rest) = shown(&readme);
    let count = output.lines().count();
    assert!(count >= LINES_MIN, "{count} lines are shown");
    let printed = run_line(&line, &[]).stdout;
    let first: String = printed.lines().take(count).flat_map(|line| [line, "\n"]).collect();
    check("README.md", &format!("{before}```console\n$ {line}\n{first}```{rest}"));
}

#[test]
fn readme_picture_is_of_the_run_that_it_shows() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains(DRAW), "the README names the command that draws its picture");
    let lab = Lab::new();
    let page = lab.dir.path().join("page.html").display().to_string();
    let picture = lab.dir.path().join("picture.svg");
    let (_, line, ..) = shown(&readme);
    let arguments = ["--compare", "none", "--format", "json", "--report", &page];
    check(RECORDED, &run_line(&line, &arguments).stdout);

    let (draw, to) = DRAW.rsplit_once(' ').unwrap();
    run_line(draw, &[&picture.display().to_string()]);
    let drawn = fs::read_to_string(&picture).unwrap();
    check(to, &drawn);
    for words in ["unscheduled", "scheduled", "compaction begins", "prefers-color-scheme:dark"] {
        assert!(drawn.contains(words), "{words}");
    }
}

#[test]
fn latency_over_time_counts_from_the_intended_start() {
    let recorded = fs::read_to_string(root().join(RECORDED)).unwrap();
    let recorded: Value = serde_json::from_str(&recorded).unwrap();
    let reads = &recorded["runs"][0]["series"]["jobs"][0];
    let [all, disk] = ["latency_us", "disk_us"].map(|place| numbers(&reads[place]["max"]));
    assert!(all.iter().zip(&disk).all(|(all, disk)| all >= disk), "{all:?} {disk:?}");
    // without a scheduler there is no queue: the rest is the backlog
    assert!(all.iter().zip(&disk).any(|(all, disk)| *all > disk * 1.5), "{all:?} {disk:?}");
}
