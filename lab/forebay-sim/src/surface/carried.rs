//! What jobs carried, against what their names say.

/// The part of a load that the disk must have carried.
const CARRIED_MIN: f64 = 0.97;
/// A load is another one if it is off by more than this part.
const OFF: f64 = 0.05;
/// Bytes of the reads and writes that a surface is made of.
const READS: [f64; 2] = [512.0, 4096.0];
const WRITE: f64 = 131_072.0;

/// A load: bytes written per second, and reads per second.
type Load = (f64, f64);

/// How many times the loads of their names jobs carry on purpose: 1 unless the lightest loads all
/// carry the same multiple, such as where each of four jobs has the rate of all.
pub(super) struct Scales {
    write: f64,
    read: f64,
    /// The least rates other than 0, scaled: a small part of these is nothing.
    least: (f64, f64),
}

impl Scales {
    /// Of loads by name, and what was carried, as bytes written and reads per second.
    pub(super) fn of(jobs: &[(Load, Load)]) -> Self {
        let turned = |&(at, carried): &(Load, Load)| ((at.1, at.0), (carried.1, carried.0));
        let (read, read_least) = scale(&jobs.iter().map(turned).collect::<Vec<_>>());
        let (write, write_least) = scale(jobs);
        Self { write, read, least: (write_least * write, read_least * read) }
    }

    /// What a job of this name is to carry.
    pub(super) fn expected(&self, at: (f64, f64)) -> (f64, f64) {
        (at.0 * self.write, at.1 * self.read)
    }
}

/// The scale of the first figure, and its least value other than 0. A disk that is too slow carries
/// less of the second lightest load than of the lightest one.
fn scale(jobs: &[(Load, Load)]) -> (f64, f64) {
    let least_above = |bound: f64| {
        let values = jobs.iter().map(|(at, _)| at.0).filter(|&value| value > bound);
        values.min_by(f64::total_cmp)
    };
    let ratio = |value: f64| {
        let same = jobs.iter().filter(|(at, _)| at.0 == value);
        let lightest = same.min_by(|(one, _), (other, _)| one.1.total_cmp(&other.1));
        lightest.map(|(at, carried)| carried.0 / at.0)
    };
    let Some(least) = least_above(0.0) else { return (1.0, 0.0) };
    let (Some(one), Some(two)) = (ratio(least), least_above(least).and_then(ratio)) else {
        return (1.0, least);
    };
    let is_common = one > 0.0 && (one / two - 1.0).abs() <= OFF && (one - 1.0).abs() > OFF;
    (if is_common { one } else { 1.0 }, least)
}

/// Whether the disk carried too little of a load.
pub(super) fn is_short(expected: (f64, f64), carried: (f64, f64)) -> bool {
    carried.0 < CARRIED_MIN * expected.0 || carried.1 < CARRIED_MIN * expected.1
}

/// Where a load lies: where it is expected, and in a direction of which more was carried there.
pub(super) fn place(expected: (f64, f64), carried: (f64, f64), scales: &Scales) -> (f64, f64) {
    let one = |expected: f64, carried: f64, least: f64| {
        if is_over(expected, carried, least) { carried } else { expected }
    };
    (one(expected.0, carried.0, scales.least.0), one(expected.1, carried.1, scales.least.1))
}

fn is_over(expected: f64, carried: f64, least: f64) -> bool {
    carried > if expected > 0.0 { expected * (1.0 + OFF) } else { least * OFF }
}

/// What was seen of all jobs.
#[derive(Default)]
pub(super) struct Carried {
    over: Jobs,
    under: Jobs,
    /// No read was done, so that nothing is known of their latency.
    without_reads: Jobs,
    read_bytes: Option<(f64, f64)>,
    write_bytes: Option<(f64, f64)>,
    with_sending: bool,
    in_microseconds: bool,
}

/// How many jobs, and the first of them.
#[derive(Default)]
struct Jobs {
    count: u64,
    first: String,
}

