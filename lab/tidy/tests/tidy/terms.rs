//! Pages use the terms of docs/glossary.md, and not other words for the same.

use std::fs;

use tidy::places;

use super::prose::pages;
use super::{all_sources, assert_none, each_crate};

/// A page whose words are those of the sources.
const GENERATED: &str = "docs/scheduler-constants.md";

/// Words that pages do not use, and what is instead.
const INSTEAD: &[(&str, &str)] = &[
    ("anew", "again"),
    ("beside", "next to, or concurrent"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("passed no class", "unscheduled I/O"),
    ("passes no class", "unscheduled I/O"),
    ("so many", "this many, or the number"),
    ("told of", "reported"),
    ("tells of", "reports"),
    ("turn late", "late shards"),
    ("turns late", "a late shard"),
    ("whoever", "the noun"),
];

/// Those that comments do not use either.
const NOT_IN_COMMENTS: [&str; 4] = ["anew", "beside", "so many", "whoever"];

/// The text of a page without its code.
fn text_of(page: &str) -> String {
    let outside = page.split("```").step_by(2).collect::<String>();
    outside.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The words of `page` that have another one instead.
fn others(page: &str) -> Vec<&'static str> {
    let text = text_of(page).to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let found = INSTEAD.iter().filter(|(word, _)| places(&text, word).next().is_some());
    found.map(|(word, _)| *word).collect()
}

#[test]
fn pages_use_the_terms_of_the_glossary() {
    let mut found = Vec::new();
    for (page, path) in pages() {
        if page != GENERATED {
            let words = others(&fs::read_to_string(path).unwrap());
            found.extend(words.into_iter().map(|word| format!("{page}: {word}")));
        }
    }
    let instead: Vec<_> = INSTEAD.iter().map(|(word, new)| format!("{word}: {new}")).collect();
    assert_none(found, &format!("words that pages do not use ({})", instead.join("; ")));
}

#[test]
fn comments_use_plain_words() {
    let mut found = Vec::new();
    each_crate(|name, folder| {
        for source in all_sources(folder) {
            let text = fs::read_to_string(folder.join(&source.path)).unwrap();
            let comments = text.lines().map(str::trim_start).filter(|line| line.starts_with("//"));
            let words = others(&comments.collect::<Vec<_>>().join("\n"));
            let words = words.into_iter().filter(|word| NOT_IN_COMMENTS.contains(word));
            found.extend(words.map(|word| format!("{name} {}: {word}", source.path)));
        }
    });
    assert_none(found, "words that comments do not use");
}

#[test]
fn other_words_are_found_outside_of_code_alone() {
    assert_eq!(others("It Mends what\npasses no class, besides."), ["mends", "passes no class"]);
    assert!(others("`beside` in code\n```\nbeside\n```\n").is_empty());
}
