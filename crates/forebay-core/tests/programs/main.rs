//! Any sequence of verbs: random ones, and those that went wrong once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod program;

use program::Program;
use proptest::prelude::*;

proptest! {
    // some 300,000 verbs; more with PROPTEST_CASES, and with `cargo fuzz`
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_program_ends_with_nothing_left(
        verbs in prop::collection::vec(any::<[u8; 6]>(), 1..600).prop_map(|v| Program(v.concat()))
    ) {
        verbs.run();
    }
}
