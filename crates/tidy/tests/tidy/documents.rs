//! Programs that are shown in documents are programs that compile.

use std::fs;

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
