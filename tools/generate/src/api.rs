//! The public items of each crate that is published, so that a change of them shows in a diff.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use public_api::Builder;
use serde_json::Value;

use crate::files::Generated;

const FOLDER: &str = "docs/api";

/// The version of rustdoc's JSON that the crate `public-api` reads, raised together with it.
const FORMAT: u64 = 57;

/// A crate that is published, and the features with which it is documented.
struct Published {
    name: String,
    features: Vec<String>,
}

/// A file for each crate, with a line for each public item.
pub(crate) fn generated(root: &Path) -> Result<Generated, String> {
    let metadata = metadata(root)?;
    let target = text(&metadata, "target_directory")?;
    let crates = published(&metadata)?;
    document(root, &crates)?;
    let mut contents = BTreeMap::new();
    for Published { name, .. } in crates {
        let json = Path::new(target).join("doc").join(format!("{}.json", name.replace('-', "_")));
        contents.insert(format!("{FOLDER}/{name}.txt"), listing(&json)?.into_bytes());
    }
    Ok(Generated { contents, folders: &[FOLDER] })
}

/// The lines of one crate. Traits that every type has, or that follow from its fields, are left
/// out, and so are the methods of derived ones.
fn listing(json: &Path) -> Result<String, String> {
    let of_file = |error: &dyn std::fmt::Display| format!("{}: {error}", json.display());
    let written = fs::read(json).map_err(|error| of_file(&error))?;
    let written: Value = serde_json::from_slice(&written).map_err(|error| of_file(&error))?;
    let format = written["format_version"].as_u64();
    if format != Some(FORMAT) {
        return Err(format!(
            "rustdoc of this compiler writes its format {}, and format {FORMAT} can be read, which \
             Rust 1.95 writes: use `cargo +1.95`, or raise public-api in Cargo.toml",
            format.unwrap_or_default()
        ));
    }
    let lines = |is_derived_left_out| -> Result<Vec<String>, String> {
        let builder = Builder::from_rustdoc_json(json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(is_derived_left_out);
        let items = builder.build().map_err(|error| of_file(&error))?;
        Ok(items.items().map(|item| format!("{item}\n")).collect())
    };
    let without_derived: BTreeSet<String> = lines(true)?.into_iter().collect();
    let mut all = lines(false)?;
    all.retain(|line| line.starts_with("impl") || without_derived.contains(line));
    Ok(all.concat())
}

/// Has rustdoc write what it knows of the crates, as JSON.
fn document(root: &Path, crates: &[Published]) -> Result<(), String> {
    let wrapper = root.join("tools/generate/rustdoc-json");
    let wrapper =
        wrapper.canonicalize().map_err(|error| format!("{}: {error}", wrapper.display()))?;
    let mut cargo = Command::new("cargo");
    // warnings are those of the pages; and by other flags cargo tells the two apart
    cargo.env("RUSTDOC", wrapper).env("RUSTDOCFLAGS", "--cap-lints allow");
    cargo.args(["doc", "--quiet", "--locked", "--no-deps"]).current_dir(root);
    for Published { name, features } in crates {
        cargo.args(["--package", name]);
        for feature in features {
            cargo.arg("--features").arg(format!("{name}/{feature}"));
        }
    }
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo doc: {status}")) }
}

fn metadata(root: &Path) -> Result<Value, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(root);
    let output =
        cargo.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// The crates that may be published, and the features that docs.rs shows of each.
fn published(metadata: &Value) -> Result<Vec<Published>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    // `publish = false` is an empty list of registries
    let packages = packages.iter().filter(|package| package["publish"].is_null());
    packages
        .map(|package| {
            let features = package["metadata"]["docs"]["rs"]["features"].as_array();
            let features = features.into_iter().flatten().filter_map(Value::as_str);
            let features = features.map(str::to_owned).collect();
            Ok(Published { name: text(package, "name")?.to_owned(), features })
        })
        .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("cargo metadata has no {key}"))
}
