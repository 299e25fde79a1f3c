//! Scenarios that the swarm found and made small, of defects that are mended.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use forebay_config::Source;
use forebay_sim::swarm::Case;

#[test]
fn scenarios_that_the_swarm_found_hold() {
    let mut failed = Vec::new();
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios")).unwrap()
    {
        let path = file.unwrap().path();
        let (name, text) = (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        let case = Case::parse(&Source::new(&name, &text)).unwrap();
        failed.extend(case.run().err().map(|error| format!("{name}: {error}")));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
