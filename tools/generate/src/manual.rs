//! Manual pages and completions of the program `forebay`.

use std::collections::BTreeMap;

use clap::Command;
use clap_complete::{Generator, Shell, generate};
use clap_mangen::Man;

use crate::files::Generated;

const PAGES: &str = "packaging/man";
const COMPLETIONS: &str = "packaging/completions";
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// All pages, one for each command, and the completions of all shells.
pub(crate) fn generated() -> Result<Generated, String> {
    let mut contents = BTreeMap::new();
    for shell in SHELLS {
        let mut text = Vec::new();
        generate(shell, &mut forebay_cli::command(), "forebay", &mut text);
        contents.insert(format!("{COMPLETIONS}/{}", shell.file_name("forebay")), text);
    }
    let mut command = forebay_cli::command().disable_help_subcommand(true);
    command.build();
    add_pages(command, &mut contents)?;
    Ok(Generated { contents, folders: &[PAGES, COMPLETIONS] })
}

/// Adds the page of a command, and those of the commands below it.
fn add_pages(command: Command, pages: &mut BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_pages(below.clone(), pages)?;
    }
    // a page is called as its command, with hyphens: `forebay-sim-run`
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| format!("the page of {name}: {error}"))?;
    pages.insert(format!("{PAGES}/{}", page.get_filename()), text);
    Ok(())
}
