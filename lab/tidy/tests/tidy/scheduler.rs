//! What docs/scheduler.md names exists, and its constants have the values that it states.

use std::fs;
use std::path::PathBuf;

use tidy::{constants, functions, root, strip};

use super::assert_none;

const DOCUMENT: &str = "docs/scheduler.md";
const SOURCES: &str = "crates/forebay-core/src";
/// Where paths of the document begin.
const FOLDERS: &[&str] = &[SOURCES, "crates/forebay-core/tests", "lab/forebay-sim/tests", ""];

/// The document without its blocks of code.
fn document() -> String {
    let text = fs::read_to_string(root().join(DOCUMENT)).unwrap();
    text.split("```").step_by(2).collect()
}

/// What stands in backticks on a line.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The one file that a path of the document is of.
fn file(path: &str) -> Option<PathBuf> {
    let mut found = FOLDERS.iter().map(|folder| root().join(folder).join(path));
    let found: Vec<PathBuf> = found.by_ref().filter(|path| path.exists()).collect();
    if let [file] = &found[..] { Some(file.clone()) } else { None }
}

/// What is wrong with a path, or a path and the function in it, if anything is.
fn error_in(span: &str) -> Option<String> {
    let (path, function) = match span.split_once(".rs:") {
        Some((path, function)) => (format!("{path}.rs"), Some(function)),
        None if span.ends_with(".rs") => (span.to_owned(), None),
        None if ["crates/", "lab/", "docs/"].iter().any(|first| span.starts_with(first)) => {
            (span.to_owned(), None)
        }
        None => return None,
    };
    let Some(file) = file(path.trim_end_matches("/...")) else {
        return Some(format!("`{span}`: there is no such file, or several"));
    };
    let code = strip(&function.map_or_else(String::new, |_| fs::read_to_string(file).unwrap()));
    let is_there = |name: &str| functions(&code).iter().any(|function| function.name == name);
    let missing = function.filter(|name| !is_there(name))?;
    Some(format!("`{span}`: there is no function {missing}"))
}

/// Name, file and value of each constant in the table of the document.
fn stated(document: &str) -> Vec<[&str; 3]> {
    let rows = document.lines().filter(|line| line.starts_with("| `") && line.contains("` in `"));
    rows.map(|row| {
        let spans: Vec<&str> = spans(row).collect();
        spans[..3].try_into().unwrap()
    })
    .collect()
}

/// What is wrong with a stated constant, if anything is.
fn error_of([name, path, value]: [&str; 3]) -> Option<String> {
    let text = fs::read_to_string(root().join(SOURCES).join(path)).unwrap_or_default();
    match constants(&text).into_iter().find(|constant| constant.name == name) {
        None => Some(format!("{name}: there is none in {path}")),
        Some(constant) if constant.value != value => {
            Some(format!("{name}: {} in {path}, and {value} in {DOCUMENT}", constant.value))
        }
        Some(_) => None,
    }
}

#[test]
fn files_and_functions_that_the_document_names_exist() {
    let document = document();
    let named: Vec<&str> = document.lines().flat_map(spans).collect();
    assert!(named.iter().filter(|span| span.contains(".rs:")).count() >= 60, "{named:?}");
    assert_none(named.into_iter().filter_map(error_in), DOCUMENT);
}

#[test]
fn constants_have_the_values_that_the_document_states() {
    let document = document();
    let stated = stated(&document);
    assert!((20..=30).contains(&stated.len()), "{} constants", stated.len());
    assert_none(stated.into_iter().filter_map(error_of), DOCUMENT);
}

#[test]
fn the_document_is_short() {
    let text = fs::read_to_string(root().join(DOCUMENT)).unwrap();
    let long = text.lines().filter(|line| line.chars().count() > 120);
    assert_none(long.map(str::to_owned), "lines of more than 120 columns");
    assert!(text.lines().count() <= 300, "{} lines", text.lines().count());
}

#[test]
fn errors_of_the_document_are_found() {
    for wrong in ["queue/no_such.rs", "queue/turn.rs:no_such", "mod.rs:new", "crates/no-such"] {
        assert!(error_in(wrong).is_some(), "{wrong}");
    }
    for right in ["queue/turn.rs:begin_turn", "virtual_time/late_shards.rs", "Budget::window"] {
        assert_eq!(error_in(right), None);
    }
    let of = |name, value| error_of([name, "queue/turn.rs", value]);
    assert_eq!(of("BLOCKED_NANOS_MAX", "100_000_000"), None);
    assert!(of("BLOCKED_NANOS_MAX", "1").is_some() && of("NO_SUCH", "1").is_some());
}
