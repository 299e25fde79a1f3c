//! Tests of the io-properties file, by subject.

mod companion;
mod devices;
mod measured;
mod messages;
mod regions;
mod round_trip;
mod samples;
mod variants;
