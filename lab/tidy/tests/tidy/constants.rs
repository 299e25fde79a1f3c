//! The constants of the scheduler stand in docs/scheduler-constants.md, each with its unit and reason.

use std::fmt::Write as _;
use std::fs;

use tidy::{Constant, constants};

use super::assert_none;

const SOURCES: &str = "crates/forebay-core/src";
const DOCUMENT: &str = "docs/scheduler-constants.md";

/// A constant whose documentation begins so is no parameter, and not in the document.
const ENCODING: &str = "Encoding: ";

/// What the document begins with.
const HEAD: &str = "# Constants of the scheduler

This is every numeric constant of `crates/forebay-core/src`, by file, with its value as written there. Left
out are constants whose documentation begins with \"Encoding:\", such as the bits of a packed word or a mark
for \"none\". Tests in `lab/tidy` compare this file with the sources. After a change of a constant or its
documentation, write the file with

    FOREBAY_BLESS=1 cargo test -p tidy constants
";

/// The files of the core that have constants, with these.
fn files() -> Vec<(String, Vec<Constant>)> {
    let folder = tidy::root().join(SOURCES);
    let sources = tidy::read(&folder).unwrap().into_iter();
    let paths = sources.map(|source| source.path).filter(|path| !is_test(path));
    let read = |path: String| {
        let constants = constants(&fs::read_to_string(folder.join(&path)).unwrap());
        (path, constants)
    };
    paths.map(read).filter(|(_, constants)| !constants.is_empty()).collect()
}

/// Whether a file is compiled for tests only.
fn is_test(path: &str) -> bool {
    path.contains("tests")
}

/// A documentation comment as text of a table's cell: links to code are only code.
fn cell(doc: &str) -> String {
    let mut text = String::new();
    let mut rest = doc;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((code, after)) = link.split_once("`]") else { break };
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        write!(text, "{before}`{code}`").unwrap();
        rest = target.map_or(after, |(_, after)| after);
    }
    format!("{text}{rest}").replace('|', "\\|")
}

fn document(files: &[(String, Vec<Constant>)]) -> String {
    let mut text = HEAD.to_owned();
    for (path, constants) in files {
        let mut rows = String::new();
        for constant in constants.iter().filter(|constant| !constant.doc.starts_with(ENCODING)) {
            let Constant { name, value, doc, .. } = constant;
            writeln!(rows, "| `{name}` | `{value}` | {} |", cell(doc)).unwrap();
        }
        if !rows.is_empty() {
            let head = "| constant | value | what it is, its unit and its reason |\n|---|---|---|";
            write!(text, "\n## {path}\n\n{head}\n{rows}").unwrap();
        }
    }
    text
}

/// What is wrong with the documentation of a constant, if anything is.
fn error_in(doc: &str) -> Option<&'static str> {
    let doc = doc.strip_prefix(ENCODING).unwrap_or(doc);
    let continues = ["And ", "Or ", "But "].iter().any(|word| doc.starts_with(word));
    match doc {
        "" => Some("has no documentation"),
        _ if !doc.starts_with(char::is_uppercase) => Some("does not begin with a capital letter"),
        _ if continues => Some("continues the item above"),
        _ if !doc.ends_with('.') => Some("does not end with a full stop"),
        _ => None,
    }
}

#[test]
fn constants_are_in_the_document() {
    let files = files();
    let known: usize = files.iter().map(|(_, constants)| constants.len()).sum();
    assert!(known > 150, "only {known} constants found");
    let (path, written) = (tidy::root().join(DOCUMENT), document(&files));
    if std::env::var_os("FOREBAY_BLESS").is_some() {
        fs::write(&path, &written).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(recorded.lines()).find(|(new, old)| new != old);
    assert!(
        written == recorded,
        "{DOCUMENT} differs from the sources, first in {differs:?}; if the sources are right, run \
         `FOREBAY_BLESS=1 cargo test -p tidy constants`"
    );
}

#[test]
fn constants_say_what_they_are() {
    let mut found = Vec::new();
    for (path, constants) in files() {
        for Constant { name, doc, line, .. } in constants {
            found.extend(error_in(&doc).map(|error| format!("{path}:{line}: {name} {error}")));
        }
    }
    assert_none(found, "documentation of constants");
}

#[test]
fn fragments_are_found() {
    for (doc, error) in [
        ("", Some("has no documentation")),
        ("and until this many are done.", Some("does not begin with a capital letter")),
        ("2^32.", Some("does not begin with a capital letter")),
        ("Or this many.", Some("continues the item above")),
        ("The longest interval, in nanoseconds", Some("does not end with a full stop")),
        ("Encoding: the bits of a part.", Some("does not begin with a capital letter")),
        ("Encoding: Bits of a part.", None),
        ("The longest interval, in nanoseconds.", None),
    ] {
        assert_eq!(error_in(doc), error, "{doc}");
    }
}

#[test]
fn links_to_code_are_code_in_a_table() {
    for (doc, text) in [
        ("See [`A`](crate::A) and [`B`].", "See `A` and `B`."),
        ("One of [1, 2], `a | b`.", "One of [1, 2], `a \\| b`."),
    ] {
        assert_eq!(cell(doc), text);
    }
}
