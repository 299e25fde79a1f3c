//! The settings of io.cost for a disk.

use std::fmt;
use std::time::Duration;

use forebay_core::LatencyTarget;

/// The rates that a search may choose, in percent of the model.
pub(crate) const RATES: [u32; 10] = [25, 40, 50, 60, 70, 80, 90, 100, 120, 150];

/// The costs of a disk, as `forebay info --format io.cost` prints them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCosts {
    /// The keys of `io.cost.model` after `ctrl` and `model`.
    pub model: String,
    /// Half of the kernel's period for handing out disk time.
    pub half_period: Duration,
    /// The bytes per second of reads and of writes.
    pub bandwidth: [u64; 2],
    /// The random requests of 4 KiB per second, of reads and of writes.
    pub iops: [u64; 2],
}

/// A setting of `io.cost.qos`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QosPoint {
    /// The rate at which disk time is handed out, in percent of the model.
    pub rate: u32,
    /// The latency above which the kernel lowers its rate, in tenths of the goal. `None` means never.
    pub bound: Option<u32>,
}

impl fmt::Display for QosPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rate {} %, latency bound ", self.rate)?;
        match self.bound {
            Some(tenths) => write!(f, "{} goals", f64::from(tenths) / 10.0),
            None => f.write_str("off"),
        }
    }
}

impl QosPoint {
    /// The line of `io.cost.qos` for the disk with this number.
    ///
    /// A percentile of 0 turns the kernel's own latency signal off. The kernel derives its period from
    /// the longer latency (`ioc_refresh_period_us`). So the latency of writes sets the period if that of
    /// reads is shorter.
    pub fn line(&self, number: &str, goal: &LatencyTarget, costs: &DiskCosts) -> String {
        let period = costs.half_period.as_micros();
        let rate = self.rate;
        let (percent, read, least) = match self.bound {
            Some(tenths) => {
                let latency = goal.latency().as_micros() * u128::from(tenths) / 10;
                (goal.permille(), latency.max(1), (rate / 2).max(1))
            }
            None => (0, period, rate),
        };
        format!(
            "{number} enable=1 ctrl=user rpct={}.{}0 rlat={read} wpct=0.00 wlat={period} \
             min={least}.00 max={rate}.00",
            percent / 10,
            percent % 10
        )
    }
}

impl DiskCosts {
    /// The line of `io.cost.model` for the disk with this number.
    pub(crate) fn line(&self, number: &str) -> String {
        format!("{number} ctrl=user model=linear {}", self.model)
    }

    /// The fraction of disk time that this many bytes per second take, of reads and of writes.
    pub(crate) fn disk_time(&self, bytes: [f64; 2]) -> f64 {
        let of = |index: usize| bytes[index] / self.bandwidth[index].max(1) as f64;
        of(0) + of(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_that_the_kernel_takes() {
        let costs = DiskCosts {
            model: "rbps=1".into(),
            half_period: Duration::from_micros(22_304),
            bandwidth: [100, 50],
            iops: [1, 1],
        };
        let goal: LatencyTarget = "p99.5=4ms".parse().unwrap();
        let line = |rate, bound| QosPoint { rate, bound }.line("7:0", &goal, &costs);
        assert_eq!(
            line(80, None),
            "7:0 enable=1 ctrl=user rpct=0.00 rlat=22304 wpct=0.00 wlat=22304 min=80.00 max=80.00"
        );
        assert_eq!(
            line(25, Some(5)),
            "7:0 enable=1 ctrl=user rpct=99.50 rlat=2000 wpct=0.00 wlat=22304 min=12.00 max=25.00"
        );
        assert_eq!(costs.line("7:0"), "7:0 ctrl=user model=linear rbps=1");
        assert!((costs.disk_time([50.0, 20.0]) - 0.9).abs() < 1e-9);
    }
}
