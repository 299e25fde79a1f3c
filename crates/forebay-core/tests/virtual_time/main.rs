//! The scheduler as its users see it, on a clock that is moved by hand.

mod shares;
mod world;
