//! What is read from files and written to them stands in docs/formats.md, key by key.

use std::collections::BTreeSet;
use std::fs;

/// Sources whose keys are no format: what a check asks of the system, recorded for its tests, and
/// figures that belong to one experiment each.
const NO_FORMATS: &[&str] = &["tools/forebay-check/src/environment.rs", "lab/forebay-experiments/"];

/// The keys of the structs of `text` that serde reads or writes, and of the disks' macro.
fn keys(text: &str) -> BTreeSet<String> {
    let (mut keys, mut derived, mut inside, mut attributes) =
        (BTreeSet::new(), false, false, String::new());
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[derive(") {
            derived = line.contains("Serialize") || line.contains("Deserialize");
        } else if line.starts_with("disk_keys!(") {
            inside = true;
        } else if line.contains("struct ") || line.contains("enum ") {
            inside =
                std::mem::take(&mut derived) && line.contains("struct ") && line.ends_with('{');
        } else if line.starts_with('}') {
            inside = false;
        } else if line.starts_with("#[") {
            attributes.push_str(line);
        } else if inside && !line.starts_with("//") {
            keys.extend(key(line, &attributes));
            attributes.clear();
        }
    }
    keys
}

/// The key that a field stands for, if it has one.
fn key(field: &str, attributes: &str) -> Option<String> {
    if attributes.contains("skip)") || attributes.contains("flatten") {
        return None;
    }
    let renamed = attributes.split("rename = \"").nth(1).and_then(|rest| rest.split('"').next());
    let name = field.split(':').next()?.rsplit(' ').next()?;
    let is_name =
        |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
    (field.contains(": ") && is_name(name)).then(|| renamed.unwrap_or(name).to_owned())
}

#[test]
fn every_key_of_a_file_is_described() {
    let text = fs::read_to_string(tidy::root().join("docs/formats.md")).unwrap();
    let described: BTreeSet<&str> = text.split('`').skip(1).step_by(2).collect();
    let (mut missing, mut known) = (Vec::new(), 0);
    for member in tidy::crates().unwrap() {
        for source in tidy::read(&member.folder().join("src")).unwrap() {
            let path = format!("{}/src/{}", member.path, source.path);
            if NO_FORMATS.iter().any(|other| path.starts_with(other)) {
                continue;
            }
            let keys = keys(&fs::read_to_string(tidy::root().join(&path)).unwrap());
            known += keys.len();
            let new = keys.iter().filter(|key| !described.contains(key.as_str()));
            missing.extend(new.map(|key| format!("{path}: {key}")));
        }
    }
    assert!(known > 200, "only {known} keys found");
    assert!(missing.is_empty(), "not in docs/formats.md:\n  {}", missing.join("\n  "));
}
