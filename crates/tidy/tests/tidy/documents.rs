//! Programs that are shown in documents are programs that compile, and the README is short and right.

use std::fs;

/// The most lines of the README, and the most columns of a line.
const README_LINES_MAX: usize = 150;
const README_COLUMNS_MAX: usize = 120;

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

/// The targets of links and pictures of a Markdown text that are files.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let paths = targets.filter_map(|target| target.split('#').next());
    paths.filter(|path| !path.is_empty() && !path.contains("://")).collect()
}

#[test]
fn links_of_the_readme_and_the_book_lead_to_files() {
    let root = tidy::root();
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let mut count = 0;
    for page in pages.chain([root.join("README.md")]) {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            count += 1;
            let exists = page.parent().unwrap().join(link).exists();
            assert!(exists, "{}: there is no {link}", page.display());
        }
    }
    assert!(count > 50, "only {count} links found");
}
