//! Pages, in a browser.

use std::path::Path;
use std::process::Command;

use crate::loop_mount::Lab;
use crate::process::run;

/// What a Chromium is called on different systems.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The page as the browser has it once scripts have run, and what it wrote on its console.
/// Nothing, after saying so, where there is no browser.
pub(crate) fn shown(page: &Path) -> Option<(String, Vec<String>)> {
    let is_there = |browser: &&str| Command::new(browser).arg("--version").output().is_ok();
    let Some(browser) = BROWSERS.into_iter().find(is_there) else {
        eprintln!("skipped: there is no Chromium");
        return None;
    };
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]);
    command.arg(format!("--user-data-dir={}", profile.path().display())).arg("--dump-dom");
    let ended = run(command.arg(format!("file://{}", page.display())));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let console = ended.stderr.lines().filter(|line| line.contains("CONSOLE"));
    Some((ended.stdout, console.map(str::to_owned).collect()))
}

#[test]
fn a_page_of_heat_maps_is_shown_without_an_error_on_the_console() {
    let lab = Lab::new();
    // of all loads, and of few
    for (index, source) in [
        [
            "--from",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/forebay-sim/presets/i3.2xlarge.csv"),
        ],
        ["--simulate", "gp3"],
    ]
    .iter()
    .enumerate()
    {
        let page = lab.dir.path().join(format!("{index}.html"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.arg("explore").args(source).args(["--goal", "p95=2ms", "--report"]).arg(&page);
        let ended = run(&mut command);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let Some((dom, console)) = shown(&page) else { return };
        assert!(console.is_empty(), "{console:?}");
        for part in ["<svg", "border of the region", "straight line", "MB/s of writes"] {
            assert!(dom.contains(part), "{part}");
        }
        assert!(
            !dom.contains("NaN") && !dom.contains("src=\"http"),
            "it needs nothing alongside it"
        );
    }
}

#[test]
fn an_error_on_the_console_is_seen() {
    let lab = Lab::new();
    let page = lab.file("broken.html", "<!doctype html><script>nowhere()</script>");
    let Some((_, console)) = shown(&page) else { return };
    assert!(console.iter().any(|line| line.contains("nowhere is not defined")), "{console:?}");
}
