//! Each decision is in the list of decisions, and the code that it is about links to it and back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use tidy::root;

use super::assert_none;

const FOLDER: &str = "docs/decisions";

/// The files that a text names in the folder of decisions, whether they exist or not.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split("docs/decisions/").skip(1).filter_map(|rest| rest.split('`').next());
    names.filter(|name| name.ends_with(".md"))
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

/// The records that each file of Rust links to, by its path below the root.
fn links_of_code() -> BTreeMap<String, BTreeSet<String>> {
    let mut links: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, folder) in tidy::crates().unwrap() {
        for source in tidy::read(&folder.join("src")).unwrap() {
            let path = format!("crates/{name}/src/{}", source.path);
            let text = fs::read_to_string(root().join(&path)).unwrap();
            for record in named(&text) {
                links.entry(path.clone()).or_default().insert(record.to_owned());
            }
        }
    }
    links
}

#[test]
fn code_and_decisions_link_to_each_other() {
    let (records, links) = (records(), links_of_code());
    let mut found = Vec::new();
    for (path, names) in &links {
        let unnamed =
            |name: &&String| !records.get(*name).is_some_and(|text| code(text).contains(path));
        found.extend(
            names.iter().filter(unnamed).map(|name| format!("{name} does not name {path}")),
        );
    }
    for (name, text) in &records {
        let paths = code(text);
        if paths.is_empty() {
            found.push(format!("{name} names no code"));
        }
        let links_here =
            |path: &&String| !links.get(*path).is_some_and(|names| names.contains(name));
        found.extend(
            paths.iter().filter(links_here).map(|path| format!("{path} does not link to {name}")),
        );
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
