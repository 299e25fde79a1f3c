//! The figures of all experiments, for programs.

use forebay_experiments::{Figure, NullModel, Seed, Setting, State};
use serde::Serialize;

use super::summary::RepeatedExperiment;

/// All that were repeated.
#[derive(Serialize)]
pub(super) struct Results<'a> {
    version: u32,
    seed: u64,
    experiments: Vec<ExperimentResult<'a>>,
}

#[derive(Serialize)]
struct ExperimentResult<'a> {
    name: &'a str,
    number: &'a str,
    title: &'a str,
    source: &'a str,
    known: &'a [String],
    figures: Vec<FigureResult<'a>>,
    findings: &'a [String],
}

#[derive(Serialize)]
struct FigureResult<'a> {
    name: &'a str,
    unit: &'a str,
    published: Bounds,
    ours: f64,
    within_factor: f64,
    met: bool,
    near: bool,
    state: &'static str,
    input: bool,
    null_models: Vec<NullResult<'a>>,
    seed: u64,
}

#[derive(Serialize)]
struct NullResult<'a> {
    name: &'a str,
    value: f64,
}

/// An end that was not published is null.
#[derive(Serialize)]
struct Bounds {
    from: Option<f64>,
    to: Option<f64>,
}

impl<'a> Results<'a> {
    pub(super) fn of(repeated: &'a [RepeatedExperiment], setting: Setting) -> Self {
        let Seed(seed) = setting.seed;
        let null = |null: &'a NullModel| NullResult { name: &null.name, value: null.value };
        let figure = |figure: &'a Figure| FigureResult {
            name: &figure.name,
            unit: figure.unit,
            published: Bounds {
                from: Some(figure.published.from).filter(|end| end.is_finite()),
                to: Some(figure.published.to).filter(|end| end.is_finite()),
            },
            ours: figure.ours,
            within_factor: figure.within,
            met: figure.is_met(),
            near: figure.is_near(),
            state: figure.state.name(),
            input: figure.state == State::Input,
            null_models: figure.nulls.iter().map(null).collect(),
            seed,
        };
        let experiment = |one: &'a RepeatedExperiment| ExperimentResult {
            name: one.experiment.name,
            number: one.experiment.alias,
            title: one.experiment.title,
            source: one.experiment.source,
            known: &one.report.known,
            figures: one.report.figures.iter().map(figure).collect(),
            findings: &one.report.findings,
        };
        Self { version: 1, seed, experiments: repeated.iter().map(experiment).collect() }
    }
}
