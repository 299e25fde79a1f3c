//! SlateDB, in a local directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_load::Rng;
use forebay_object_store::ScheduledStore;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions,
    GarbageCollectorOptions, Settings,
};
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::{CompactorBuilder, Db, WriteBatch};
use tokio::runtime::{Builder, Runtime};

use crate::engine::{
    BATCH_ROWS, CACHE_LEN, Copied, Engine, Failure, ROWS, Store, checked, row, row_bytes,
};
use crate::mode::Mode;

const NAME: &str = "db";

pub(crate) struct SlateDb;

struct Open {
    runtime: Runtime,
    db: Db,
}

/// Where the parts of the engine have their objects.
struct Stores {
    main: Arc<dyn ObjectStore>,
    log: Arc<dyn ObjectStore>,
    compaction: Arc<dyn ObjectStore>,
}

impl Engine for SlateDb {
    fn fill(&self, base: &Path) -> Result<(), Failure> {
        let mode = Mode { name: String::new(), classes: None };
        let (store, rng) = (open(base, &mode)?, &mut Rng::new(0, &[]));
        for first in (0..ROWS).step_by(BATCH_ROWS as usize) {
            store.write_rows((first..ROWS).take(BATCH_ROWS as usize), rng)?;
        }
        // what there is to be merged
        std::thread::sleep(Duration::from_secs(5));
        Box::new(store).close()
    }

    fn open(&self, dir: &Path, mode: &Mode, _: u64) -> Result<Box<dyn Store>, Failure> {
        Ok(Box::new(open(dir, mode)?))
    }

    /// Objects never change.
    fn how_to_copy(&self, _: &Path, _: u64) -> Copied {
        Copied::Linked
    }
}

fn open(dir: &Path, mode: &Mode) -> Result<Open, Failure> {
    let stores = Stores::new(dir, mode)?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let entered = runtime.enter();
    let cache = MokaCacheOptions { max_capacity: CACHE_LEN, ..MokaCacheOptions::default() };
    let compactor = CompactorBuilder::new(NAME, stores.compaction).with_options(compaction());
    let db = Db::builder(NAME, stores.main)
        .with_wal_object_store(stores.log)
        .with_compactor_builder(compactor)
        .with_settings(settings())
        .with_db_cache(Arc::new(MokaCache::new_with_opts(cache)), 0)
        .build();
    drop(entered);
    Ok(Open { db: runtime.block_on(db)?, runtime })
}

impl Stores {
    fn new(dir: &Path, mode: &Mode) -> Result<Self, Failure> {
        let Some(classes) = &mode.classes else {
            let store: Arc<dyn ObjectStore> =
                Arc::new(LocalFileSystem::new_with_prefix(dir)?.with_fsync(true));
            return Ok(Self { main: store.clone(), log: store.clone(), compaction: store });
        };
        let reads = ScheduledStore::new(dir, &classes.reads)?.with_fsync(true);
        Ok(Self {
            main: Arc::new(reads.clone().with_put_class(&classes.commits)),
            log: Arc::new(reads.with_class(&classes.commits)),
            compaction: Arc::new(reads.with_class(&classes.compaction)),
        })
    }
}

/// Sizes in the proportion of the rows, and what is done each few seconds each few tenths.
fn settings() -> Settings {
    Settings {
        flush_interval: Some(Duration::from_millis(10)),
        l0_sst_size_bytes: 8 << 20,
        max_unflushed_bytes: 64 << 20,
        manifest_poll_interval: Duration::from_millis(200),
        garbage_collector_options: Some(garbage()),
        ..Settings::default()
    }
}

fn compaction() -> CompactorOptions {
    let poll = Duration::from_millis(200);
    let worker = CompactionWorkerOptions {
        compactions_poll_interval: poll,
        max_sst_size: 16 << 20,
        ..CompactionWorkerOptions::default()
    };
    CompactorOptions { poll_interval: poll, worker: Some(worker), ..CompactorOptions::default() }
}

fn garbage() -> GarbageCollectorOptions {
    let soon = Some(GarbageCollectorDirectoryOptions {
        interval: Some(Duration::from_secs(1)),
        min_age: Duration::from_secs(3),
        dry_run: false,
    });
    GarbageCollectorOptions { wal_options: soon, compacted_options: soon, ..Default::default() }
}

impl Open {
    fn write_rows(&self, rows: impl Iterator<Item = u64>, rng: &mut Rng) -> Result<u64, Failure> {
        let mut batch = WriteBatch::new();
        let mut bytes = 0;
        for number in rows {
            batch.put(number.to_be_bytes(), row(rng));
            bytes += row_bytes();
        }
        let durable = async { self.db.write(batch).await?.await_durable().await };
        self.runtime.block_on(durable)?;
        Ok(bytes)
    }
}

impl Store for Open {
    fn read(&self, row: u64) -> Result<(), Failure> {
        checked(self.runtime.block_on(self.db.get(row.to_be_bytes()))?.as_deref())
    }

    fn write(&self, _: u64, rng: &mut Rng) -> Result<u64, Failure> {
        let rows: Vec<u64> = (0..BATCH_ROWS).map(|_| rng.below(ROWS)).collect();
        self.write_rows(rows.into_iter(), rng)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.runtime.block_on(self.db.close())?)
    }
}
