//! Each decision is in the list of decisions, and the code that it is about links to it and back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use tidy::root;

use super::assert_none;

const FOLDER: &str = "docs/decisions";

/// The records that a text names, whether they exist or not.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let rest = text.split("docs/decisions/").skip(1);
    let names = rest.map(move |rest| rest.split(|c| !is_name(c)).next().unwrap_or_default());
    names.map(|name| name.trim_end_matches('.'))
}

/// The paths of code that a record names in its line that begins with "Code:".
fn code(record: &str) -> BTreeSet<String> {
    let paragraphs = record.split("\n\n").filter(|paragraph| paragraph.starts_with("Code: "));
    let spans = paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
    spans.map(str::to_owned).collect()
}

/// The records by name, without the list.
fn records() -> BTreeMap<String, String> {
    let entries = fs::read_dir(root().join(FOLDER)).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let records = named.filter(|(name, _)| name != "README.md");
    records.map(|(name, path)| (name, fs::read_to_string(path).unwrap())).collect()
}

/// The files of Rust below the root, with their text.
fn sources() -> Vec<(String, String)> {
    let mut sources = Vec::new();
    for member in tidy::crates().unwrap().into_iter().filter(|member| member.name != "tidy") {
        for source in tidy::read(&member.folder().join("src")).unwrap() {
            let path = format!("{}/src/{}", member.path, source.path);
            let text = fs::read_to_string(root().join(&path)).unwrap();
            sources.push((path, text));
        }
    }
    sources
}

/// The records that the documentation of a module links to as its decisions.
fn decisions(text: &str) -> BTreeSet<&str> {
    text.lines().filter(|line| line.starts_with("//! Decision: ")).flat_map(named).collect()
}

#[test]
fn code_and_decisions_link_to_each_other() {
    let (records, sources) = (records(), sources());
    let mut found = Vec::new();
    for (path, text) in &sources {
        let missing = named(text).filter(|name| !records.contains_key(*name));
        found.extend(missing.map(|name| format!("{path}: there is no {name}")));
        let names_path =
            |name: &&str| records.get(*name).is_some_and(|text| code(text).contains(path));
        let one_way = decisions(text).into_iter().filter(|name| !names_path(name));
        found.extend(one_way.map(|name| format!("{name} does not name {path}")));
    }
    for (name, text) in &records {
        let paths = code(text);
        if paths.is_empty() {
            found.push(format!("{name} names no code"));
        }
        let links_here = |path: &&String| {
            let source = sources.iter().find(|(known, _)| known == *path);
            source.is_some_and(|(_, text)| decisions(text).contains(name.as_str()))
        };
        let one_way = paths.iter().filter(|path| !links_here(path));
        found.extend(one_way.map(|path| format!("{path} does not link to {name}")));
    }
    assert!(records.len() >= 40, "only {} decisions", records.len());
    assert_none(found, "decisions and their code");
}

#[test]
fn decisions_are_in_their_list_with_their_titles() {
    let list = fs::read_to_string(root().join(FOLDER).join("README.md")).unwrap();
    let mut found = Vec::new();
    for (name, text) in records() {
        let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
        let number = name.split('-').next().unwrap_or_default();
        if !list.contains(&format!("[{number}: {title}]({name})")) {
            found.push(format!("{name}: {title}"));
        }
        let missing = ["Context", "Decision"].into_iter();
        let missing = missing.filter(|section| !text.contains(&format!("\n## {section}\n")));
        found.extend(missing.map(|section| format!("{name} has no section {section}")));
    }
    assert_none(found, "decisions that are not listed, or lack a section");
}

/// Tests and sources that are given as evidence are there.
#[test]
fn paths_in_decisions_exist() {
    let (mut found, mut count) = (Vec::new(), 0);
    for (name, text) in records() {
        let spans = text.split('`').skip(1).step_by(2);
        let is_path = |span: &&str| {
            let (first, _) = span.split_once('/').unwrap_or_default();
            tidy::WINGS.contains(&first) && !span.contains(' ')
        };
        for path in spans.filter(is_path) {
            count += 1;
            if !root().join(path).exists() {
                found.push(format!("{name}: {path}"));
            }
        }
    }
    assert!(count > 60, "only {count} paths found");
    assert_none(found, "paths that do not exist");
}
