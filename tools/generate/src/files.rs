//! Writes generated files, or compares them with those in the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The contents of files by their path below the folder of the repository.
pub(crate) struct Generated {
    pub(crate) contents: BTreeMap<String, Vec<u8>>,
    /// The folders in which there is nothing else.
    pub(crate) folders: &'static [&'static str],
}

/// Writes all files, and removes what is not generated any more.
pub(crate) fn write(root: &Path, generated: &Generated) -> Result<Vec<String>, String> {
    for folder in generated.folders {
        fs::create_dir_all(root.join(folder)).map_err(|error| format!("{folder}: {error}"))?;
    }
    for path in superfluous(root, generated)? {
        fs::remove_file(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
    }
    for (path, contents) in &generated.contents {
        fs::write(root.join(path), contents).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(Vec::new())
}

/// The files that are missing, superfluous or different, with the first line that differs.
pub(crate) fn differences(root: &Path, generated: &Generated) -> Result<Vec<String>, String> {
    let superfluous = superfluous(root, generated)?.into_iter();
    let mut found: Vec<String> =
        superfluous.map(|path| format!("{path}: nothing generates this file")).collect();
    for (path, contents) in &generated.contents {
        match fs::read(root.join(path)) {
            Ok(kept) if kept == *contents => {}
            Ok(kept) => found.push(format!("{path}:{}", first_difference(&kept, contents))),
            Err(error) => found.push(format!("{path}: {error}")),
        }
    }
    Ok(found)
}

/// The line at which two texts differ, and what it says in both.
fn first_difference(kept: &[u8], generated: &[u8]) -> String {
    let (kept, generated) = (String::from_utf8_lossy(kept), String::from_utf8_lossy(generated));
    let (mut old, mut new) = (kept.lines(), generated.lines());
    let mut number = 0;
    loop {
        number += 1;
        let (old, new) = (old.next(), new.next());
        if old != new || old.is_none() {
            let [old, new] = [old, new].map(|line| line.unwrap_or("(the end)"));
            return format!("{number}:\n- {old}\n+ {new}");
        }
    }
}

fn superfluous(root: &Path, generated: &Generated) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for folder in generated.folders {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        for entry in entries {
            let entry = entry.map_err(|error| format!("{folder}: {error}"))?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if !generated.contents.contains_key(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
