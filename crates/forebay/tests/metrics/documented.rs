//! docs/metrics.md against what a scrape says.

use std::collections::BTreeSet;
use std::path::Path;

use forebay::metrics::{Snapshot, open_metrics};

/// Name and type of each metric of a scrape.
fn scraped() -> BTreeSet<(String, String)> {
    let text = open_metrics(Snapshot::default());
    let described = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let named = |(name, kind): (&str, &str)| {
        let suffix = if kind == "counter" { "_total" } else { "" };
        (format!("{name}{suffix}"), kind.to_owned())
    };
    described.map(named).collect()
}

/// Name and type of each metric that has a line in a table of the page.
fn documented() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `forebay_")?.split('|').map(str::trim);
        let name = cells.next()?.strip_suffix('`')?;
        Some((format!("forebay_{name}"), cells.next()?.to_owned()))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn each_metric_stands_in_the_documentation_and_nothing_else_does() {
    let listed = documented();
    let documented: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), documented.len(), "a metric stands there twice");
    let scraped = scraped();
    assert!(!scraped.is_empty());
    let missing: Vec<_> = scraped.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&scraped).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "missing: {missing:?}; not there: {unknown:?}"
    );
}
