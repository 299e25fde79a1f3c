//! Benchmarks of the scheduler: see `benches/`.
