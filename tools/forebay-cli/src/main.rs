//! The program `forebay`.

use std::process::ExitCode;

fn main() -> ExitCode {
    forebay_cli::run()
}
