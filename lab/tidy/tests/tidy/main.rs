//! What holds of all sources: imports point down, files and functions are short, and old names are
//! gone.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

mod constants;
mod decisions;
mod documents;
mod errors;
mod formats;
mod layers;
mod lists;
mod names;
mod prose;
mod scheduler;
mod terms;

use std::collections::BTreeSet;
use std::path::Path;

use layers::{CRATES, ROOMS};
use tidy::{Calls, Graph, Source};

/// Lines of a file.
const FILE_LINES_MAX: usize = 600;
/// Files of the core that the calls of one dispatch lead to.
const DISPATCH_FILES_MAX: usize = 31;
/// Lines of a function, without blank ones and comments.
const FUNCTION_LINES_MAX: usize = 60;

/// Names that are not used any more, and what is instead.
const BANNED: &[(&str, &str)] = &[
    ("Agenda", "EventQueue"),
    ("Answer", "Status, or Completion"),
    ("Answered", "Completion, or a sample of one"),
    ("Board", "RunStatus"),
    ("Counted", "DiskCounters, or what is counted"),
    ("Crew", "LoadThreads"),
    ("Followed", "ResolvedPath"),
    ("Keeper", "Backing, or what keeps time"),
    ("Laid", "StripeLayout"),
    ("LaneId", "QueueId"),
    ("Look", "PeerCheck, CreditProbe, Reading, or DiskSample"),
    ("News", "ThreadEvent"),
    ("Outline", "SyntaxTree"),
    ("Rule", "PolicySpec"),
    ("Seat", "LoadThread"),
    ("Seen", "FileStat, or what was found"),
    ("Shelves", "FreeLists"),
    ("Told", "Callback, or what is reported"),
    ("Uncounted", "NoIostatDisk"),
    ("Unseen", "Unknown"),
    ("WAYS", "SCHEDULERS, or what else varies"),
    ("Way", "SubmissionPath, SchedulerVariant, or what else varies"),
    ("asked_parts", "active_parts"),
    ("beside", "during, with, or concurrent"),
    ("complaint", "error message"),
    ("complaints", "errors"),
    ("crews", "shards by their queue"),
    ("mend", "fix"),
    ("outline", "the syntax tree"),
    ("run_beside", "run_concurrently"),
    ("seat", "the index of the shard, or a place"),
    ("unasked", "queued"),
    ("stood_still", "stalled"),
    ("unseen", "unknown"),
    ("utils", "the name of what it does"),
    ("manager", "the name of what it does"),
    ("worthless", "unusable"),
];

/// Fails with all that was found, if anything was.
fn assert_none(found: impl IntoIterator<Item = String>, what: &str) {
    let found: Vec<String> = found.into_iter().collect();
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

fn each_crate(mut see: impl FnMut(&str, &Path)) {
    for member in tidy::crates().unwrap() {
        see(&member.name, &member.folder());
    }
}

/// The files of a crate by the folder that they are in.
fn all_sources(folder: &Path) -> Vec<Source> {
    let read = |name: &str| {
        let sources = tidy::read(&folder.join(name)).unwrap();
        sources
            .into_iter()
            .map(|source| Source { path: format!("{name}/{}", source.path), ..source })
            .collect::<Vec<_>>()
    };
    ["src", "tests", "examples", "benches"].map(read).concat()
}

fn graph(folder: &Path) -> Graph {
    Graph::new(&tidy::read(&folder.join("src")).unwrap())
}

/// The outermost module that a file belongs to.
fn room(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

#[test]
fn imports_go_in_no_circle() {
    let mut found = Vec::new();
    each_crate(|name, folder| {
        found.extend(graph(folder).circular().into_iter().map(|file| format!("{name} {file}")));
    });
    assert_none(found, "imports of these files lead back to them");
}

/// A reader of the scheduler goes from the verbs down, and never back.
#[test]
fn calls_of_the_core_go_in_no_circle() {
    each_crate(|name, folder| {
        if name == "forebay-core" {
            let calls = Calls::new(&tidy::read(&folder.join("src")).unwrap());
            assert_none(calls.circles(), "calls of these files lead back to them");
            let files = calls.files_from("poll_dispatch");
            let list = files.iter().copied().collect::<Vec<_>>().join(" ");
            assert!(files.len() <= DISPATCH_FILES_MAX, "{} files: {list}", files.len());
        }
    });
}

#[test]
fn imports_point_down() {
    let mut found = BTreeSet::new();
    each_crate(|name, folder| {
        let (_, rooms) = ROOMS.iter().find(|(of, _)| *of == name).unwrap_or_else(|| {
            panic!("the rooms of {name} are not listed from bottom to top");
        });
        let level = |room: &str| {
            let others = rooms.iter().position(|listed| *listed == "*");
            match rooms.iter().position(|listed| *listed == room) {
                _ if matches!(room, "lib" | "main") => rooms.len(),
                Some(level) => level,
                None => others.unwrap_or_else(|| panic!("{name}: the room {room} is not listed")),
            }
        };
        for (file, imports) in graph(folder).imports {
            let from = room(&file);
            for to in imports.iter().map(|import| room(import)).filter(|to| *to != from) {
                if level(to) >= level(from) {
                    found.insert(format!("{name} {from} {to}"));
                }
            }
        }
    });
    assert_none(found, "rooms that import from one that is not below them");
}

#[test]
fn crates_depend_on_those_below() {
    let level = |name: &str| {
        let found = CRATES.iter().position(|known| *known == name);
        found.unwrap_or_else(|| panic!("the crate {name} is not in the order of crates"))
    };
    each_crate(|name, folder| {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let (_, after) = manifest.split_once("[dependencies]\n").unwrap_or_default();
        let lines = after.lines().take_while(|line| !line.starts_with('['));
        for line in lines.filter(|line| line.starts_with("forebay") || line.starts_with("tidy")) {
            let dependency = line.split([' ', '.']).next().unwrap();
            assert!(level(dependency) < level(name), "{name} depends on {dependency}");
        }
    });
}

#[test]
fn files_are_short() {
    let mut found = Vec::new();
    each_crate(|name, folder| {
        let long = all_sources(folder).into_iter().filter(|file| file.lines > FILE_LINES_MAX);
        found.extend(long.map(|file| format!("{name} {}", file.path)));
    });
    assert_none(found, "files of more than 600 lines");
}

#[test]
fn functions_are_short() {
    let mut found = BTreeSet::new();
    each_crate(|name, folder| {
        for source in all_sources(folder) {
            let functions = tidy::functions(&source.code).into_iter();
            let long = functions.filter(|function| function.lines > FUNCTION_LINES_MAX);
            found.extend(long.map(|long| format!("{name} {} {}", source.path, long.name)));
        }
    });
    assert_none(found, "functions of more than 60 lines");
}

#[test]
fn old_names_are_gone() {
    let mut found = BTreeSet::new();
    each_crate(|name, folder| {
        for source in all_sources(folder).iter().filter(|_| name != "tidy") {
            for (word, _) in BANNED {
                let of_file = source.path.split(['/', '.']).any(|part| part == *word);
                if of_file || tidy::places(&source.code, word).next().is_some() {
                    found.insert(format!("{name} {} {word}", source.path));
                }
            }
        }
    });
    let instead = BANNED.iter().map(|(word, new)| format!("{word}: {new}")).collect::<Vec<_>>();
    let advice = format!("names that are not used any more ({})", instead.join("; "));
    assert_none(found, &advice);
}
