//! Names are made of the field's words: those of the glossary, and those of a list next to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use tidy::root;

use super::assert_none;

/// The crates that applications link.
const LIBRARY: &[&str] = &[
    "forebay-core",
    "forebay-driver",
    "forebay-block",
    "forebay-config",
    "forebay",
    "forebay-object-store",
];
const LIST: &str = "docs/terms.md";
const ENDINGS: &[&str] = &["s", "es", "d", "ed", "ing", "er"];

/// The words of a name in any case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let begins = letter.is_ascii_uppercase()
            && (at.checked_sub(1).is_some_and(|before| letters[before].is_ascii_lowercase())
                || letters.get(at + 1).is_some_and(char::is_ascii_lowercase));
        if begins || !letter.is_ascii_alphabetic() {
            words.push(String::new());
        }
        if letter.is_ascii_alphabetic() {
            words.last_mut().unwrap().push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| word.len() > 1);
    words
}

/// Public types and modules, files, metrics and keys of files.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for member in tidy::crates().unwrap() {
        if !LIBRARY.contains(&member.name.as_str()) {
            continue;
        }
        let listing = root().join(format!("docs/api/{}.txt", member.name));
        for line in fs::read_to_string(listing).unwrap().lines() {
            let mut parts = line.split(' ').skip(1);
            let kind = parts.next().unwrap_or_default();
            if ["struct", "enum", "trait", "mod", "type"].contains(&kind) {
                let path = parts.next().unwrap_or_default();
                let path = path.split(['<', '(']).next().unwrap_or_default();
                names.extend(path.rsplit("::").next().map(str::to_owned));
            }
        }
        for source in tidy::read(&member.folder().join("src")).unwrap() {
            names.extend(source.path.trim_end_matches(".rs").split('/').map(str::to_owned));
        }
    }
    let metrics = fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let spans = metrics.split('`').skip(1).step_by(2);
    names.extend(spans.filter_map(|span| span.strip_prefix("forebay_")).map(str::to_owned));
    let formats = fs::read_to_string(root().join("docs/formats.md")).unwrap();
    let rows = formats.lines().filter_map(|line| line.strip_prefix("| `"));
    names.extend(rows.filter_map(|row| row.split('`').next()).map(str::to_owned));
    names
}

/// The words of the glossary's terms, and of the list.
fn known() -> BTreeSet<String> {
    let glossary = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let terms = glossary.lines().filter(|line| line.starts_with("| "));
    let mut known: BTreeSet<String> =
        terms.filter_map(|row| row.split('|').nth(1)).flat_map(words).collect();
    known.extend(listed());
    known
}

fn listed() -> BTreeSet<String> {
    let list = fs::read_to_string(root().join(LIST)).unwrap();
    let blocks = list.split("```").skip(1).step_by(2);
    blocks
        .flat_map(|block| block.strip_prefix("text").unwrap_or(block).split_whitespace())
        .map(str::to_owned)
        .collect()
}

/// Whether a word is there, or another form of it.
fn is_among(known: &BTreeSet<String>, word: &str) -> bool {
    known.contains(word)
        || ENDINGS.iter().any(|ending| {
            known.contains(&format!("{word}{ending}"))
                || word.strip_suffix(ending).is_some_and(|stem| known.contains(stem))
        })
}

#[test]
fn names_are_made_of_the_words_of_the_field() {
    let known = known();
    let mut unknown: BTreeMap<String, String> = BTreeMap::new();
    let names = names();
    assert!(names.len() > 500, "only {} names found", names.len());
    for name in names {
        let new = words(&name).into_iter().filter(|word| !is_among(&known, word));
        unknown.extend(new.map(|word| (word, name.clone())));
    }
    let found = unknown.into_iter().map(|(word, name)| format!("{word} (in {name})"));
    assert_none(found, "words of names that are neither in docs/glossary.md nor in docs/terms.md");
}

#[test]
fn a_name_is_taken_apart_in_any_case() {
    assert_eq!(words("DiskTimeIOPSMax"), ["disk", "time", "iops", "max"]);
    assert_eq!(words("read_iops_sustained"), ["read", "iops", "sustained"]);
}

/// A word that no name has any more would let an odd name pass.
#[test]
fn every_word_of_the_list_is_used() {
    let used: BTreeSet<String> = names().iter().flat_map(|name| words(name)).collect();
    let unused = listed().into_iter().filter(|word| !is_among(&used, word));
    assert_none(unused, "words of docs/terms.md that no name has");
}
