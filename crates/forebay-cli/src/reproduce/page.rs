//! One self-contained page of all experiments.

use forebay_experiments::{Experiment, Report};
use forebay_report::Page;

/// An experiment that was repeated, with its charts drawn.
pub(super) struct RepeatedExperiment {
    pub(super) experiment: Experiment,
    pub(super) report: Report,
    pub(super) charts: Vec<String>,
}

/// The page as HTML; `command` is how to make it again.
pub(super) fn html(repeated: &[RepeatedExperiment], command: &str) -> String {
    let mut page = Page::new("forebay: published experiments, repeated");
    page.title("Published experiments, repeated");
    page.paragraph(&format!(
        "Simulated disks under virtual time, the same scheduler as in production. The disks' \
         parameters come from published figures and stand with each experiment. Made by {command}."
    ));
    page.links(repeated.iter().map(|one| one.experiment.name));
    for one in repeated {
        section(&mut page, one);
    }
    page.finish()
}

fn section(
    page: &mut Page,
    RepeatedExperiment { experiment, report, charts }: &RepeatedExperiment,
) {
    let Experiment { name, alias, title, source, .. } = experiment;
    page.heading(name, &format!("{name}: {title}"));
    page.paragraph(&report.shows);
    page.charts(charts);
    for table in &report.tables {
        page.table(table);
    }
    if !report.differs.is_empty() {
        page.paragraph(&report.differs);
    }
    let parameters = report.parameters.iter().map(|(name, value)| format!(" {name}: {value}."));
    page.about(&format!("{alias}. Source: {source}.{}", parameters.collect::<String>()));
}
