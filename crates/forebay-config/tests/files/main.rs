//! Files and their units: what is read, what is refused, and in which words.

mod hostile;
mod messages;
mod units;
mod values;
