//! Programs of verbs: random ones, and those that have failed before.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod program;

use program::Program;
use proptest::prelude::*;

proptest! {
    // some 200,000 verbs; more with PROPTEST_CASES, and with `cargo fuzz`
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn any_program_ends_with_nothing_left(
        verbs in prop::collection::vec(any::<[u8; 6]>(), 1..1_600).prop_map(|v| Program(v.concat()))
    ) {
        verbs.run();
    }
}
