//! The program as a maintainer would run it.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn generate(arguments: &[&str], root: &Path) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_generate"));
    program.args(arguments).arg("--root").arg(root).output().unwrap()
}

/// A folder that looks like the repository, with the manual as it is generated.
fn written() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("crates/forebay")).unwrap();
    let output = generate(&["manual", "--write"], root.path());
    assert!(output.status.success(), "{output:?}");
    root
}

#[test]
fn the_manual_in_the_repository_is_what_the_program_says() {
    let output = generate(&["manual"], &repository());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_header_in_the_repository_is_what_the_sources_say() {
    let output = generate(&["header"], &repository());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_command_has_a_page_that_its_parent_names() {
    let root = written();
    let read = |page: &str| {
        let path = root.path().join("packaging/man").join(page);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"))
    };
    let (mut parents, mut count) = (vec![forebay_cli::command()], 0);
    let mut names = vec![String::from("forebay")];
    while let (Some(parent), Some(name)) = (parents.pop(), names.pop()) {
        let page = read(&format!("{name}.1"));
        for command in parent.get_subcommands().filter(|command| !command.is_hide_set()) {
            let below = format!("{name}-{}", command.get_name());
            let reference = format!("{}(1)", below.replace('-', "\\-"));
            assert!(page.contains(&reference), "{name}.1 does not name {reference}");
            names.push(below);
            parents.push(command.clone());
            count += 1;
        }
    }
    assert!(count >= 15, "{count} commands");
}

#[test]
fn a_difference_is_named_by_its_first_line() {
    let root = written();
    let path = |name: &str| root.path().join("packaging/man").join(name);
    let page = fs::read_to_string(path("forebay-rm.1")).unwrap();
    fs::write(path("forebay-rm.1"), page.replacen(".SH NAME", ".SH OLD", 1)).unwrap();
    fs::remove_file(path("forebay-top.1")).unwrap();
    fs::write(path("forebay-old.1"), "").unwrap();
    let output = generate(&["manual"], root.path());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    let errors: Vec<&str> = errors.lines().collect();
    assert_eq!(errors[0], "packaging/man/forebay-old.1: nothing generates this file");
    assert!(errors[1].starts_with("packaging/man/forebay-rm.1:"), "{errors:?}");
    assert_eq!(errors[2..4], ["- .SH OLD", "+ .SH NAME"]);
    assert!(errors[4].starts_with("packaging/man/forebay-top.1: "), "{errors:?}");
    assert!(errors[5].contains("--write"), "{errors:?}");
    // and writing them again leaves nothing to say
    assert!(generate(&["manual", "--write"], root.path()).status.success());
    assert!(generate(&["manual"], root.path()).status.success());
}

#[test]
fn a_folder_that_is_not_the_repository_is_refused() {
    let root = tempfile::tempdir().unwrap();
    for arguments in [["manual", "--write"].as_slice(), &["api"]] {
        let output = generate(arguments, root.path());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("is not the folder of the repository"), "{error}");
    }
}
