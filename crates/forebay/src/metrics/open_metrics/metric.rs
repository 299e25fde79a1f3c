//! Passes metrics to the encoder.

use std::{fmt, iter};

use forebay_core::DiskTime;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::metrics::Distribution;

/// One metric: its name, its help text, and its value.
pub(super) type Metric<T, V> = (&'static str, &'static str, fn(&T) -> V);

/// Old and new names of metrics. A metric is also shown with its old names, for one release.
const OLD_NAMES: [(&str, &str); 13] = [
    ("bridged", "absence_bypasses"),
    ("held_long", "stuck_requests"),
    ("held_long_seconds", "stuck_seconds"),
    ("late_turn_sec", "late_turn_seconds"),
    ("limited_time_sec", "limited_seconds"),
    ("past_window", "window_bypasses"),
    ("stop_max_seconds", "stall_max_seconds"),
    ("stop_overdue", "stall_overdue"),
    ("stopped_sec", "stalled_seconds"),
    ("stopped_seconds", "stalled_seconds"),
    ("stops", "stalls"),
    ("undecided_bytes", "unattributed_bytes"),
    ("waited_sec", "waited_seconds"),
];

/// One value of a metric.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Count(u64),
    /// A count of nanoseconds, which is shown in seconds.
    Nanos(u64),
    Gauge(f64),
    Number(u64),
    Times(&'a Distribution),
    Unknown,
}

impl Value<'_> {
    fn encode(self, metric: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => ConstCounter::new(count).encode(metric),
            Value::Nanos(nanos) => ConstCounter::new(seconds(nanos)).encode(metric),
            Value::Gauge(value) => ConstGauge::new(value).encode(metric),
            Value::Number(number) => ConstGauge::new(number).encode(metric),
            Value::Times(distribution) => histogram(distribution, metric),
            Value::Unknown => Ok(()),
        }
    }
}

/// Metrics whose names have the same prefix.
pub(super) struct Section<'a, 'e>(
    pub(super) &'a mut DescriptorEncoder<'e>,
    pub(super) &'static str,
);

impl Section<'_, '_> {
    /// Encodes one metric without labels.
    pub(super) fn one(
        &mut self,
        kind: MetricType,
        name: &str,
        help: &str,
        value: Value<'_>,
    ) -> fmt::Result {
        let Self(encoder, prefix) = self;
        value.encode(encoder.encode_descriptor(&format!("{prefix}{name}"), help, None, kind)?)
    }

    /// Encodes one metric with a value for each of several labels, also under its old names.
    pub(super) fn family<'v, L: EncodeLabelSet>(
        &mut self,
        kind: MetricType,
        (name, help): (&str, &str),
        samples: &(impl Iterator<Item = (L, Value<'v>)> + Clone),
    ) -> fmt::Result {
        let Self(encoder, prefix) = self;
        let old = OLD_NAMES.iter().filter(|(_, new)| *new == name);
        let old = old.map(|(old, _)| (*old, format!("Old name of {name}, for one release")));
        for (name, help) in iter::once((name, help.to_owned())).chain(old) {
            let name = format!("{prefix}{name}");
            let mut metric = encoder.encode_descriptor(&name, &help, None, kind)?;
            let samples = samples.clone();
            for (labels, value) in samples.filter(|(_, value)| !matches!(value, Value::Unknown)) {
                value.encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    /// Encodes all metrics of a table, each for all `items`.
    pub(super) fn table<'v, L: EncodeLabelSet, T: 'v, V>(
        &mut self,
        kind: MetricType,
        table: &[Metric<T, V>],
        items: &(impl Iterator<Item = (L, &'v T)> + Clone),
        value: impl Fn(V) -> Value<'v>,
    ) -> fmt::Result {
        table.iter().try_for_each(|&(name, help, read)| {
            let samples = items.clone().map(|(labels, item)| (labels, value(read(item))));
            self.family(kind, (name, help), &samples)
        })
    }
}

fn histogram(distribution: &Distribution, mut metric: MetricEncoder<'_>) -> fmt::Result {
    let mut buckets: Vec<_> =
        distribution.doublings().map(|(end, count)| (seconds(end), count)).collect();
    if let Some(last) = buckets.last_mut() {
        last.0 = f64::INFINITY;
    }
    let sum = seconds(distribution.sum_nanos());
    metric.encode_histogram::<NoLabelSet>(sum, distribution.count(), &buckets, None)
}

pub(super) fn disk_nanos(time: DiskTime) -> u64 {
    time.as_nanos_ceil()
}

pub(super) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
