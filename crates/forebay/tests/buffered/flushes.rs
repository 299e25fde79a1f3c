//! What a flush is charged with.

use std::os::unix::fs::FileExt;

use forebay::Op;

use crate::{Bed, MIB};

#[test]
fn a_flush_of_an_engines_own_is_charged_with_what_is_dirty() {
    let bed = Bed::new();
    let file = bed.file("data");
    let flushes = || bed.class.permit_counters().operations[Op::Flush.index()];
    for round in 1..=5 {
        file.write_all_at(&vec![round as u8; 3 << 20], 5 * MIB).unwrap();
        file.write_all_at(&[9; 4096], 100 * MIB).unwrap();
        let before = bed.admitted();
        bed.class.sync_data(&file).unwrap();
        let charged = bed.admitted() - before;
        // nothing where the kernel does not say what is dirty; a large page is dirty as a whole
        assert!(charged == 0 || (3 * MIB..=4 * MIB + 8192).contains(&charged), "{charged}");
        bed.class.sync_all(&file).unwrap();
        assert_eq!(bed.admitted() - before, charged, "nothing is dirty any more");
        assert_eq!(flushes(), 2 * round);
    }
}
