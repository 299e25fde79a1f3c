//! Results that were saved, read back. Anything may have become of the file in the meantime, so its
//! figures are checked before they are summed, drawn and compared.

use std::path::Path;

use forebay_load::results::model::{Report, VERSION};
use serde_json::Value;
use serde_json::error::Category;

use crate::failure::Failure;

/// The longest results that are read, in bytes. Those of a run over time have some 100 KiB.
const RESULTS_BYTES_MAX: usize = 64 << 20;
/// The largest figure: a run of 1000 hours moves fewer bytes.
const FIGURE_MAX: f64 = 1e15;
/// The largest sum of all figures, so that no sum of some of them exceeds a `u64`.
const SUM_MAX: f64 = 9e18;

/// The results in a file.
pub(crate) fn read(path: &Path) -> Result<Report, Failure> {
    let text = forebay_config::read_at_most(path, RESULTS_BYTES_MAX)?;
    let wrong = |found: String, todo: &str| {
        Failure::Input(format!(
            "{}: these are no results of `bench` or `sim run`: {found}; {todo}",
            path.display()
        ))
    };
    let save = "save what they print with --format json";
    let not_json = |error: serde_json::Error| match error.classify() {
        Category::Data => wrong(String::from("this is JSON, but of something else"), save),
        _ => wrong(format!("not valid JSON: {error}"), save),
    };
    let value: Value = serde_json::from_str(&text).map_err(not_json)?;
    if let Some(version) = other_version(&value) {
        return Err(Failure::Input(format!(
            "{}: these results have version {version} of their format, and this program reads \
             version {VERSION}; use the version of forebay that wrote them",
            path.display()
        )));
    }
    let report: Report = serde_json::from_str(&text).map_err(not_json)?;
    // only the known fields: a newer version may add others
    let known = serde_json::to_value(&report).map_err(not_json)?;
    let mut checks = Checks::default();
    checks.value("", &known).map_err(|found| wrong(found, "run the load again"))?;
    Ok(report)
}

/// The version of the results or of one of their runs, if it is another one than this program reads.
fn other_version(results: &Value) -> Option<&Value> {
    let runs = results.get("runs").and_then(Value::as_array);
    let all = std::iter::once(results).chain(runs.into_iter().flatten());
    let mut versions = all.filter_map(|run| run.get("version").filter(|of| of.is_number()));
    versions.find(|of| **of != VERSION)
}

/// What the figures of a file have to be: what is wrong with the first one that is not so.
#[derive(Default)]
struct Checks {
    sum: f64,
    /// Samples of the run over time that is being checked.
    samples: Option<usize>,
}

