//! A small engine that keeps a log: it appends records in batches, syncs each batch, and says then
//! that it is kept.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use forebay::{AlignedBuf, BufferedWriter, Class, FileOptions, Scheduler};
use forebay_load::Rng;

const BLOCK: usize = 4096;
/// Number, length with all that fills it up, length of the data, and checksum.
const HEADER: usize = 32;
/// Batches in a file of the log.
const FILE_BATCHES: u64 = 8;

/// By what the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// A [`BufferedWriter`].
    Writer,
    /// The engine's own file, and [`Class::sync_data`].
    OwnFile,
    /// A file of ours, past the page cache.
    Direct,
}

impl Means {
    pub(crate) const ALL: [Self; 3] = [Self::Writer, Self::OwnFile, Self::Direct];
}

enum Segment {
    Writer(BufferedWriter<File>),
    OwnFile(File),
    Direct(forebay::File),
}

pub(crate) struct LogEngine {
    dir: PathBuf,
    scheduler: Scheduler,
    class: Class,
    means: Means,
    /// Without it the engine believes what has been written back.
    syncs: bool,
    rng: Rng,
    number: u64,
    batches: u64,
    segment: Option<(Segment, u64)>,
}

impl LogEngine {
    /// In a directory of its own, without records yet. What it writes follows from the seed.
    pub(crate) fn new(
        scheduler: &Scheduler,
        dir: PathBuf,
        means: Means,
        syncs: bool,
        seed: u64,
    ) -> Self {
        if dir.exists() {
            fs::remove_dir_all(&dir).unwrap();
        }
        fs::create_dir(&dir).unwrap();
        if syncs {
            // its name is to be kept, too
            File::open(dir.parent().unwrap()).unwrap().sync_all().unwrap();
        }
        let class = scheduler.add_class(&dir.display().to_string(), 100).unwrap();
        let (scheduler, rng) = (scheduler.clone(), Rng::new(seed, &[0]));
        let [number, batches] = [0; 2];
        Self { dir, scheduler, class, means, syncs, rng, number, batches, segment: None }
    }

    /// Appends some records; how many there are now that are kept.
    pub(crate) fn append_batch(&mut self) -> io::Result<u64> {
        if self.batches.is_multiple_of(FILE_BATCHES) {
            self.begin_file()?;
        }
        self.batches += 1;
        let mut batch = Vec::new();
        for _ in 0..=self.rng.below(8) {
            let most = [300, 300, 300, 20_000, 200_000][self.rng.below(5) as usize];
            let len = 1 + self.rng.below(most);
            let alignment = if self.means == Means::Direct { BLOCK } else { 1 };
            push_record(&mut batch, self.number, len as usize, alignment);
            self.number += 1;
        }
        let (segment, position) = self.segment.as_mut().unwrap();
        segment.append(&self.class, &batch, *position)?;
        *position += batch.len() as u64;
        if self.syncs {
            segment.sync(&self.class)?;
        } else {
            segment.wait_for_write_back()?;
        }
        Ok(self.number)
    }

    fn begin_file(&mut self) -> io::Result<()> {
        let path = self.dir.join(format!("log-{:05}", self.batches / FILE_BATCHES));
        let segment = match self.means {
            Means::Writer => Segment::Writer(self.class.buffered_writer(File::create_new(path)?)?),
            Means::OwnFile => Segment::OwnFile(File::create_new(path)?),
            Means::Direct => {
                let options = FileOptions::new().write(true).create_new(true);
                Segment::Direct(self.scheduler.open(path, &options)?)
            }
        };
        self.segment = Some((segment, 0));
        // so is a file's
        if self.syncs { File::open(&self.dir)?.sync_all() } else { Ok(()) }
    }
}

impl Segment {
    fn append(&mut self, class: &Class, batch: &[u8], position: u64) -> io::Result<()> {
        match self {
            Self::Writer(writer) => writer.write_all(batch),
            Self::OwnFile(file) => file.write_all_at(batch, position),
            Self::Direct(file) => {
                let mut buffer = AlignedBuf::new(batch.len(), BLOCK)?;
                buffer.copy_from_slice(batch);
                let (written, _) = file.write_at(class, buffer, position).wait().into_result()?;
                if written == batch.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
            }
        }
    }

    fn sync(&self, class: &Class) -> io::Result<()> {
        match self {
            Self::Writer(writer) => writer.sync_data(),
            Self::OwnFile(file) => class.sync_data(file),
            Self::Direct(file) => file.sync_data(class).wait(),
        }
    }

    /// What an engine might take for enough: the disk has had it all.
    fn wait_for_write_back(&mut self) -> io::Result<()> {
        let Self::Writer(writer) = self else { return Ok(()) };
        writer.write_back()?;
        while writer.dirty() > 0 {
            thread::sleep(Duration::from_micros(200));
        }
        // whether it failed
        writer.flush()
    }
}

fn data(number: u64, len: usize) -> impl Iterator<Item = u8> {
    let mut rng = Rng::new(number, &[len as u64]);
    (0..len.div_ceil(8)).flat_map(move |_| rng.next_u64().to_le_bytes()).take(len)
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn push_record(batch: &mut Vec<u8>, number: u64, len: usize, alignment: usize) {
    let start = batch.len();
    let whole = (HEADER + len).next_multiple_of(alignment);
    for word in [number, whole as u64, len as u64] {
        batch.extend(word.to_le_bytes());
    }
    batch.extend([0; 8]);
    batch.extend(data(number, len));
    let sum = checksum(&batch[start..]);
    batch[start + 24..start + 32].copy_from_slice(&sum.to_le_bytes());
    batch.resize(start + whole, 0);
}

/// How many records there are, from the first on without a gap, each whole.
pub(crate) fn recover(dir: &Path) -> u64 {
    let mut next = 0;
    for file in 0.. {
        let Ok(bytes) = fs::read(dir.join(format!("log-{file:05}"))) else { break };
        let mut rest = &bytes[..];
        while let Some((number, whole)) = whole_record(rest) {
            if number != next {
                return next;
            }
            (rest, next) = (&rest[whole..], next + 1);
        }
    }
    next
}

fn whole_record(bytes: &[u8]) -> Option<(u64, usize)> {
    let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (number, whole, len, sum) = (word(0)?, word(8)? as usize, word(16)? as usize, word(24)?);
    let mut record = bytes.get(..HEADER + len)?.to_vec();
    record[24..32].fill(0);
    let is_whole = checksum(&record) == sum
        && bytes.len() >= whole
        && record[HEADER..].iter().copied().eq(data(number, len));
    is_whole.then_some((number, whole))
}
