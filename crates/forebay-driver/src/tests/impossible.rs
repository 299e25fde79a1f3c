//! States that should be impossible, and engines that say what cannot be.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

#[test]
fn a_completion_that_cannot_be_is_counted_and_ends_nothing() {
    let mut bed = Bed::new(usize::MAX);
    bed.submit(Op::Read, 512);
    let Sent { part: gone, command } = bed.dispatch().unwrap();
    let again = command.clone();
    bed.complete(Sent { part: gone, command }, Ok(512));
    bed.driver.poll_completion().unwrap();
    let id = bed.submit(Op::Read, 512);
    let sent = bed.dispatch().unwrap();
    let stale = catch_unwind(AssertUnwindSafe(|| {
        bed.complete(Sent { part: gone, command: again }, Ok(512));
    }));
    assert!(cfg!(not(debug_assertions)) || stale.is_err(), "it is told where that is wanted");
    assert_eq!(bed.driver.counters().bugs, 1);
    assert!(bed.driver.poll_completion().is_none());
    bed.complete(sent, Ok(512));
    assert_eq!(bed.driver.poll_completion().unwrap().id, id);
}

#[test]
fn a_part_that_is_not_there_takes_no_room_of_the_engine() {
    let mut bed = Bed::new(1);
    bed.submit(Op::Read, 512);
    let sent = bed.dispatch().unwrap();
    let gone = sent.part;
    bed.complete(sent, Ok(512));
    bed.driver.poll_completion().unwrap();
    let taken = catch_unwind(AssertUnwindSafe(|| bed.driver.take(gone)));
    assert!(taken.map_or(cfg!(debug_assertions), |command| command.is_none()));
    assert_eq!(bed.driver.counters().bugs, 1);
    bed.submit(Op::Read, 512);
    assert!(bed.dispatch().is_some(), "the engine has room for one");
}
