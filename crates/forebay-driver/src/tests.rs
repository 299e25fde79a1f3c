//! The driver between a queue and an engine that the test controls.

mod impossible;

use forebay_core::{
    Control, CostCurve, DiskModel, DiskRates, EnqueueError, GroupConfig, IoGroup, Op, Place,
    Policy, Time,
};

use super::*;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Io {
    op: Op,
    offset: u64,
    len: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum IoError {
    Again,
    Failed,
    Cancelled,
    NothingWritten,
}

impl Command for Io {
    type Error = IoError;

    fn op(&self) -> Op {
        self.op
    }

    fn bytes(&self) -> u64 {
        self.len
    }

    fn place(&self) -> Option<Place> {
        Some(Place { file: 0, offset: self.offset })
    }

    fn transfers(&self) -> bool {
        matches!(self.op, Op::Read | Op::Write)
    }

    fn part_alignment(&self) -> Option<u64> {
        self.transfers().then_some(512)
    }

    fn transfer_alignment(&self) -> u64 {
        512
    }

    fn split_off(&mut self, at: u64) -> Option<Rest<Self>> {
        let rest = (at > 0).then(|| self.len.checked_sub(at)).flatten().filter(|&rest| rest > 0)?;
        self.len = at;
        let command = Self { op: self.op, offset: self.offset + at, len: rest };
        Some(Rest { command, cuts_buffer: true })
    }

    fn unsplit(&mut self, rest: Rest<Self>) {
        assert_eq!(rest.command.offset, self.offset + self.len);
        assert!(rest.cuts_buffer);
        self.len += rest.command.len;
    }

    fn is_transient(error: &IoError) -> bool {
        *error == IoError::Again
    }

    fn cancelled() -> IoError {
        IoError::Cancelled
    }

    fn nothing_written() -> IoError {
        IoError::NothingWritten
    }
}

const NOW: Time = Time::from_nanos(1_000_000_000);
const LARGE: u64 = 8 << 20;

struct Bed {
    driver: Driver<Io>,
    class: QueueClass,
    now: Time,
}

/// What the engine has.
struct Sent {
    part: PartId,
    command: Io,
}

impl Bed {
    fn new(inflight_max: usize) -> Self {
        Self::with(inflight_max, |_| ())
    }

    fn with(inflight_max: usize, configure: impl FnOnce(&mut GroupConfig)) -> Self {
        let rates = DiskRates {
            read_iops: 100_000,
            write_iops: 100_000,
            read_bandwidth: 1_000_000_000,
            write_bandwidth: 1_000_000_000,
        };
        let model = DiskModel::from_rates(&rates).unwrap();
        let mut config = GroupConfig::new(model, Policy::pace_window());
        configure(&mut config);
        let group = IoGroup::new(config);
        let id = group.add_class(None, 100).unwrap();
        let driver = Driver::new([group.join().unwrap()], inflight_max);
        Self { driver, class: QueueClass { queue: 0, id, holder: false }, now: NOW }
    }

    fn submit(&mut self, op: Op, len: u64) -> OperationId {
        let submitted = self.driver.submit(self.now, self.class, Io { op, offset: 0, len });
        submitted.unwrap()
    }

    /// What goes to the engine now.
    fn dispatch(&mut self) -> Option<Sent> {
        let unsent = self.driver.poll_unsent();
        let dispatch = unsent.or_else(|| self.driver.poll_dispatch(self.now, 0))?;
        let part = dispatch.part;
        Some(Sent { part, command: self.driver.take(part).unwrap() })
    }

    /// Whether the part has ended.
    fn complete(&mut self, sent: Sent, result: Result<u64, IoError>) -> bool {
        let Sent { part, command } = sent;
        let mut has_ended = false;
        let ended = |_: PartEnd<'_>| has_ended = true;
        self.driver.handle_completion(self.now, Time::ZERO, part, result, command, ended);
        has_ended
    }

    /// Sends all that is to be done to an engine that does as `engine` says.
    fn run(&mut self, mut engine: impl FnMut(&Io) -> Result<u64, IoError>) -> Completion<Io> {
        loop {
            if let Some(completion) = self.driver.poll_completion() {
                assert_eq!(self.driver.counters().bugs, 0);
                return completion;
            }
            match self.dispatch() {
                Some(sent) => {
                    let result = engine(&sent.command);
                    self.complete(sent, result);
                }
                None => self.now = self.now.plus_nanos(100_000),
            }
        }
    }
}

#[test]
fn a_request_ends_with_what_the_engine_did_from_its_beginning_on() {
    for op in [Op::Read, Op::Write] {
        for len in [512, 4096, 128 << 10, LARGE] {
            for one_in in [1, 2, 3, 10] {
                let mut bed = Bed::new(usize::MAX);
                let mut calls = 0;
                let mut done = Vec::new();
                bed.submit(op, len);
                // One transfer in this many is short by half.
                let completion = bed.run(|command| {
                    calls += 1;
                    let half = (command.len / 2).next_multiple_of(512);
                    let bytes = if calls % one_in == 0 { half } else { command.len };
                    done.push((command.offset, bytes));
                    Ok(bytes)
                });
                assert_eq!(completion.result, Ok(len));
                assert_eq!(completion.command, Io { op, offset: 0, len });
                done.sort_unstable();
                let end = done.iter().fold(0, |end, &(at, bytes)| {
                    assert_eq!(at, end, "no byte twice and none left out: {done:?}");
                    at + bytes
                });
                assert_eq!(end, len);
            }
        }
    }
}

#[test]
fn temporary_errors_are_retried_a_bounded_number_of_times() {
    for failures in [1, 15, 16, 17, u32::MAX] {
        let mut bed = Bed::new(usize::MAX);
        bed.submit(Op::Read, 4096);
        let mut calls = 0;
        let completion = bed.run(|command| {
            calls += 1;
            if calls <= failures { Err(IoError::Again) } else { Ok(command.len) }
        });
        let tries = if failures <= 16 { Ok(4096) } else { Err(IoError::Again) };
        assert_eq!((completion.result, calls), (tries, failures.min(16) + 1));
        assert_eq!(bed.driver.counters().transient_errors.reads, u64::from(failures.min(16)));
    }
}

#[test]
fn a_transfer_that_ends_within_a_block_is_over_and_a_write_of_nothing_is_an_error() {
    let ends = |op, bytes| {
        let mut bed = Bed::new(usize::MAX);
        bed.submit(op, 4096);
        bed.run(|_| Ok(bytes)).result
    };
    assert_eq!(ends(Op::Read, 700), Ok(700));
    assert_eq!(ends(Op::Read, 0), Ok(0));
    assert_eq!(ends(Op::Write, 700), Ok(700));
    assert_eq!(ends(Op::Write, 0), Err(IoError::NothingWritten));
}

#[test]
fn an_error_shows_where_nothing_was_done_before_it() {
    for failed in [0, 1, 3] {
        let mut bed = Bed::new(usize::MAX);
        bed.submit(Op::Read, LARGE);
        let mut parts = Vec::new();
        let completion = bed.run(|command| {
            parts.push(command.clone());
            if parts.len() == failed + 1 { Err(IoError::Failed) } else { Ok(command.len) }
        });
        let done = parts[failed].offset;
        let expected = if done == 0 { Err(IoError::Failed) } else { Ok(done) };
        assert_eq!((completion.result, completion.command.len), (expected, LARGE));
    }
    for op in [Op::Discard, Op::Flush] {
        let mut bed = Bed::new(usize::MAX);
        bed.submit(op, 4096);
        assert_eq!(bed.run(|_| Err(IoError::Failed)).result, Err(IoError::Failed));
        bed.submit(op, 4096);
        assert_eq!(bed.run(|_| Ok(0)).result, Ok(0));
    }
}

#[test]
fn an_operation_that_the_engine_refuses_is_retried_first() {
    let mut bed = Bed::new(8);
    let first = bed.submit(Op::Read, 4096);
    bed.submit(Op::Read, 512);
    let Sent { part, command } = bed.dispatch().unwrap();
    bed.driver.refuse(part, command);
    assert!(bed.driver.poll_dispatch(bed.now, 0).is_none(), "not before the refused one");
    let offered = bed.driver.poll_timeout(bed.now).unwrap();
    assert!(offered <= bed.now.plus_nanos(1_000_000), "{offered:?}");
    let completion = bed.run(|command| Ok(command.len));
    assert_eq!((completion.id, completion.result), (first, Ok(4096)));
}

#[test]
fn while_the_engine_is_full_the_queue_is_asked_now_and_then() {
    let mut bed = Bed::new(1);
    bed.submit(Op::Read, 4096);
    bed.submit(Op::Read, 4096);
    let sent = bed.dispatch().unwrap();
    let asked = bed.driver.poll_timeout(bed.now).unwrap();
    assert_eq!(asked, NOW.plus_nanos(10_000_000));
    assert!(bed.dispatch().is_none());
    assert_eq!(bed.driver.queue(0).counters().in_disk, 1);
    bed.now = asked;
    assert!(bed.dispatch().is_none());
    assert_eq!(bed.driver.queue(0).counters().in_disk, 2, "it has been asked");
    bed.complete(sent, Ok(4096));
    assert!(bed.dispatch().is_some());
}

#[test]
fn all_parts_are_queued_or_none() {
    for requests_max in [16, 64] {
        let mut bed = Bed::with(usize::MAX, |config| config.requests_max = requests_max);
        let mut taken = 0;
        let command = Io { op: Op::Write, offset: 0, len: LARGE };
        let (error, back) = loop {
            let before = bed.driver.queue(0).len();
            match bed.driver.submit(bed.now, bed.class, command.clone()) {
                Ok(_) => taken += 1,
                Err(refused) => {
                    assert_eq!(bed.driver.queue(0).len(), before);
                    break refused;
                }
            }
        };
        assert_eq!((error, back), (EnqueueError::Full, command));
        assert_eq!(bed.driver.len(), taken);
        for _ in 0..taken {
            assert_eq!(bed.run(|command| Ok(command.len)).result, Ok(LARGE));
        }
        assert!(bed.driver.is_empty() && bed.driver.queue(0).is_empty());
    }
}

#[test]
fn a_cancelled_operation_ends_with_the_bytes_done() {
    // In the queue; in the engine, which does it all the same, or ends it; and
    // after a short transfer, while the rest is to be sent.
    let mut bed = Bed::new(usize::MAX);
    let id = bed.submit(Op::Read, 4096);
    assert!(bed.driver.cancel(bed.now, id, |part| assert!(matches!(part, Cancel::Ended(_)))));
    assert_eq!(bed.driver.poll_completion().unwrap().result, Err(IoError::Cancelled));

    for (answer, result) in [
        (Ok(4096), Ok(4096)),
        (Ok(512), Ok(512)),
        (Err(IoError::Cancelled), Err(IoError::Cancelled)),
        (Err(IoError::Again), Err(IoError::Again)),
    ] {
        let id = bed.submit(Op::Read, 4096);
        let sent = bed.dispatch().unwrap();
        assert!(bed.driver.cancel(bed.now, id, |part| {
            assert_eq!(part, Cancel::Inflight(sent.part));
        }));
        assert!(bed.complete(sent, answer));
        assert_eq!(bed.driver.poll_completion().unwrap().result, result);
    }

    let id = bed.submit(Op::Read, 4096);
    let sent = bed.dispatch().unwrap();
    assert!(!bed.complete(sent, Ok(1024)));
    assert!(bed.driver.cancel(bed.now, id, |part| assert!(matches!(part, Cancel::Ended(_)))));
    let completion = bed.driver.poll_completion().unwrap();
    assert_eq!(completion.result, Ok(1024), "these were done before");
    assert_eq!(completion.command.len, 4096);
    assert!(bed.dispatch().is_none() && bed.driver.queue(0).is_empty());
}

#[test]
fn a_large_request_is_cancelled_with_all_its_parts() {
    let mut bed = Bed::new(2);
    let id = bed.submit(Op::Write, LARGE);
    let sent: Vec<_> = std::iter::from_fn(|| bed.dispatch()).collect();
    let (mut ended, mut inflight) = (0, 0);
    assert!(bed.driver.cancel(bed.now, id, |part| match part {
        Cancel::Ended(_) => ended += 1,
        Cancel::Inflight(_) => inflight += 1,
    }));
    assert!(ended > 2 && inflight == sent.len());
    let done = sent[0].command.len;
    for sent in sent {
        let len = sent.command.len;
        assert!(bed.driver.poll_completion().is_none());
        bed.complete(sent, Ok(len));
    }
    let completion = bed.driver.poll_completion().unwrap();
    assert_eq!(completion.result, Ok(done * inflight as u64));
    assert!(bed.driver.is_empty() && bed.driver.queue(0).is_empty());
}

#[test]
fn an_operation_that_is_gone_is_not_the_one_in_its_place() {
    let mut bed = Bed::new(usize::MAX);
    let gone = bed.submit(Op::Read, 512);
    bed.run(|command| Ok(command.len));
    let present = bed.submit(Op::Read, 512);
    assert_eq!(gone.index(), present.index());
    assert!(!bed.driver.cancel(bed.now, gone, |_| ()));
    assert_eq!(bed.run(|command| Ok(command.len)).result, Ok(512));
}

#[test]
fn a_part_is_known_again_when_the_engine_is_done() {
    let mut bed = Bed::new(usize::MAX);
    bed.submit(Op::Read, 512);
    let part = bed.dispatch().unwrap().part;
    assert_eq!(PartId::from_bits(part.to_bits()), part);
}

#[test]
fn reads_have_a_queue_of_their_own_where_there_are_two() {
    let queues = |count| Op::ALL.map(|op| queue_for(op, count));
    assert_eq!(queues(1), [0; 4]);
    assert_eq!(queues(2).map(|queue| queue == 0), Op::ALL.map(|op| op == Op::Read));
}

#[test]
fn the_parts_of_a_request_go_on_where_others_end() {
    let bytes = || CostCurve::transfer(100_000_000).unwrap();
    let rates = DiskRates {
        read_iops: 100,
        write_iops: 100,
        read_bandwidth: 100_000_000,
        write_bandwidth: 100_000_000,
    };
    let model = DiskModel::from_rates(&rates).unwrap().with_sequential(bytes(), bytes());
    for op in [Op::Read, Op::Write] {
        let mut bed = Bed::with(64, |config| {
            config.model = model.clone();
            // at a pace, so that the disk has time for the seek
            config.control = Control::Rates;
        });
        let id = bed.submit(op, LARGE);
        assert_eq!(bed.driver.parts(id).map(|(_, len)| len).collect::<Vec<_>>(), [512 << 10; 16]);
        bed.run(|command| Ok(command.len));
        // the first pays a seek
        let charged = bed.driver.queue(0).counters().consumption.as_nanos_ceil();
        assert_eq!(charged, 10_000_000 + 15 * 5_242_880);
    }
}
