//! Comparisons as gates: they end with 1 where something was lost, and with 2 where that cannot be
//! told.

use clap::Args;

use crate::failure::Failure;

/// What a gate lets pass.
#[derive(Args)]
pub(crate) struct GateOptions {
    /// Ignore regressions smaller than this, such as 5% [default: any that is statistically
    /// significant fails]
    #[arg(long, value_name = "PERCENT", value_parser = percent, requires = "gate")]
    fail_below: Option<f64>,
}

impl GateOptions {
    /// From which loss on the gate is closed, as a part.
    pub(crate) fn least(&self) -> f64 {
        self.fail_below.unwrap_or(0.0)
    }
}

/// Closed where there are losses, each told in a few words.
pub(crate) fn outcome(losses: &[String]) -> Result<(), Failure> {
    match losses {
        [] => Ok(()),
        losses => Err(Failure::Lost(format!("lost: {}", losses.join("; ")))),
    }
}

/// What went wrong on the way to a comparison: there is none, and that is not a loss.
pub(crate) fn undecided(failure: Failure) -> Failure {
    match failure {
        Failure::Run(text) => Failure::Input(text),
        other => other,
    }
}

/// Reads a part such as `5%` or `5`.
fn percent(text: &str) -> Result<f64, &'static str> {
    let text = text.trim();
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    let value = number.parse::<f64>().ok().filter(|value| (0.0..100.0).contains(value));
    value.map(|value| value / 100.0).ok_or("expected 0% or more and less than 100%, such as 5%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_in_percent() {
        assert_eq!(["5%", "2.5 %", "0"].map(percent), [Ok(0.05), Ok(0.025), Ok(0.0)]);
        for wrong in ["", "%", "-1%", "100%", "5%%", "5%%%", "five", "nan"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn incomparable_figures_are_no_loss() {
        assert!(matches!(undecided(Failure::Run(String::new())), Failure::Input(_)));
        assert!(matches!(undecided(Failure::Lost(String::new())), Failure::Lost(_)));
        assert!(outcome(&[]).is_ok());
    }
}
