//! A trace that was recorded, as text.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::failure::Failure;

/// Opens the text at `path`, or stdin for `-`. Returns its name for messages, and a reader.
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
