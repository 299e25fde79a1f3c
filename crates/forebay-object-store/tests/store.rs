//! A directory as an object store, in the turns of classes.
#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::fs::{self, File};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use forebay::{Class, DiskConfig, DiskRates, Limits, Op, Scheduler};
use forebay_object_store::ScheduledStore;
use futures_util::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Error, Extensions, GetOptions, GetRange, GetResultPayload, ObjectStore, ObjectStoreExt,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, integration,
};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// So fast that its pace never binds.
const FAST: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 100_000_000_000,
    write_bandwidth: 100_000_000_000,
};

struct Bed {
    store: ScheduledStore,
    class: Class,
    scheduler: Scheduler,
    dir: TempDir,
}

impl Bed {
    fn new(fsync: bool) -> Self {
        // where the build is, for `/tmp` may be memory
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let disk = DiskConfig::new("disk", FAST).mountpoint(dir.path());
        let scheduler = Scheduler::builder().disk(disk).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let store = ScheduledStore::new(dir.path(), &class).unwrap().with_fsync(fsync);
        Self { store, class, scheduler, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Puts an object, and takes it out of memory.
    async fn put_cold(&self, name: &str, len: usize) -> Vec<u8> {
        let data = pattern(len);
        self.store.put(&Path::from(name), data.clone().into()).await.unwrap();
        forget(&File::open(self.path(name)).unwrap());
        data
    }
}

fn forget(file: &File) {
    file.sync_all().unwrap();
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 * 31 + at) as u8).collect()
}

fn bytes(class: &Class, op: Op) -> u64 {
    class.permit_counters().bytes[op.index()]
}

fn with_class(class: &Class) -> Extensions {
    let mut extensions = Extensions::new();
    extensions.insert(class.clone());
    extensions
}

async fn whole_suite(store: &ScheduledStore) {
    integration::put_get_delete_list(store).await;
    integration::list_with_offset_exclusivity(store).await;
    integration::get_opts(store).await;
    integration::list_uses_directories_correctly(store).await;
    integration::list_with_delimiter(store).await;
    integration::rename_and_copy(store).await;
    integration::copy_if_not_exists(store).await;
    integration::copy_rename_nonexistent_object(store).await;
    integration::put_opts(store, false).await;
    let missing = integration::get_nonexistent_object(store, None).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

#[tokio::test]
async fn it_does_what_object_stores_do() {
    for fsync in [false, true] {
        let bed = Bed::new(fsync);
        integration::stream_get(&bed.store).await;
        whole_suite(&bed.store).await;
        integration::multipart_out_of_order(&bed.store).await;
        integration::multipart_race_condition(&bed.store, true).await;
        // The job of a future that was dropped goes on in its thread.
        let begin = Instant::now();
        while bed.class.permit_counters().queued > 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "requests wait for nobody");
            thread::sleep(Duration::from_millis(10));
        }
        let staged: Vec<_> = bed.names().into_iter().filter(|name| name.contains('#')).collect();
        assert_eq!(staged, Vec::<String>::new());
    }
}

#[test]
fn it_does_so_without_a_runtime() {
    let bed = Bed::new(true);
    smol::block_on(whole_suite(&bed.store));
}

#[tokio::test]
async fn all_bytes_have_permits() {
    let bed = Bed::new(true);
    let len = 10 * MIB as usize + 777;
    let data = bed.put_cold("object", len).await;
    let written = bytes(&bed.class, Op::Write);
    assert!((len as u64..=len as u64 + 4096).contains(&written), "{written}");
    assert!(bed.class.permit_counters().operations[Op::Flush.index()] >= 1);
    let got = bed.store.get(&Path::from("object")).await.unwrap();
    assert!(matches!(got.payload, GetResultPayload::Stream(_)), "a file is read in no class");
    assert_eq!(bytes(&bed.class, Op::Read), 0, "nothing is read before it is asked for");
    assert_eq!(got.bytes().await.unwrap(), data);
    let read = bytes(&bed.class, Op::Read);
    assert!((len as u64..=len as u64 + MIB).contains(&read), "{read} of {len}");
}

