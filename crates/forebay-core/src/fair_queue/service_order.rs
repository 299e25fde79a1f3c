//! The orders to choose from.

/// In which order a queue serves its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceOrder {
    /// Start-time fair queueing by disk time, over all shards.
    StartTime,
    /// The fair queue of 2016, to compare with: per shard, by weights that
    /// grow with the size of a request, forgotten exponentially. Shards take
    /// turns by disk time, whatever their classes. On each shard a class has
    /// about half a request per `tau_nanos` beyond its share, since what it used
    /// is forgotten meanwhile.
    #[cfg(feature = "history")]
    ExponentialDecay {
        /// Time in which what was used falls by a factor e, in nanoseconds.
        tau_nanos: u64,
    },
}

impl ServiceOrder {
    /// The name used in reports and options.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StartTime => "start-time",
            #[cfg(feature = "history")]
            Self::ExponentialDecay { .. } => "exponential-decay",
        }
    }
}