impl Jobs {
    fn add(&mut self, first: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = first();
        }
        self.count += 1;
    }

    /// Their number, and the first; nothing if there are none.
    fn in_words(&self) -> Option<(String, String)> {
        let Self { count, first } = self;
        match count {
            0 => None,
            1 => Some(("1 job".to_owned(), first.clone())),
            _ => Some((format!("{count} jobs"), format!("such as {first}"))),
        }
    }
}

impl Carried {
    pub(super) fn load(
        &mut self,
        name: &str,
        expected: (f64, f64),
        carried: (f64, f64),
        scales: &Scales,
    ) {
        let said =
            || format!("`{name}` with {:.0} bytes written and {:.0} reads", carried.0, carried.1);
        let is_over = is_over(expected.0, carried.0, scales.least.0)
            || is_over(expected.1, carried.1, scales.least.1);
        let part = 1.0 - OFF;
        if is_over {
            self.over.add(said);
        } else if carried.0 < part * expected.0 || carried.1 < part * expected.1 {
            self.under.add(said);
        }
    }

    pub(super) fn without_reads(&mut self, name: &str) {
        self.without_reads.add(|| format!("`{name}`"));
    }

    pub(super) fn request_sizes(&mut self, read: Option<f64>, write: Option<f64>) {
        for (range, bytes) in [(&mut self.read_bytes, read), (&mut self.write_bytes, write)] {
            let Some(bytes) = bytes else { continue };
            let (least, most) = range.unwrap_or((bytes, bytes));
            *range = Some((least.min(bytes), most.max(bytes)));
        }
    }

    pub(super) fn latencies(&mut self, with_sending: bool, in_microseconds: bool) {
        self.with_sending |= with_sending;
        self.in_microseconds |= in_microseconds;
    }

    /// What is not as the names say, or not as expected, in sentences.
    pub(super) fn remarks(&self, scales: &Scales) -> Vec<String> {
        let mut remarks = Vec::new();
        for (scale, what) in [(scales.read, "reads"), (scales.write, "written bytes")] {
            if scale != 1.0 {
                remarks.push(format!(
                    "The jobs carried {scale:.2} times the {what} that their names say; what they \
                     carried counts."
                ));
            }
        }
        for (jobs, what, counts) in [
            (&self.over, "more", "what was carried counts"),
            (&self.under, "less", "the disk missed such loads"),
        ] {
            if let Some((number, first)) = jobs.in_words() {
                remarks.push(format!(
                    "{number} carried over 5 % {what} than intended: {first} per second; {counts}."
                ));
            }
        }
        if let Some((number, first)) = self.without_reads.in_words() {
            remarks.push(format!(
                "N is 0 in {number}, {first}: no read was done, so nothing is known of such loads. \
                 Add a few reads per second to measure them."
            ));
        }
        remarks.extend(self.sizes());
        if self.in_microseconds {
            remarks.push("Latencies are in whole microseconds, as fio 2 writes them.".to_owned());
        }
        if self.with_sending {
            remarks.push(
                "Latencies are those of `lat`, with the time to send a request; there are none of \
                 `clat`."
                    .to_owned(),
            );
        }
        remarks
    }

    /// Sizes of requests that are not the expected ones.
    fn sizes(&self) -> impl Iterator<Item = String> {
        let near = |bytes: f64, expected: f64| (bytes / expected - 1.0).abs() <= OFF;
        let is_read = |bytes: f64| READS.iter().any(|&expected| near(bytes, expected));
        let reads = self.read_bytes.filter(|&(least, most)| !near(least, most) || !is_read(most));
        let is_write = |bytes: f64| near(bytes, WRITE);
        let writes = self.write_bytes.filter(|&(least, most)| !is_write(least) || !is_write(most));
        let said = |(least, most): (f64, f64), kind: &str, expected: &str| {
            let bytes = match near(least, most) {
                true => format!("{most:.0} bytes"),
                false => format!("{least:.0} to {most:.0} bytes"),
            };
            format!(
                "{kind} have {bytes} (bandwidth by operations), not {expected}: a region holds for \
                 requests of the sizes that were measured."
            )
        };
        let reads = reads.map(|range| said(range, "Reads", "512 or 4096"));
        let writes = writes.map(|range| said(range, "Writes", "131072"));
        reads.into_iter().chain(writes)
    }
}
