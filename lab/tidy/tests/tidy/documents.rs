//! Programs that are shown in documents compile, links lead somewhere, and the first pages are short.

use std::fs;
use std::path::{Path, PathBuf};

use super::assert_none;

/// The most lines of the README, and the most columns of a line.
const README_LINES_MAX: usize = 150;
const README_COLUMNS_MAX: usize = 120;
/// The most lines of ARCHITECTURE.md.
const ARCHITECTURE_LINES_MAX: usize = 250;

#[test]
fn the_program_of_the_readme_is_an_example() {
    let readme = fs::read_to_string(tidy::root().join("README.md")).unwrap();
    let shown: Vec<&str> =
        readme.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let example = tidy::root().join("crates/forebay/examples/readme.rs");
    let example = fs::read_to_string(example).unwrap();
    let program = example.lines().skip_while(|line| line.starts_with("//!")).skip(1);
    let program: String = program.flat_map(|line| [line, "\n"]).collect();
    assert_eq!(shown, [program]);
}

#[test]
fn the_readme_is_one_page() {
    let readme = fs::read_to_string(tidy::root().join("README.md")).unwrap();
    let lines = readme.lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines, at most {README_LINES_MAX}");
    let long =
        readme.lines().enumerate().filter(|(_, line)| line.chars().count() > README_COLUMNS_MAX);
    let long: Vec<usize> = long.map(|(place, _)| place + 1).collect();
    assert!(long.is_empty(), "lines of README.md above {README_COLUMNS_MAX} columns: {long:?}");
}

#[test]
fn badges_state_what_the_manifest_states() {
    let read = |path: &str| fs::read_to_string(tidy::root().join(path)).unwrap();
    let manifest = read("Cargo.toml");
    for (key, badge) in [("license", "licence"), ("rust-version", "msrv")] {
        let value = manifest.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        let value = value.unwrap().trim_end_matches('"');
        let badge = format!("docs/img/{badge}.svg");
        assert!(read(&badge).contains(&format!(">{value}")), "{badge} does not state {value}");
        assert!(read("README.md").contains(&badge), "README.md does not show {badge}");
    }
}

/// The targets of links and pictures of a Markdown text that are in the repository, as path and anchor.
fn links(text: &str) -> Vec<(String, String)> {
    let prose: String = text.split("```").step_by(2).collect();
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let inner = targets.filter(|target| !target.contains("://") && !target.contains(' '));
    let split = inner.map(|target| target.split_once('#').unwrap_or((target, "")));
    split.map(|(path, anchor)| (path.to_owned(), anchor.to_owned())).collect()
}

/// The anchors of the headings of a Markdown text, as GitHub and crates.io make them.
fn anchors(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// The pages below a folder, and in it.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            pages.extend(self::pages(&entry));
        } else if entry.extension().is_some_and(|end| end == "md") {
            pages.push(entry);
        }
    }
    pages
}

/// The pages of the root, of the book, and of each crate.
fn all_pages() -> Vec<PathBuf> {
    let root = tidy::root();
    let names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
    let crates = tidy::crates().unwrap().into_iter();
    let crates =
        crates.map(|member| member.folder().join("README.md")).filter(|path| path.exists());
    let all = names.map(|name| root.join(name)).into_iter().chain(crates);
    all.filter(|path| path.exists()).chain(pages(&root.join("docs"))).collect()
}

/// What is wrong with the links of a page, if anything is.
fn errors_in_links(page: &Path, text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    for (path, anchor) in links(text) {
        let target = page.parent().unwrap().join(&path);
        let target = if path.is_empty() { page } else { &target };
        if !target.exists() {
            errors.push(format!("{}: there is no {path}", page.display()));
        } else if !anchor.is_empty() {
            let read = || fs::read_to_string(target).unwrap();
            let text = if path.is_empty() { text.to_owned() } else { read() };
            if !anchors(&text).contains(&anchor) {
                errors.push(format!("{}: {path} has no heading #{anchor}", page.display()));
            }
        }
    }
    errors
}

#[test]
fn links_lead_to_files_and_headings() {
    let (mut found, mut count) = (Vec::new(), 0);
    for page in all_pages() {
        let text = fs::read_to_string(&page).unwrap();
        count += links(&text).len();
        found.extend(errors_in_links(&page, &text));
    }
    assert!(count > 150, "only {count} links found");
    assert_none(found, "links");
}

#[test]
fn broken_links_are_found() {
    let page = tidy::root().join("docs/README.md");
    let errors = |text: &str| errors_in_links(&page, text).len();
    assert_eq!(
        errors(
            "# A title, with `code`\n[a](#a-title-with-code) [b](../Cargo.toml) [c](https://d.e/f)"
        ),
        0
    );
    assert_eq!(
        errors(
            "# A title\n[a](#another-title) [b](no-such-file.md) [c](README.md#no-such-heading)"
        ),
        3
    );
    assert_eq!(errors("```\n[a](no-such-file.md)\n```\n"), 0);
}

#[test]
fn the_architecture_is_short() {
    let text = fs::read_to_string(tidy::root().join("ARCHITECTURE.md")).unwrap();
    let lines = text.lines().count();
    assert!(lines <= ARCHITECTURE_LINES_MAX, "{lines} lines, at most {ARCHITECTURE_LINES_MAX}");
}
