//! Which published figures are met and which are not, of all experiments together.

use forebay_experiments::{Experiment, Figure, Report, State};

/// What the figures say in all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// Predicted, and met within a tenth or the article's rounding.
    pub(super) met: usize,
    /// Predicted, and within a factor of 2.
    pub(super) near: usize,
    /// Predicted, and neither.
    pub(super) off: usize,
    pub(super) fitted: usize,
    pub(super) inputs: usize,
    pub(super) null: usize,
}

impl Totals {
    pub(super) fn of<'a>(figures: impl IntoIterator<Item = &'a Figure>) -> Self {
        let mut totals = Self::default();
        for figure in figures {
            *match figure.state {
                State::Predicted if figure.is_met() => &mut totals.met,
                State::Predicted if figure.is_near() => &mut totals.near,
                State::Predicted => &mut totals.off,
                State::Fitted => &mut totals.fitted,
                State::Input => &mut totals.inputs,
                State::Null => &mut totals.null,
            } += 1;
        }
        totals
    }

    pub(super) const fn predicted(&self) -> usize {
        self.met + self.near + self.off
    }

    pub(super) const fn all(&self) -> usize {
        self.predicted() + self.fitted + self.inputs + self.null
    }

    /// All of them by name.
    pub(super) fn parts(&self) -> Vec<(&'static str, usize)> {
        let Self { met, near, off, fitted, inputs, null } = *self;
        vec![
            ("met", met),
            ("within a factor of 2", near),
            ("further off", off),
            (State::Fitted.name(), fitted),
            (State::Input.name(), inputs),
            (State::Null.name(), null),
        ]
    }
}

pub(super) fn totals(repeated: &[RepeatedExperiment]) -> Totals {
    Totals::of(repeated.iter().flat_map(|one| &one.report.figures))
}

/// How many figures are met in all.
pub(super) fn in_all(repeated: &[RepeatedExperiment]) -> String {
    let totals = totals(repeated);
    let Totals { met, near, fitted, inputs, null, .. } = totals;
    let mut said = Vec::new();
    if totals.predicted() > 0 {
        let of = totals.predicted();
        said.push(format!(
            "{met} of {of} predicted figures are met, within 10 % or the article's rounding; {near} \
             more are within a factor of 2."
        ));
    }
    if fitted + inputs + null > 0 {
        said.push(format!(
            "Of {} published figures {fitted} were fitted to, {inputs} are inputs, and {null} a null \
             model meets too: they do not count.",
            totals.all()
        ));
    }
    match repeated.iter().filter(|one| one.report.figures.is_empty()).count() {
        0 => {}
        1 => said.push("Of 1 experiment no figures were published.".to_owned()),
        without => said.push(format!("Of {without} experiments no figures were published.")),
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

/// An experiment that was repeated, with its charts drawn.
pub(super) struct RepeatedExperiment {
    pub(super) experiment: Experiment,
    pub(super) report: Report,
    pub(super) charts: Vec<String>,
}
