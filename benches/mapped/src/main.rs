//! Searches of tantivy, whose index is mapped, alongside a merge or a burst of writes. One round: a
//! line of JSON.
//!
//!     forebay-mapped fill DIR
//!     forebay-mapped run DIR alone|without|control|scheduled merge|burst PROPERTIES

use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use forebay::properties::Properties;
use forebay::{BufferedWriter, Class, DiskConfig, Policy, Scheduler};
use tantivy::collector::TopDocs;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};
use tantivy::merge_policy::NoMergePolicy;
use tantivy::query::TermQuery;
use tantivy::schema::{INDEXED, IndexRecordOption, STORED, Schema, TEXT};
use tantivy::{Directory, Index, IndexReader, IndexWriter, TantivyDocument, Term};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const DOCUMENTS: u64 = 16_000;
const SEARCHERS: u64 = 4;
/// Each searcher begins a search so often.
const EVERY: Duration = Duration::from_millis(10);
const BURST: usize = 100_000_000;
/// How long there are searches alone: about as long as a merge, and as a burst.
const ALONE: [Duration; 2] = [Duration::from_secs(8), Duration::from_secs(2)];

/// The way in: what is written goes through a writer of the class, all else is as it was.
#[derive(Clone, Debug)]
struct Paced {
    mapped: MmapDirectory,
    root: PathBuf,
    writes: Class,
}

struct Output(BufferedWriter<File>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for Output {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.0.sync_data()
    }
}

impl Directory for Paced {
    fn get_file_handle(
        &self,
        path: &Path,
    ) -> std::result::Result<Arc<dyn FileHandle>, OpenReadError> {
        self.mapped.get_file_handle(path)
    }

    fn open_write(&self, path: &Path) -> std::result::Result<WritePtr, OpenWriteError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenWriteError::FileAlreadyExists(path.into()),
            _ => OpenWriteError::wrap_io_error(error, path.into()),
        };
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(self.root.join(path))
            .map_err(failed)?;
        let writer = self.writes.buffered_writer(file).map_err(failed)?;
        Ok(io::BufWriter::new(Box::new(Output(writer))))
    }

    fn delete(&self, path: &Path) -> std::result::Result<(), DeleteError> {
        self.mapped.delete(path)
    }

    fn exists(&self, path: &Path) -> std::result::Result<bool, OpenReadError> {
        self.mapped.exists(path)
    }

    fn atomic_read(&self, path: &Path) -> std::result::Result<Vec<u8>, OpenReadError> {
        self.mapped.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.mapped.atomic_write(path, data)
    }

    fn acquire_lock(&self, lock: &Lock) -> std::result::Result<DirectoryLock, LockError> {
        self.mapped.acquire_lock(lock)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.mapped.sync_directory()
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.mapped.watch(callback)
    }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn fill(base: &Path) -> Result<()> {
    std::fs::create_dir_all(base)?;
    let mut schema = Schema::builder();
    let (id, body) =
        (schema.add_u64_field("id", INDEXED), schema.add_text_field("body", TEXT | STORED));
    let index = Index::create_in_dir(base, schema.build())?;
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 20_000_000)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    let mut state = 5;
    for number in 0..DOCUMENTS {
        let mut text = String::new();
        for _ in 0..180 {
            let drawn = random(&mut state);
            let word = (drawn % 40_000) * ((drawn >> 32) % 40_000) / 40_000;
            text.push_str(&format!("w{word:x}{:05} ", drawn >> 47));
        }
        let mut document = TantivyDocument::default();
        document.add_u64(id, number);
        document.add_text(body, text);
        writer.add_document(document)?;
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    Ok(())
}

