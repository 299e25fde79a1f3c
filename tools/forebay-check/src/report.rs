//! Findings, for people and for programs.

use std::fmt::Write;
use std::path::Path;

use forebay_report::paragraph;
use serde::Serialize;

use crate::finding::{Finding, Level};
use crate::probes;
use crate::subject::Subject;

/// Where the text of a finding begins.
const INDENT: usize = 10;
/// Version of the JSON.
const VERSION: u32 = 2;

/// All directories.
#[derive(Debug, Serialize)]
pub struct Report {
    version: u32,
    /// The worst of all.
    pub level: Level,
    /// One report for each directory.
    pub directories: Vec<DirectoryReport>,
}

/// One directory.
#[derive(Debug, Default, Serialize)]
pub struct DirectoryReport {
    /// The directory as it was given.
    pub dir: String,
    /// The kind of filesystem, if it could be looked at.
    filesystem: Option<String>,
    /// The device of the filesystem.
    device: Option<String>,
    /// The disks below it.
    disks: Vec<String>,
    /// What the probes found.
    pub findings: Vec<Finding>,
    /// What it is, for people.
    #[serde(skip)]
    title: String,
}

impl DirectoryReport {
    /// What the probes say.
    pub(crate) fn of(subject: &Subject<'_>) -> Self {
        let disks = subject.disks();
        Self {
            dir: subject.environment.dir.display().to_string(),
            filesystem: Some(subject.kind().to_owned()),
            device: subject.device.as_ref().map(|device| device.name.clone()),
            disks: disks.iter().map(|disk| disk.disk.clone()).collect(),
            findings: probes::all(subject),
            title: subject.describe(),
        }
    }

    /// With what is to be said of the directory itself, before all else.
    pub(crate) fn and(mut self, finding: Option<Finding>) -> Self {
        let finding = finding.map(|finding| Finding { probe: "directory", ..finding });
        self.findings.splice(0..0, finding);
        self
    }

    /// A directory that cannot be checked.
    pub(crate) fn refused(dir: &Path, finding: Finding) -> Self {
        let dir = dir.display().to_string();
        Self {
            title: dir.clone(),
            dir,
            findings: vec![Finding { probe: "directory", ..finding }],
            ..Self::default()
        }
    }

    fn write(&self, text: &mut String, verbose: bool) {
        let _ = writeln!(text, "{}\n", self.title);
        let (fine, rest): (Vec<_>, Vec<_>) =
            self.findings.iter().partition(|finding| finding.level == Level::Fine);
        for finding in rest {
            write_finding(text, finding);
        }
        if verbose {
            for finding in fine {
                write_finding(text, finding);
            }
        } else if !fine.is_empty() {
            let mut names: Vec<&str> = fine.iter().map(|finding| finding.probe).collect();
            names.dedup();
            write_part(text, Level::Fine.name(), &names.join(", "));
        }
        text.push('\n');
    }
}

impl Report {
    /// The report on these directories.
    pub fn new(directories: Vec<DirectoryReport>) -> Self {
        let findings = directories.iter().flat_map(|checked| &checked.findings);
        let level = findings.map(|finding| finding.level).max().unwrap_or(Level::Fine);
        Self { version: VERSION, level, directories }
    }

    /// For people; what is fine in full only when `verbose`.
    pub fn text(&self, verbose: bool) -> String {
        let mut text = String::new();
        for checked in &self.directories {
            checked.write(&mut text, verbose);
        }
        let findings = || self.directories.iter().flat_map(|checked| &checked.findings);
        let count = |level| findings().filter(|finding| finding.level == level).count();
        let counted = |level, one: &str| match count(level) {
            1 => format!("1 {one}"),
            many => format!("{many} {one}s"),
        };
        let (errors, warnings) =
            (counted(Level::Error, "error"), counted(Level::Warning, "warning"));
        let _ = writeln!(text, "{errors}, {warnings}, {}", counted(Level::Note, "note"));
        text
    }
}

fn write_finding(text: &mut String, finding: &Finding) {
    write_part(text, finding.level.name(), &format!("{}: {}", finding.probe, finding.what));
    if let Some(why) = &finding.why {
        let source = finding.source.map_or_else(String::new, |source| format!(" ({source})"));
        write_part(text, "  why", &format!("{why}{source}"));
    }
    if let Some(fix) = &finding.fix {
        // a command is copied in one piece
        let _ = writeln!(text, "{:<INDENT$}{fix}", "  fix");
    }
}

/// Writes `words` into the columns right of `head`.
fn write_part(text: &mut String, head: &str, words: &str) {
    paragraph(text, &format!("{head:<INDENT$}"), words);
}