#[tokio::test]
async fn ranges_are_read_and_nothing_else() {
    let bed = Bed::new(false);
    let data = bed.put_cold("object", 32 << 20).await;
    let object = Path::from("object");
    let ranges = [5..6, 100..5_000, 4_000..4_100, 3 << 19..(3 << 19) + 70_000, 0..1];
    let got = bed.store.get_ranges(&object, &ranges).await.unwrap();
    for (range, got) in ranges.iter().zip(got) {
        assert_eq!(got, data[range.start as usize..range.end as usize], "{range:?}");
    }
    let get = |range| bed.store.get_opts(&object, GetOptions::new().with_range(Some(range)));
    let end = get(GetRange::Suffix(100_000)).await.unwrap();
    assert_eq!(end.range, (32 << 20) - 100_000..32 << 20);
    assert_eq!(end.bytes().await.unwrap(), data[data.len() - 100_000..]);
    let from = get(GetRange::Offset((32 << 20) - 7)).await.unwrap();
    assert_eq!(from.bytes().await.unwrap(), data[data.len() - 7..]);
    assert!(get(GetRange::Offset(33 << 20)).await.is_err());
    assert!(bed.store.get_range(&object, 33 << 20..34 << 20).await.is_err());
    let one = bed.store.get_range(&object, 0..1 << 20).await.unwrap();
    assert_eq!(one, data[..1 << 20]);
    assert!(bytes(&bed.class, Op::Read) < 24 * MIB, "{}", bytes(&bed.class, Op::Read));
}

#[tokio::test]
async fn a_dropped_stream_reads_no_more() {
    let bed = Bed::new(false);
    let data = bed.put_cold("object", 32 << 20).await;
    let mut stream = bed.store.get(&Path::from("object")).await.unwrap().into_stream();
    let first = stream.next().await.unwrap().unwrap();
    assert_eq!(first, data[..first.len()]);
    drop(stream);
    let counters = bed.class.permit_counters();
    assert_eq!((counters.queued, counters.in_disk), (0, 0));
    assert!(bytes(&bed.class, Op::Read) < 8 * MIB);
    let chunks: Vec<_> = bed
        .store
        .get(&Path::from("object"))
        .await
        .unwrap()
        .into_stream()
        .try_collect()
        .await
        .unwrap();
    assert!(chunks.iter().all(|chunk| chunk.len() as u64 <= MIB));
    assert_eq!(chunks.concat(), data);
}

#[tokio::test]
async fn an_object_that_is_cut_while_it_is_read_is_an_error() {
    let bed = Bed::new(false);
    bed.put_cold("object", 8 << 20).await;
    let mut stream = bed.store.get(&Path::from("object")).await.unwrap().into_stream();
    stream.next().await.unwrap().unwrap();
    File::options().write(true).open(bed.path("object")).unwrap().set_len(3 << 19).unwrap();
    let rest: Result<Vec<_>, _> = stream.try_collect().await;
    assert!(rest.unwrap_err().to_string().contains("end of file"));
}

#[tokio::test]
async fn a_request_may_name_its_class() {
    let bed = Bed::new(true);
    let other = bed.scheduler.add_class("other", 100).unwrap();
    let object = Path::from("object");
    let options = PutOptions { extensions: with_class(&other), ..PutOptions::default() };
    bed.store.put_opts(&object, vec![7; 1 << 20].into(), options).await.unwrap();
    let options =
        PutMultipartOptions { extensions: with_class(&other), ..PutMultipartOptions::default() };
    let mut upload = bed.store.put_multipart_opts(&Path::from("parts"), options).await.unwrap();
    upload.put_part(vec![8; 1 << 20].into()).await.unwrap();
    upload.complete().await.unwrap();
    forget(&File::open(bed.path("object")).unwrap());
    let options = GetOptions { extensions: with_class(&other), ..GetOptions::default() };
    bed.store.get_opts(&object, options).await.unwrap().bytes().await.unwrap();
    assert_eq!([Op::Read, Op::Write].map(|op| bytes(&bed.class, op)), [0; 2]);
    assert_eq!(bytes(&other, Op::Write), 2 * MIB);
    assert!(bytes(&other, Op::Read) >= MIB, "{}", bytes(&other, Op::Read));
    let third = bed.scheduler.add_class("third", 100).unwrap();
    forget(&File::open(bed.path("object")).unwrap());
    bed.store.with_class(&third).get_range(&object, 0..4096).await.unwrap();
    assert!(bytes(&third, Op::Read) >= 4096);
}

#[tokio::test]
async fn puts_may_be_of_another_class_than_gets() {
    let bed = Bed::new(true);
    let flushes = bed.scheduler.add_class("flushes", 100).unwrap();
    let store = bed.store.clone().with_put_class(&flushes);
    let (put, uploaded) = (Path::from("put"), Path::from("uploaded"));
    store.put(&put, pattern(MIB as usize).into()).await.unwrap();
    let mut upload = store.put_multipart(&uploaded).await.unwrap();
    upload.put_part(pattern(MIB as usize).into()).await.unwrap();
    upload.complete().await.unwrap();
    for name in ["put", "uploaded"] {
        forget(&File::open(bed.path(name)).unwrap());
        store.get(&Path::from(name)).await.unwrap().bytes().await.unwrap();
    }
    for (class, written, read) in [(&bed.class, 0, 2 * MIB), (&flushes, 2 * MIB, 0)] {
        let found = (bytes(class, Op::Write), bytes(class, Op::Read));
        assert_eq!(found, (written, read), "{}", class.name());
    }
    // the one that names its class has both of it
    let named = bed.store.with_class(&flushes);
    named.put(&put, pattern(MIB as usize).into()).await.unwrap();
    assert_eq!((bytes(&bed.class, Op::Write), bytes(&flushes, Op::Write)), (0, 3 * MIB));
}

