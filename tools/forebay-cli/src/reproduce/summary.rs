//! Which published figures are met and which are not, of all experiments together.

use forebay_experiments::Figure;

use super::repeated::RepeatedExperiment;

/// How many figures are met in all.
pub(super) fn in_all(repeated: &[RepeatedExperiment]) -> String {
    let figures = || repeated.iter().flat_map(|one| &one.report.figures);
    let results: Vec<&Figure> = figures().filter(|figure| !figure.is_input).collect();
    let met = results.iter().filter(|figure| figure.is_met()).count();
    let (of, inputs) = (results.len(), figures().count() - results.len());
    let without = repeated.iter().filter(|one| one.report.figures.is_empty()).count();
    let mut said = Vec::new();
    if of > 0 {
        said.push(format!("{met} of {of} published figures are met."));
    }
    if inputs > 0 {
        let more = if of > 0 { "more" } else { "figures" };
        said.push(format!(
            "{inputs} {more} say nothing: disk or load were chosen such that they come out."
        ));
    }
    match without {
        0 => {}
        1 => said.push("Of 1 experiment no figures were published.".to_owned()),
        _ => said.push(format!("Of {without} experiments no figures were published.")),
    }
    said.join(" ")
}

/// What is met of one experiment, and by name what is not.
pub(super) fn of_one(RepeatedExperiment { experiment, report, .. }: &RepeatedExperiment) -> String {
    format!("{} ({}): {}.", experiment.name, experiment.alias, report.verdict())
}

/// The same of all, a line each.
pub(super) fn text(repeated: &[RepeatedExperiment]) -> String {
    let lines: String = repeated.iter().map(|one| format!("  {}\n", of_one(one))).collect();
    format!("{}\n{lines}\n", in_all(repeated))
}
