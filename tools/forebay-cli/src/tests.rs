//! Each command of the documentation is one that the program takes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::FromArgMatches;
use clap::error::ErrorKind;

use super::{Cli, command, sim};

/// What the documentation calls an address.
const PLACEHOLDERS: [(&str, &str); 2] = [("ADDRESS", "127.0.0.1:9180"), ("COMMAND", "bench")];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The texts in which commands stand.
fn texts() -> Vec<(PathBuf, String)> {
    let of = |dir: &str, extension: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(top().join(dir)).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
    };
    let paths: Vec<PathBuf> =
        [of("", "md"), of("docs", "md"), of("examples", "yaml")].into_iter().flatten().collect();
    let text = |path: &PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    paths.iter().map(text).collect()
}

/// What follows the name of the program, as far as it is a command that is to be typed whole.
fn typed(line: &str) -> Option<&str> {
    let line = line.strip_prefix('#').unwrap_or(line).strip_prefix("    ")?.trim_start();
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    line.strip_prefix("forebay ").or_else(|| line.strip_prefix("cargo run --release -- "))
}

/// Whether the program takes these arguments, or why not.
fn taken(arguments: &str) -> Result<(), clap::Error> {
    // the shell takes comments, and what says where the output goes
    let ends = [" #", " > "].into_iter().filter_map(|end| arguments.find(end));
    let arguments = &arguments[..ends.min().unwrap_or(arguments.len())];
    let mut arguments = format!("forebay {arguments}");
    for (placeholder, value) in PLACEHOLDERS {
        arguments = arguments.replace(placeholder, value);
    }
    let words = arguments.split_whitespace().map(Into::into);
    let matches = command().try_get_matches_from(sim::today(words))?;
    Cli::from_arg_matches(&matches).map(drop)
}

#[test]
fn commands_that_are_to_be_typed_are_taken() {
    let mut found = 0;
    for (path, text) in texts() {
        let joined = text.replace("\\\n#", "").replace("\\\n", "");
        for arguments in joined.lines().filter_map(typed) {
            found += 1;
            let result = taken(arguments);
            assert!(result.is_ok(), "{}: {arguments}: {}", path.display(), result.unwrap_err());
        }
    }
    assert!(found >= 30, "{found}");
}

#[test]
fn commands_within_sentences_name_what_there_is() {
    let mut found = 0;
    for (path, text) in texts() {
        let text = text.replace('\n', " ");
        let commands = text.split("`forebay ").skip(1).filter_map(|rest| rest.split('`').next());
        for arguments in commands {
            found += 1;
            let Err(error) = taken(arguments) else { continue };
            // a sentence may leave arguments out
            let is_short = matches!(
                error.kind(),
                ErrorKind::MissingRequiredArgument
                    | ErrorKind::MissingSubcommand
                    | ErrorKind::DisplayHelp
                    | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
            assert!(is_short, "{}: {arguments}: {error}", path.display());
        }
    }
    assert!(found >= 30, "{found}");
}
