//! A `forebay.yaml` and the io-properties that it names.

use std::fs;
use std::path::Path;

use super::samples::measured as disk;
use crate::properties::Properties;

fn written(dir: &Path) -> Properties {
    let properties = Properties { disks: vec![disk()] };
    fs::write(dir.join("forebay.yaml"), properties.to_forebay_yaml("io.yaml")).unwrap();
    fs::write(dir.join("io.yaml"), properties.to_yaml()).unwrap();
    properties
}

#[track_caller]
fn error_message(dir: &Path) -> String {
    let error = Properties::load(&dir.join("forebay.yaml")).unwrap_err().to_string();
    error.replace(&format!("{}/", dir.display()), "")
}

#[test]
fn either_file_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    let properties = written(dir.path());
    for name in ["forebay.yaml", "io.yaml"] {
        assert_eq!(Properties::load(&dir.path().join(name)).unwrap(), properties);
    }
    fs::remove_file(dir.path().join("io.yaml")).unwrap();
    assert_eq!(Properties::load(&dir.path().join("forebay.yaml")).unwrap(), properties);
}

#[test]
fn files_that_contradict_each_other_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let properties = written(dir.path());
    let faster = properties.to_yaml().replace("121499", "130000");
    fs::write(dir.path().join("io.yaml"), faster).unwrap();
    assert_eq!(
        error_message(dir.path()),
        "forebay.yaml:3:5: disks[0]: `write_iops` of this disk differs from that in `io.yaml`; \
         measure again, or remove one of the two files"
    );
    fs::write(dir.path().join("io.yaml"), "disks: 3").unwrap();
    assert!(error_message(dir.path()).starts_with("io.yaml:1:8: disks: "));
}

#[test]
fn a_companion_is_in_the_same_folder() {
    let dir = tempfile::tempdir().unwrap();
    let properties = written(dir.path());
    let names = |name: &str| {
        fs::write(dir.path().join("forebay.yaml"), properties.to_forebay_yaml(name)).unwrap();
        error_message(dir.path())
    };
    for name in ["/etc/passwd", "../io.yaml", "a/b", ".", "..", ""] {
        let said = names(name);
        assert!(said.starts_with("forebay.yaml:1:16: io_properties: expected the name"), "{said}");
    }
    assert!(names("forebay.yaml").contains("that file has an `io_properties` key too"));
    fs::create_dir(dir.path().join("directory")).unwrap();
    assert!(names("directory").contains("this is not a file"));
}
