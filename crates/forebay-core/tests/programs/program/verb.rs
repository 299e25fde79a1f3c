//! The verbs of a program, and their encoding in bytes.

use forebay_core::Op;

/// The bytes of a verb, followed by zeros.
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn any(&mut self) -> u8 {
        let Some((&first, left)) = self.0.split_first() else { return 0 };
        self.0 = left;
        first
    }
}

/// A request: its class, by any number, and its operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) class: usize,
    pub(super) op: Op,
    pub(super) len: u64,
}

/// One step of a program. Queues, classes, groups and requests are chosen by any number, modulo the
/// number of them.
#[derive(Clone, Debug)]
pub(super) enum Verb {
    Join,
    Leave {
        queue: usize,
    },
    Enqueue {
        queue: usize,
        asked: Asked,
        nested: bool,
    },
    DispatchAtOnce {
        queue: usize,
        asked: Asked,
    },
    Split {
        queue: usize,
        asked: Asked,
    },
    Poll {
        queue: usize,
    },
    PollOnce {
        queue: usize,
    },
    Complete {
        queue: usize,
        pick: usize,
        ok: bool,
        reaped: bool,
    },
    Cancel {
        queue: usize,
        pick: usize,
    },
    Parked {
        queue: usize,
        pick: usize,
    },
    TakeUp {
        queue: usize,
        pick: usize,
    },
    /// Calls all verbs with a void ticket.
    UseStale {
        queue: usize,
        pick: usize,
    },
    AddClass {
        parent: usize,
        shares: u32,
    },
    RemoveClass {
        class: usize,
    },
    AddGroup {
        parent: usize,
        shares: u32,
    },
    RemoveGroup {
        group: usize,
    },
    Shares {
        class: usize,
        shares: u32,
    },
    GroupShares {
        group: usize,
        shares: u32,
    },
    Limit {
        class: usize,
        operations: Option<u64>,
        bytes: Option<u64>,
    },
    GroupLimit {
        group: usize,
        operations: Option<u64>,
        bytes: Option<u64>,
    },
    Speed {
        disk: usize,
    },
    BaseLatency {
        micros: u64,
    },
    Wait {
        nanos: u64,
    },
    /// Steps the clock back.
    StepBack {
        nanos: u64,
    },
}

impl Verb {
    /// The queue of a verb on one request.
    pub(super) fn queue(&self) -> usize {
        match *self {
            Self::PollOnce { queue }
            | Self::Complete { queue, .. }
            | Self::Cancel { queue, .. }
            | Self::Parked { queue, .. }
            | Self::TakeUp { queue, .. }
            | Self::UseStale { queue, .. } => queue,
            _ => 0,
        }
    }

    pub(super) fn decode(bytes: &mut Bytes<'_>) -> Self {
        // mostly verbs of requests, and sometimes the others
        match bytes.any() {
            kind @ 0..200 => Self::of_requests(kind, bytes),
            kind => Self::of_others(kind, bytes),
        }
    }

    fn of_requests(kind: u8, bytes: &mut Bytes<'_>) -> Self {
        let queue = usize::from(bytes.any());
        let mut pick = || usize::from(bytes.any());
        match kind {
            0..50 => Self::Enqueue { queue, asked: asked(bytes), nested: false },
            50..60 => Self::Enqueue { queue, asked: asked(bytes), nested: true },
            60..75 => Self::DispatchAtOnce { queue, asked: asked(bytes) },
            75..115 => Self::Poll { queue },
            115..125 => Self::PollOnce { queue },
            125..165 => {
                let (pick, how) = (pick(), pick());
                Self::Complete { queue, pick, ok: how % 8 != 0, reaped: how % 3 == 0 }
            }
            165..175 => Self::Cancel { queue, pick: pick() },
            175..185 => Self::Parked { queue, pick: pick() },
            185..195 => Self::TakeUp { queue, pick: pick() },
            _ => Self::UseStale { queue, pick: pick() },
        }
    }

    fn of_others(kind: u8, bytes: &mut Bytes<'_>) -> Self {
        let which = usize::from(bytes.any());
        match kind {
            200..203 => Self::Join,
            203 => Self::Leave { queue: which },
            204 => Self::Split { queue: which, asked: asked(bytes) },
            205..208 => Self::AddClass { parent: which, shares: shares(bytes) },
            208..210 => Self::RemoveClass { class: which },
            210 => Self::AddGroup { parent: which, shares: shares(bytes) },
            211 => Self::RemoveGroup { group: which },
            212..216 => Self::Shares { class: which, shares: shares(bytes) },
            216 => Self::GroupShares { group: which, shares: shares(bytes) },
            217..221 => {
                let (operations, bytes) = limits(bytes);
                Self::Limit { class: which, operations, bytes }
            }
            221 => {
                let (operations, bytes) = limits(bytes);
                Self::GroupLimit { group: which, operations, bytes }
            }
            222 => Self::Speed { disk: which },
            223 => Self::BaseLatency { micros: which as u64 * 40 },
            224..252 => Self::Wait { nanos: time(which, bytes) },
            _ => Self::StepBack { nanos: time(which, bytes) },
        }
    }
}

fn asked(bytes: &mut Bytes<'_>) -> Asked {
    let class = usize::from(bytes.any());
    let op = Op::ALL[usize::from(bytes.any()) % Op::ALL.len()];
    let size = bytes.any();
    let len = match size {
        0..100 => 4096,
        100..140 => 128 << 10,
        140..160 => 0,
        160..240 => u64::from(size) * 512,
        _ => u64::from(size) << 20,
    };
    Asked { class, op, len }
}

/// Shares, which include invalid ones.
fn shares(bytes: &mut Bytes<'_>) -> u32 {
    match bytes.any() {
        255 => 10_001,
        254 => 10_000,
        shares => u32::from(shares),
    }
}

fn limits(bytes: &mut Bytes<'_>) -> (Option<u64>, Option<u64>) {
    let limit = |figure: u8, unit: u64| (figure >= 128).then(|| u64::from(figure - 128) * unit);
    let (operations, bandwidth) = (bytes.any(), bytes.any());
    (limit(operations, 100), limit(bandwidth, 1 << 20))
}

/// A time from some nanoseconds to half a minute.
fn time(mantissa: usize, bytes: &mut Bytes<'_>) -> u64 {
    let exponent = u32::from(bytes.any() % 28);
    (mantissa as u64) << exponent
}