/// A copy of the index, of which nothing is in memory.
fn restore(base: &Path, work: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(work);
    std::fs::create_dir_all(work)?;
    for entry in std::fs::read_dir(base)? {
        let entry = entry?;
        let to = work.join(entry.file_name());
        std::fs::copy(entry.path(), &to)?;
        let file = File::open(to)?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

fn merge(index: &Index) -> Result<()> {
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 20_000_000)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    writer.merge(&index.searchable_segment_ids()?).wait()?;
    Ok(())
}

fn burst(path: &Path, class: Option<&Class>) -> Result<()> {
    let file = File::create(path)?;
    let piece = vec![7; 64 << 10];
    let pieces = || (0..BURST / piece.len()).map(|_| &piece[..]);
    match class {
        None => {
            pieces().try_for_each(|piece| (&file).write_all(piece))?;
            file.sync_data()?;
        }
        Some(class) => {
            let mut writer = class.buffered_writer(file)?;
            pieces().try_for_each(|piece| writer.write_all(piece))?;
            writer.sync_data()?;
        }
    }
    Ok(())
}

fn search(
    index: &Index,
    reader: &IndexReader,
    seed: u64,
    over: &AtomicBool,
) -> Result<Vec<Duration>> {
    let id = index.schema().get_field("id")?;
    let (mut state, mut due, mut took) = (4242 + seed, Instant::now(), Vec::new());
    while !over.load(Relaxed) {
        due += EVERY;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let searcher = reader.searcher();
        let term = Term::from_field_u64(id, random(&mut state) % DOCUMENTS);
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        for (_, address) in searcher.search(&query, &TopDocs::with_limit(1))? {
            let _: TantivyDocument = searcher.doc(address)?;
        }
        took.push(due.elapsed());
    }
    Ok(took)
}

fn scheduler(dir: &Path, properties: &Path, mode: &str) -> Result<Option<Scheduler>> {
    let mut disk = DiskConfig::from_properties(Properties::load(properties)?.disk_for(dir)?);
    match mode {
        "control" => disk = disk.policy(Policy::Unlimited),
        "scheduled" => {}
        _ => return Ok(None),
    }
    let scheduler = Scheduler::builder().disk(disk).build()?;
    scheduler.add_class("merges", 100)?;
    Ok(Some(scheduler))
}

fn run(dir: &Path, mode: &str, load: &str, properties: &Path) -> Result<()> {
    let work = dir.join("work");
    restore(&dir.join("base"), &work)?;
    let scheduler = scheduler(dir, properties, mode)?;
    let class = scheduler.as_ref().and_then(|scheduler| scheduler.class("merges"));
    let mapped = MmapDirectory::open(&work)?;
    let index = match &class {
        None => Index::open(mapped)?,
        Some(class) => Index::open(Paced { mapped, root: work.clone(), writes: class.clone() })?,
    };
    let reader = index.reader_builder().reload_policy(tantivy::ReloadPolicy::Manual).try_into()?;
    let (over, began) = (AtomicBool::new(false), Instant::now());
    let mut took = thread::scope(|scope| -> Result<Vec<Duration>> {
        let (index, reader, over) = (&index, &reader, &over);
        let searchers: Vec<_> =
            (0..SEARCHERS).map(|n| scope.spawn(move || search(index, reader, n, over))).collect();
        let work = match (mode, load) {
            ("alone", "merge") => Ok(thread::sleep(ALONE[0])),
            ("alone", _) => Ok(thread::sleep(ALONE[1])),
            (_, "merge") => merge(index),
            _ => burst(&work.join("burst"), class.as_ref()),
        };
        over.store(true, Relaxed);
        work?;
        let took =
            searchers.into_iter().map(|searcher| searcher.join().expect("a searcher panicked"));
        Ok(took.collect::<Result<Vec<_>>>()?.concat())
    })?;
    let seconds = began.elapsed().as_secs_f64();
    took.sort();
    let at = |permille: usize| took[(took.len() - 1) * permille / 1000].as_secs_f64() * 1e3;
    println!(
        r#"{{"load": "{load}", "mode": "{mode}", "p50_ms": {:.2}, "p99_ms": {:.2}, "p999_ms": {:.2}, "seconds": {seconds:.2}, "searches": {}}}"#,
        at(500),
        at(990),
        at(999),
        took.len()
    );
    if let (Ok(path), Some(scheduler)) = (std::env::var("SNAPSHOT"), &scheduler) {
        std::fs::write(path, format!("{:#?}", scheduler.snapshot()))?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["fill", dir] => fill(&Path::new(dir).join("base")),
        ["run", dir, mode, load, properties] => {
            run(Path::new(dir), mode, load, Path::new(properties))
        }
        _ => Err("forebay-mapped fill DIR, or run DIR MODE LOAD PROPERTIES".into()),
    }
}
