//! `forebay rm`: deletes files and directories at a pace.

mod argument;
mod deletes;
mod entry;
mod levels;
mod pacing;
mod place;
mod progress;
mod text;
mod walk;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use rustix::io::Errno;

use self::argument::{Argument, Refused};
use self::deletes::Deletes;
use self::pacing::PacingOptions;
use self::place::may_delete_in;
use self::text::{done, system, would};
use self::walk::{Walk, dup};
use crate::console::{note, print};
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// The most failures that an exit code tells.
const FAILED_MAX: u8 = 125;

/// Delete files at a pace, so that the discards (TRIMs) that follow delay no reads.
///
/// If a file system is mounted with `discard`, deleting large files at once causes thousands of
/// discards, which go to the disk together when the file system flushes its log. This command moves
/// files into a directory `.forebay-trash` next to them and frees them from their ends, a step at a
/// time, so that discards are spread. On other mounts it unlinks at once, and says so.
///
/// Links are deleted and never followed. These are refused: `/`, `.`, `..`, mountpoints,
/// directories without -r, and other file systems in them. It asks no questions.
///
/// Ctrl-C stops it. Files that are removed but not freed yet stay in the trash, even after a kill,
/// until --empty-trash or another `forebay rm` there frees them.
///
/// The exit code is the number of paths that were not deleted, at most 125; 130 after Ctrl-C; 2 for
/// an unusable option, and then nothing is deleted.
#[derive(Args)]
pub(crate) struct Options {
    /// The files and directories to delete
    #[arg(value_name = "PATH", required_unless_present = "empty_trash")]
    paths: Vec<OsString>,
    /// Delete directories with their contents
    #[arg(long, short, visible_short_alias = 'R')]
    recursive: bool,
    /// Ignore paths that do not exist
    #[arg(long, short)]
    force: bool,
    /// Print what happens to each path
    #[arg(long, short)]
    verbose: bool,
    /// Delete nothing; print what would be done, and how long it would take
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Delete in file systems that are mounted below the directories too
    #[arg(long)]
    cross_file_systems: bool,
    /// Free the files that an earlier `forebay rm`, or another program, left in the trash of this
    /// directory
    #[arg(long, alias = "finish", value_name = "DIR", conflicts_with = "dry_run")]
    empty_trash: Vec<PathBuf>,
    #[command(flatten)]
    pacing: PacingOptions,
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    let first = options.paths.first().map(Path::new);
    let first = first.or_else(|| options.empty_trash.first().map(PathBuf::as_path));
    let dir = first.and_then(|path| path.parent()).filter(|dir| !dir.as_os_str().is_empty());
    let pacing = options.pacing.pacing(dir.unwrap_or_else(|| Path::new(".")))?;
    let interrupt = Interrupt::on_signals()?;
    let mut deletes = Deletes::new(&pacing, &interrupt);
    deletes.force = options.force;
    deletes.verbose = options.verbose;
    deletes.dry_run = options.dry_run;
    for dir in &options.empty_trash {
        deletes.empty_trash(dir)?;
    }
    for path in &options.paths {
        if interrupt.is_raised() {
            break;
        }
        one(Path::new(path), options, &mut deletes)?;
    }
    deletes.drain();
    let left = deletes.left();
    let counts = deletes.counts;
    if interrupt.is_raised() {
        note(format_args!("interrupted: {}", done(&counts, began.elapsed()).trim_end()));
        left.iter().for_each(note);
        return Ok(Failure::Interrupted.exit_code());
    }
    match options.dry_run {
        true => print(&would(&counts, pacing.rates))?,
        false if counts.files + counts.directories == 0 => {
            if !options.empty_trash.is_empty() && counts.failed == 0 {
                print("nothing to free\n")?;
            }
        }
        false => print(&done(&counts, began.elapsed()))?,
    }
    let failed = u8::try_from(counts.failed).unwrap_or(FAILED_MAX).min(FAILED_MAX);
    Ok(ExitCode::from(failed))
}

/// Deletes what one argument names.
fn one(path: &Path, options: &Options, deletes: &mut Deletes<'_>) -> Result<(), Failure> {
    let argument = match Argument::new(path, options.recursive) {
        Ok(argument) => argument,
        Err(Refused::Missing) if options.force => return Ok(()),
        Err(Refused::Missing) => {
            deletes.failed(path, &system(Errno::NOENT));
            return Ok(());
        }
        Err(Refused::Because(why)) => {
            deletes.failed(path, &why);
            return Ok(());
        }
    };
    let trash = match trash(&argument, path) {
        Ok(trash) => trash,
        Err(errno) => {
            deletes.refused(path, errno);
            return Ok(());
        }
    };
    if argument.entry.is_dir() {
        let crosses = options.cross_file_systems;
        return Walk::new(deletes, path.to_owned(), crosses, trash).run(&argument);
    }
    deletes.go_to(trash.0, &trash.1)?;
    deletes.file_here(&argument.name, &argument.entry, path.to_owned());
    Ok(())
}

/// Where what is deleted waits to be freed: alongside it, or in it where nothing may be made
/// alongside it and the directory itself will stay.
fn trash(argument: &Argument, path: &Path) -> Result<(OwnedFd, PathBuf), Errno> {
    let Argument { parent, parent_path, name, entry } = argument;
    if may_delete_in(parent).is_ok() || !entry.is_dir() {
        return Ok((dup(parent)?, parent_path.clone()));
    }
    Ok((levels::open(parent, name, entry)?, path.to_owned()))
}