#[tokio::test]
async fn an_upload_is_there_as_a_whole_or_not_at_all() {
    let bed = Bed::new(false);
    let object = Path::from("object");
    let part = |byte| PutPayload::from(vec![byte; 300_000]);
    // aborted, dropped, and with a part that nobody waited for
    let mut upload = bed.store.put_multipart(&object).await.unwrap();
    upload.put_part(part(1)).await.unwrap();
    upload.abort().await.unwrap();
    assert!(upload.abort().await.is_err() && upload.put_part(part(1)).await.is_err());
    let mut upload = bed.store.put_multipart(&object).await.unwrap();
    upload.put_part(part(1)).await.unwrap();
    drop(upload);
    let mut upload = bed.store.put_multipart(&object).await.unwrap();
    drop(upload.put_part(part(1)));
    upload.put_part(part(2)).await.unwrap();
    let refused = upload.complete().await.unwrap_err();
    assert!(refused.to_string().contains("was not written"), "{refused}");
    assert_eq!(bed.names(), Vec::<String>::new());
    let mut upload = bed.store.put_multipart(&object).await.unwrap();
    let parts: Vec<_> = (0..20).map(|byte| upload.put_part(part(byte))).collect();
    assert!(bed.store.head(&object).await.is_err(), "it is not there yet");
    for written in futures_util::future::join_all(parts.into_iter().rev()).await {
        written.unwrap();
    }
    upload.complete().await.unwrap();
    let expected: Vec<u8> = (0..20).flat_map(|byte| vec![byte; 300_000]).collect();
    assert_eq!(bed.store.get(&object).await.unwrap().bytes().await.unwrap(), expected);
    assert!(upload.complete().await.is_err());
    assert_eq!(bed.names(), ["object"]);
}

#[tokio::test]
async fn a_put_returns_the_result_of_the_local_file_system() {
    let bed = Bed::new(false);
    let local = LocalFileSystem::new_with_prefix(bed.dir.path()).unwrap();
    let object = Path::from("a/b/object");
    let put = bed.store.put(&object, "forebay".into()).await.unwrap();
    assert_eq!(put.e_tag, local.head(&object).await.unwrap().e_tag);
    let is_new = PutOptions::from(PutMode::Create);
    let refused = bed.store.put_opts(&object, "other".into(), is_new.clone()).await.unwrap_err();
    assert!(matches!(refused, Error::AlreadyExists { .. }), "{refused}");
    bed.store.put_opts(&Path::from("a/new"), "new".into(), is_new).await.unwrap();
    assert_eq!(fs::read(bed.path("a/new")).unwrap(), b"new");
    // both take the same place for what is not finished
    let mut ours = bed.store.put_multipart(&object).await.unwrap();
    let mut theirs = local.put_multipart(&object).await.unwrap();
    theirs.put_part("theirs".into()).await.unwrap();
    ours.put_part("ours".into()).await.unwrap();
    theirs.complete().await.unwrap();
    ours.complete().await.unwrap();
    assert_eq!(fs::read(bed.path("a/b/object")).unwrap(), b"ours");
}

#[tokio::test]
async fn a_class_that_waits_leaves_threads_to_others() {
    let bed = Bed::new(false);
    let slow = bed.scheduler.add_class("slow", 100).unwrap();
    let limits = Limits { bytes_per_second: Some(1), ..Limits::default() };
    slow.set_limits(&limits).unwrap();
    bed.put_cold("object", 80 << 20).await;
    let object = Path::from("object");
    // more than the pool has threads, apart so that none reads ahead for the next
    let offsets = (1..600).map(|n| n * (128 << 10));
    let waiting = bed.store.with_class(&slow);
    let reads: Vec<_> = offsets
        .map(|at| {
            let (waiting, object) = (waiting.clone(), object.clone());
            tokio::spawn(async move { waiting.get_range(&object, at..at + 1).await })
        })
        .collect();
    while slow.permit_counters().queued < 64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    bed.store.get_range(&object, 0..1000).await.unwrap();
    assert_eq!(slow.permit_counters().queued, 64);
    slow.set_limits(&Limits::default()).unwrap();
    for read in reads {
        assert_eq!(read.await.unwrap().unwrap().len(), 1);
    }
}
