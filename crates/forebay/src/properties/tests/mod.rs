//! Tests of the io-properties file, by what is tested.

mod companion;
mod devices;
mod measured;
mod messages;
mod regions;
mod round_trip;
mod samples;
mod variants;
