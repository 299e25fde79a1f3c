//! A trace that was recorded, as text.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::failure::Failure;

/// The text at `path`, or of stdin for `-`, and what it is called.
pub(super) fn open(path: &Path) -> Result<(String, Box<dyn BufRead>), Failure> {
    if path == Path::new("-") {
        return Ok((String::from("stdin"), Box::new(io::stdin().lock())));
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| {
        Failure::Input(format!("cannot read `{name}`: {error}; check the path"))
    })?;
    Ok((name, Box::new(BufReader::new(file))))
}
