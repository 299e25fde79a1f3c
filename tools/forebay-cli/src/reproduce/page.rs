//! Self-contained pages of all experiments.

use forebay_experiments::Experiment;
use forebay_report::{Chart, Page, Tile};
use serde_json::{Value, json};

use super::datastore::{DATASTORES, Datastore};
use super::results::Results;
use super::summary::{self, RepeatedExperiment, Totals};
use crate::console;
use crate::failure::Failure;
use crate::report::on_one_scale;

/// The page as HTML; `command` is how to make it again.
pub(super) fn html(repeated: &[RepeatedExperiment], command: &str) -> String {
    let mut page = begun(repeated, command);
    page.links(repeated.iter().map(|one| one.experiment.name));
    for one in repeated {
        section(&mut page, one);
    }
    page.finish()
}

/// The same with the datastore examples over time first, and with what charts show as JSON.
pub(super) fn with_datastores(
    repeated: &[RepeatedExperiment],
    results: &Results<'_>,
    command: &str,
) -> Result<String, Failure> {
    let mut page = begun(repeated, &format!("{command} --report FILE.html"));
    page.json("experiments", &console::json(results)?);
    let ids = DATASTORES.iter().map(|datastore| datastore.id);
    page.links(ids.chain(repeated.iter().map(|one| one.experiment.name)));
    for datastore in &DATASTORES {
        over_time(&mut page, datastore)?;
    }
    for one in repeated {
        section(&mut page, one);
        let charts: Vec<Value> = one.report.charts.iter().map(values).collect();
        page.json(&format!("{}-charts", one.experiment.name), &console::json(&charts)?);
    }
    Ok(page.finish())
}

/// The beginning of a page: what it is, and a summary.
fn begun(repeated: &[RepeatedExperiment], command: &str) -> Page {
    let mut page = Page::new("forebay: published experiments, repeated");
    page.title("Published experiments, repeated");
    page.paragraph(&format!(
        "Simulated disks under virtual time, the same scheduler as in production. The disks' \
         parameters come from published figures and stand with each experiment. Made by {command}."
    ));
    dashboard(&mut page, repeated);
    page.heading("figures", "Which published figures are met, and which are not");
    page.paragraph(&summary::in_all(repeated));
    listed(&mut page, repeated, summary::of_one);
    page.heading("summary", "What each shows, and where it differs");
    listed(&mut page, repeated, in_words);
    page
}

/// What counts, at a glance: all of it, and each experiment.
fn dashboard(page: &mut Page, repeated: &[RepeatedExperiment]) {
    let all = summary::totals(repeated);
    let first = |figure: usize, label: &str| Tile {
        figure: figure.to_string(),
        label: label.to_owned(),
        id: None,
        parts: Vec::new(),
    };
    let whole = Tile {
        figure: format!("{} of {}", all.met, all.predicted()),
        label: "predicted figures met, within 10 % or the article's rounding".to_owned(),
        id: None,
        parts: all.parts(),
    };
    page.tiles([
        whole,
        first(all.near, "predicted, within a factor of 2"),
        first(all.off, "predicted, and further off"),
        first(all.fitted, "fitted to: do not count"),
        first(all.inputs, "inputs: do not count"),
        first(all.null, "a null model meets them too: do not count"),
    ]);
    page.about(
        "Bars, from the left: predicted and met (blue), within a factor of 2 (yellow), further off \
         (red); fitted, inputs and what a null model meets too (greys).",
    );
    let with_figures = repeated.iter().filter(|one| !one.report.figures.is_empty());
    page.tiles(with_figures.map(|RepeatedExperiment { experiment, report, .. }| {
        let totals = Totals::of(&report.figures);
        let figure = match totals.predicted() {
            0 => "-".to_owned(),
            predicted => format!("{} of {predicted}", totals.met),
        };
        let Experiment { name, title, .. } = *experiment;
        let label = format!("{name}: {title}");
        Tile { figure, label, id: Some(name.to_owned()), parts: totals.parts() }
    }));
}

/// A list of what is said of each.
fn listed(
    page: &mut Page,
    repeated: &[RepeatedExperiment],
    say: fn(&RepeatedExperiment) -> String,
) {
    let entries: Vec<String> = repeated.iter().map(say).collect();
    page.list(entries.iter().map(|entry| (entry.as_str(), false)));
}

/// What is shown of a publication and where ours differs, in the words of the experiment.
fn in_words(RepeatedExperiment { experiment, report, .. }: &RepeatedExperiment) -> String {
    let Experiment { name, title, .. } = experiment;
    let (shows, differs) = (first_sentence(&report.shows), first_sentence(&report.differs));
    let differs = if differs.is_empty() { "nothing." } else { differs };
    format!("{title} ({name}). Shows: {shows} Differs: {differs}")
}

/// The text as far as its first full stop.
fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

/// An example over time, under each of its schedulers side by side.
fn over_time(page: &mut Page, datastore: &Datastore) -> Result<(), Failure> {
    let runs = datastore.run()?;
    page.heading(datastore.id, datastore.title);
    page.paragraph(datastore.shows);
    let charts: Vec<Vec<Chart>> = runs.iter().map(|run| run.charts.clone()).collect();
    page.charts(&on_one_scale(&charts)?);
    for run in &runs {
        page.json(&run.id, &console::json(&run.result)?);
    }
    Ok(())
}

/// What a chart shows.
fn values(chart: &Chart) -> Value {
    let series = chart.series.iter();
    let series: Vec<Value> =
        series.map(|line| json!({"name": line.name, "points": line.points})).collect();
    json!({"title": chart.title, "x": chart.x, "y": chart.y, "series": series})
}

fn section(
    page: &mut Page,
    RepeatedExperiment { experiment, report, charts }: &RepeatedExperiment,
) {
    let Experiment { name, alias, title, source, .. } = experiment;
    page.heading(name, &format!("{name}: {title}"));
    page.paragraph(&report.shows);
    if !report.known.is_empty() {
        page.about(&format!("Known to the simulation before: {}.", report.known.join("; ")));
    }
    page.charts(charts);
    if !report.figures.is_empty() {
        page.table(&report.figures_table());
    }
    for table in &report.tables {
        page.table(table);
    }
    if !report.findings.is_empty() {
        page.list(report.findings.iter().map(|finding| (finding.as_str(), false)));
    }
    if !report.differs.is_empty() {
        page.paragraph(&report.differs);
    }
    let parameters = report.parameters.iter().map(|(name, value)| format!(" {name}: {value}."));
    page.about(&format!("{alias}. Source: {source}.{}", parameters.collect::<String>()));
}
