//! Tests of the io-properties file, by what is tested.

mod devices;
mod messages;
mod round_trip;
mod samples;
