//! Job files, load generators and results.
