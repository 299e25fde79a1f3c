//! The state of a connection: what it does with its database, and which lock it waits for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use forebay::{Class, Scheduler};
use libsqlite3_sys::{SQLITE_LOCK_EXCLUSIVE, SQLITE_LOCK_RESERVED, SQLITE_LOCK_SHARED};

use crate::classes::Classes;

/// How long a connection counts as waiting after a lock was refused. SQLite does not report that it gave
/// up, and its own busy handler retries within 100 ms.
const WAITS_FOR: Duration = Duration::from_secs(1);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A kind of access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A file whose dirty bytes may have to be written in a higher class.
pub(crate) trait Raise: Send + Sync {
    /// Moves the file's writer to `class` until the next write, if its own class has fewer shares.
    fn raise(&self, class: &Class);
}

/// The connections to each database, by its full path.
#[derive(Default)]
pub(crate) struct Databases {
    all: Mutex<HashMap<Vec<u8>, Weak<Database>>>,
}

impl Databases {
    pub(crate) fn get(&self, path: &[u8]) -> Arc<Database> {
        let mut all = lock(&self.all);
        if let Some(database) = all.get(path).and_then(Weak::upgrade) {
            return database;
        }
        all.retain(|_, database| database.strong_count() > 0);
        let database = Arc::new(Database::default());
        all.insert(path.to_vec(), Arc::downgrade(&database));
        database
    }

    /// The database of this path, if a connection has it open.
    pub(crate) fn find(&self, path: &[u8]) -> Option<Arc<Database>> {
        lock(&self.all).get(path).and_then(Weak::upgrade)
    }
}

/// A database that connections of this process have open.
pub(crate) struct Database {
    connections: Mutex<Vec<Weak<Connection>>>,
    began: Instant,
    /// When the last waiting connection stops waiting, in milliseconds after `began`. 0 if none ever waited.
    waited_until: AtomicU64,
}

impl Default for Database {
    fn default() -> Self {
        let (connections, waited_until) = (Mutex::default(), AtomicU64::new(0));
        Self { connections, began: Instant::now(), waited_until }
    }
}

impl Database {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn connections(&self) -> Vec<Arc<Connection>> {
        lock(&self.connections).iter().filter_map(Weak::upgrade).collect()
    }

    /// The connection that may write now, in rollback mode.
    pub(crate) fn writer(&self) -> Option<Arc<Connection>> {
        let is_writer = |it: &Connection| it.lock_level.load(Relaxed) >= SQLITE_LOCK_RESERVED;
        self.connections().into_iter().find(|connection| is_writer(connection))
    }
}

/// A connection's wait for a lock that was refused.
struct Wait {
    /// The lock level that was refused.
    level: i32,
    class: Class,
    /// When the wait ends, in milliseconds after `Database::began`.
    until: u64,
}

/// A connection to one database. An attached database has a connection of its own.
pub(crate) struct Connection {
    scheduler: Scheduler,
    classes: Classes,
    database: Arc<Database>,
    /// The class that its URI or `PRAGMA forebay_class` has set.
    own: Mutex<Option<Class>>,
    lock_level: AtomicI32,
    has_write_lock: AtomicBool,
    /// The number of write transactions that it has begun.
    transactions: AtomicU64,
    pub(crate) checkpoints: AtomicBool,
    pub(crate) overwrites: AtomicBool,
    waits: Mutex<Option<Wait>>,
    files: Mutex<Vec<Weak<dyn Raise>>>,
}

impl Connection {
    pub(crate) fn new(
        scheduler: &Scheduler,
        classes: &Classes,
        database: Arc<Database>,
        own: Option<Class>,
    ) -> Arc<Self> {
        let connection = Arc::new(Self {
            scheduler: scheduler.clone(),
            classes: classes.clone(),
            own: Mutex::new(own),
            lock_level: AtomicI32::new(0),
            has_write_lock: AtomicBool::new(false),
            transactions: AtomicU64::new(0),
            checkpoints: AtomicBool::new(false),
            overwrites: AtomicBool::new(false),
            waits: Mutex::default(),
            files: Mutex::default(),
            database,
        });
        let mut others = lock(&connection.database.connections);
        others.retain(|other| other.strong_count() > 0);
        others.push(Arc::downgrade(&connection));
        drop(others);
        connection
    }

    pub(crate) fn add_file(&self, file: &Arc<impl Raise + 'static>) {
        let file: Arc<dyn Raise> = Arc::clone(file) as _;
        let mut files = lock(&self.files);
        files.retain(|other| other.strong_count() > 0);
        files.push(Arc::downgrade(&file));
    }

