//! Generates files from the sources, or names those in the repository that are out of date.

mod api;
mod files;
mod header;
mod manual;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Compare what is kept in the repository with what the sources say.
///
/// Exit codes: 0 it is the same, or was written; 1 something differs; 2 something is missing that
/// the command needs.
#[derive(Parser)]
#[command(name = "generate")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Write the files again instead
    #[arg(long, global = true)]
    write: bool,
    /// The folder of the repository
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// The manual pages and the completions of the program, in `packaging`
    Manual,
    /// The public items of each crate that is published, in `docs/api`
    Api,
    /// The header of the C API, `crates/forebay-capi/include/forebay.h`
    Header,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(differences) if differences.is_empty() => ExitCode::SUCCESS,
        Ok(differences) => {
            eprintln!("{}", differences.join("\n"));
            eprintln!("if that is meant, run this command with --write, and commit what it writes");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Writes or compares, and returns what differs.
fn run(cli: &Cli) -> Result<Vec<String>, String> {
    let root: &Path = &cli.root;
    if !root.join("crates/forebay").is_dir() {
        return Err(format!("{} is not the folder of the repository: see --root", root.display()));
    }
    let generated = match cli.command {
        Command::Manual => manual::generated()?,
        Command::Api => api::generated(root)?,
        Command::Header => header::generated(root)?,
    };
    if cli.write { files::write(root, &generated) } else { files::differences(root, &generated) }
}
