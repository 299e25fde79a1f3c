//! How files grow where a disk was measured.

use std::io;
use std::path::Path;

use forebay_growth::{Grown, Growth, Strategy, grow};
use forebay_tune::{Budget, Run};

use crate::console::note;
use crate::failure::Failure;

/// How many files grow at once: one, and many in one directory.
const FILES: [u32; 2] = [1, 16];
const REQUEST_BYTES: u32 = 128 << 10;
/// Each grows to this part of what files of several kinds are measured with.
const FILE_PART: u64 = 16;

/// Grows files in `dir` by each strategy, if what may be written and what is free allow it.
pub(super) fn growth(
    dir: &Path,
    run: &Run,
    budget: &Budget,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Grown>, Failure> {
    let file_bytes = budget.file_bytes / FILE_PART;
    let [one, many] = FILES.map(|files| u64::from(files) * file_bytes);
    let needed = (one + many) * Strategy::ALL.len() as u64;
    if run.written_max.saturating_sub(run.written()) < needed || run.target.room < many {
        note("the growth of files is not measured: the write limit is too low");
        return Ok(Vec::new());
    }
    let mut growth = Vec::new();
    for files in FILES {
        for strategy in Strategy::ALL {
            let request_bytes = REQUEST_BYTES;
            let what = Growth { dir: dir.to_owned(), files, file_bytes, request_bytes };
            match grow(&what, strategy, is_cancelled) {
                Ok(grown) => growth.push(grown),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    return Err(Failure::Interrupted);
                }
                Err(error) => note(format_args!("files do not grow by {strategy} there: {error}")),
            }
        }
    }
    Ok(growth)
}