    pub(crate) fn own_class(&self) -> Option<Class> {
        lock(&self.own).clone()
    }

    pub(crate) fn set_own_class(&self, class: Option<Class>) {
        *lock(&self.own) = class;
    }

    /// The class of its I/O while no other connection waits for it: the class that the thread has
    /// entered, else the connection's own, else that of its present operation.
    fn class_alone(&self, access: Access) -> Class {
        let entered = self.scheduler.current_class();
        if entered != self.scheduler.default_class() {
            return entered;
        }
        if let Some(own) = self.own_class() {
            return own;
        }
        let classes = &self.classes;
        if self.checkpoints.load(Relaxed) {
            classes.checkpoint.clone()
        } else if self.overwrites.load(Relaxed) {
            classes.vacuum.clone()
        } else if access == Access::Read {
            classes.queries.clone()
        } else {
            classes.commits.clone()
        }
    }

    /// The class of its I/O: the class with the most shares among its own and those of the connections
    /// that wait for its locks.
    pub(crate) fn class(&self, access: Access) -> Class {
        let class = self.class_alone(access);
        let until = self.database.waited_until.load(Relaxed);
        if until == 0 || until < self.database.now() {
            return class;
        }
        self.database.connections().iter().fold(class, |highest, other| {
            match other.waits_for(self) {
                Some(waiting) if waiting.shares() > highest.shares() => waiting,
                _ => highest,
            }
        })
    }

    /// The class in which this connection waits for a lock of `holder`. `None` if it does not wait.
    fn waits_for(&self, holder: &Self) -> Option<Class> {
        let waits = lock(&self.waits);
        let wait = waits.as_ref().filter(|wait| wait.until >= self.database.now())?;
        holder.holds_against(wait.level).then(|| wait.class.clone())
    }

    /// Whether it holds a write lock, or another lock that blocks `level`.
    fn holds_against(&self, level: i32) -> bool {
        let own = self.lock_level.load(Relaxed);
        let shared = level >= SQLITE_LOCK_EXCLUSIVE && own >= SQLITE_LOCK_SHARED;
        self.has_write_lock.load(Relaxed) || own >= SQLITE_LOCK_RESERVED || shared
    }

    /// Records the level of the lock that it holds on the database.
    pub(crate) fn set_lock_level(&self, level: i32) {
        let before = self.lock_level.swap(level, Relaxed);
        if before < SQLITE_LOCK_RESERVED && level >= SQLITE_LOCK_RESERVED {
            self.begin_transaction();
        }
        if level <= SQLITE_LOCK_SHARED && !self.has_write_lock.load(Relaxed) {
            self.overwrites.store(false, Relaxed);
        }
    }

    /// Records whether it holds the write lock of the WAL.
    pub(crate) fn set_write_lock(&self, has: bool) {
        self.has_write_lock.store(has, Relaxed);
        if has {
            self.begin_transaction();
        } else {
            self.overwrites.store(false, Relaxed);
        }
    }

    /// Begins a new transaction: the connection got a write lock, or a write failed and SQLite rolls back.
    pub(crate) fn begin_transaction(&self) {
        self.transactions.fetch_add(1, Relaxed);
    }

    /// The number of its write transaction. `None` while it does not hold a write lock, and during a
    /// checkpoint.
    pub(crate) fn transaction(&self) -> Option<u64> {
        let writes = self.has_write_lock.load(Relaxed)
            || self.lock_level.load(Relaxed) >= SQLITE_LOCK_RESERVED;
        (writes && !self.checkpoints.load(Relaxed)).then(|| self.transactions.load(Relaxed))
    }

    /// Ends a wait: the connection got its lock.
    pub(crate) fn waits_no_more(&self) {
        *lock(&self.waits) = None;
    }

    /// Records that a lock was refused. Its holder continues in this connection's class, and so do the
    /// holder's queued writes.
    pub(crate) fn waits_for_lock(&self, level: i32) {
        let access = if level > SQLITE_LOCK_SHARED { Access::Write } else { Access::Read };
        let class = self.class_alone(access);
        let until = self.database.now().saturating_add(WAITS_FOR.as_millis() as u64);
        *lock(&self.waits) = Some(Wait { level, class: class.clone(), until });
        self.database.waited_until.fetch_max(until, Relaxed);
        for other in self.database.connections() {
            if !std::ptr::eq(&*other, self) && other.holds_against(level) {
                let files: Vec<_> = lock(&other.files).iter().filter_map(Weak::upgrade).collect();
                files.iter().for_each(|file| file.raise(&class));
            }
        }
    }
}
