use forebay_core::Op;
use forebay_driver::{QUEUES_MAX, queue_for};

fn main() {
    // a duplex disk has a queue for each direction
    assert_eq!([Op::Read, Op::Write].map(|op| queue_for(op, QUEUES_MAX)), [0, 1]);
}
