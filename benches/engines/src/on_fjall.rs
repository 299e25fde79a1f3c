//! fjall, whose files `fjall.patch` has replaced.

use std::path::Path;

use fjall::compaction::Leveled;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use forebay_load::Rng;
use std::sync::Arc;

use crate::engine::{
    BATCH_ROWS, CACHE_LEN, Copied, Engine, Failure, ROWS, Store, checked, row, row_bytes,
};
use crate::mode::Mode;

/// In the proportion of the rows.
const MEMTABLE_LEN: u64 = 8 << 20;
const TABLE_LEN: u64 = 8 << 20;

pub(crate) struct Fjall;

struct Open {
    database: Database,
    rows: Keyspace,
}

impl Engine for Fjall {
    fn fill(&self, base: &Path) -> Result<(), Failure> {
        let (store, rng) = (open(base)?, &mut Rng::new(0, &[]));
        for first in (0..ROWS).step_by(BATCH_ROWS as usize) {
            store.write_rows((first..ROWS).take(BATCH_ROWS as usize), rng)?;
        }
        store.rows.rotate_memtable_and_wait()?;
        Ok(store.rows.major_compact()?)
    }

    fn open(&self, dir: &Path, mode: &Mode, _: u64) -> Result<Box<dyn Store>, Failure> {
        if let Some(classes) = &mode.classes {
            let (commits, compaction) = (classes.commits.clone(), classes.compaction.clone());
            fjall_files::schedule(classes.scheduler.clone(), commits, compaction);
        }
        let _entered = mode.enter_commits();
        Ok(Box::new(open(dir)?))
    }

    /// Tables never change.
    fn how_to_copy(&self, path: &Path, _: u64) -> Copied {
        let is_table = path.parent().is_some_and(|dir| dir.ends_with("tables"));
        if is_table { Copied::Linked } else { Copied::Whole }
    }
}

fn open(dir: &Path) -> Result<Open, Failure> {
    let database = Database::builder(dir).cache_size(CACHE_LEN).open()?;
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(MEMTABLE_LEN)
            .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(TABLE_LEN)))
    };
    Ok(Open { rows: database.keyspace("rows", options)?, database })
}

impl Open {
    fn write_rows(&self, rows: impl Iterator<Item = u64>, rng: &mut Rng) -> Result<u64, Failure> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        let mut bytes = 0;
        for number in rows {
            batch.insert(&self.rows, number.to_be_bytes(), row(rng));
            bytes += row_bytes();
        }
        batch.commit()?;
        Ok(bytes)
    }
}

impl Store for Open {
    fn read(&self, row: u64) -> Result<(), Failure> {
        checked(self.rows.get(row.to_be_bytes())?.as_deref())
    }

    fn write(&self, _: u64, rng: &mut Rng) -> Result<u64, Failure> {
        let rows: Vec<u64> = (0..BATCH_ROWS).map(|_| rng.below(ROWS)).collect();
        self.write_rows(rows.into_iter(), rng)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