impl Checks {
    /// Checks the value that the keys of `path` lead to.
    fn value(&mut self, path: &str, value: &Value) -> Result<(), String> {
        match value {
            Value::Number(number) => self.figure(path, number.as_f64(), number),
            Value::Array(list) => self.list(path, list),
            Value::Object(fields) => {
                for (key, value) in fields {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    match (key.as_str(), value) {
                        // any number is a seed
                        ("seed", _) => {}
                        ("series", _) => self.series(&path, value)?,
                        ("latency_ns" | "flush_latency_ns", Value::String(counts)) => {
                            self.counts(&path, counts)?;
                        }
                        _ => self.value(&path, value)?,
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn figure(
        &mut self,
        path: &str,
        figure: Option<f64>,
        shown: &dyn std::fmt::Display,
    ) -> Result<(), String> {
        let figure = figure.unwrap_or(f64::INFINITY);
        self.sum += figure.max(0.0);
        if !(0.0..=FIGURE_MAX).contains(&figure) {
            return Err(format!("`{path}` is {shown}; expected a number from 0 to {FIGURE_MAX:e}"));
        }
        if self.sum > SUM_MAX {
            return Err(format!("the figures up to `{path}` amount to more than {SUM_MAX:e}"));
        }
        Ok(())
    }

    fn list(&mut self, path: &str, list: &[Value]) -> Result<(), String> {
        let is_column =
            !list.is_empty() && list.iter().all(|value| value.is_number() || value.is_null());
        if let Some(samples) = self.samples.filter(|&samples| is_column && samples != list.len()) {
            return Err(format!(
                "`{path}` has {} values; expected {samples}, one for each of `ends_seconds`",
                list.len()
            ));
        }
        let mut all = list.iter().enumerate();
        all.try_for_each(|(place, value)| self.value(&format!("{path}[{place}]"), value))
    }

    /// Columns, with a value for each sample.
    fn series(&mut self, path: &str, series: &Value) -> Result<(), String> {
        let ends = series.get("ends_seconds").and_then(Value::as_array);
        let ends: Vec<f64> = ends.into_iter().flatten().filter_map(Value::as_f64).collect();
        if !ends.is_sorted() {
            return Err(format!("the times in `{path}.ends_seconds` do not rise"));
        }
        self.samples = Some(ends.len());
        self.value(path, series)?;
        self.samples = None;
        Ok(())
    }

    /// Latencies as `NANOSECONDS:COUNT`.
    fn counts(&mut self, path: &str, counts: &str) -> Result<(), String> {
        for entry in counts.split_ascii_whitespace() {
            let number = |text: &str| text.parse::<u64>().ok();
            let parts = entry.split_once(':');
            let parts = parts.and_then(|(ns, count)| Some((number(ns)?, number(count)?)));
            let Some((_, count)) = parts else {
                return Err(format!(
                    "`{path}` has `{}`; expected NANOSECONDS:COUNT",
                    entry.escape_debug()
                ));
            };
            self.figure(path, Some(count as f64), &count)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(results: &Value) -> Result<(), String> {
        Checks::default().value("", results)
    }

    #[test]
    fn figures_that_no_run_has_are_refused_by_their_path() {
        for (results, path) in [
            (json!({"duration_seconds": -5.0}), "`duration_seconds` is -5.0"),
            (json!({"classes": [{}, {"iops": 1e308}]}), "`classes[1].iops` is 1e+308"),
            (json!({"classes": [{"requests": u64::MAX}]}), "`classes[0].requests`"),
            (
                json!({"classes": [{"latency_ns": "5:1 6:-1"}]}),
                "`classes[0].latency_ns` has `6:-1`",
            ),
            (json!({"latency_ns": "5:18446744073709551615"}), "`latency_ns`"),
            (json!({"latency_ns": "x"}), "expected NANOSECONDS:COUNT"),
            (json!({"series": {"ends_seconds": [2.0, 1.0]}}), "`series.ends_seconds` do not rise"),
            (
                json!({"series": {"ends_seconds": [1.0], "jobs": [{"iops": [1.0, 2.0]}]}}),
                "`series.jobs[0].iops` has 2 values; expected 1",
            ),
        ] {
            let error = found(&results).unwrap_err();
            assert!(error.contains(path), "{results}: {error}");
        }
    }

    #[test]
    fn figures_that_a_run_may_have_are_taken() {
        for results in [
            json!({"seed": u64::MAX, "cpu_seconds": null, "latency_ns": "", "version": 1}),
            json!({"latency_ns": "5:1 1000:7", "series": null}),
            json!({"series": {"ends_seconds": [1.0, 2.0], "disk": {"speed": [null, 0.5], "old": []}},
                   "border": [[1.0, 2.0, 3.0]]}),
        ] {
            assert_eq!(found(&results), Ok(()), "{results}");
        }
    }

    #[test]
    fn no_sum_of_figures_exceeds_a_counter() {
        let many = |count: usize| found(&json!(vec![1e15; count]));
        assert_eq!(many(9000), Ok(()));
        assert!(many(9001).unwrap_err().contains("amount to more than 9e18"));
    }
}
