//! What a connection is doing with its database, and which others wait for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use forebay::{Class, Scheduler};
use libsqlite3_sys::{SQLITE_LOCK_EXCLUSIVE, SQLITE_LOCK_RESERVED, SQLITE_LOCK_SHARED};

use crate::classes::Classes;

/// How long a connection counts as waiting after a lock was refused: SQLite tells nobody that it gave
/// up, and its own busy handler asks again within 100 ms.
const WAITS_FOR: Duration = Duration::from_secs(1);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A file whose dirty bytes may have to be written in a higher class.
pub(crate) trait Raise: Send + Sync {
    /// Its writer's class has at least the shares of `class` until the next write.
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

    /// The one that is open by this path.
    pub(crate) fn find(&self, path: &[u8]) -> Option<Arc<Database>> {
        lock(&self.all).get(path).and_then(Weak::upgrade)
    }
}

/// A database that connections of this process have open.
pub(crate) struct Database {
    connections: Mutex<Vec<Weak<Connection>>>,
    began: Instant,
    /// Until when somebody waits, in milliseconds after `began`.
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

/// A refused lock.
struct Wait {
    level: i32,
    class: Class,
    until: u64,
}

/// A connection to one database: an attached one has another.
pub(crate) struct Connection {
    scheduler: Scheduler,
    classes: Classes,
    database: Arc<Database>,
    /// The class that it was given, by its URI or a pragma.
    own: Mutex<Option<Class>>,
    lock_level: AtomicI32,
    has_write_lock: AtomicBool,
    /// How often it became the one that writes.
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

    /// The class of its I/O if nobody waits: that which the thread has entered, that of the connection,
    /// or that of what it does.
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

    /// The class of its I/O: the one with the most shares among its own and those that wait for what
    /// it holds.
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

    /// The class in which this connection waits for a lock that `holder` has.
    fn waits_for(&self, holder: &Self) -> Option<Class> {
        let waits = lock(&self.waits);
        let wait = waits.as_ref().filter(|wait| wait.until >= self.database.now())?;
        holder.holds_against(wait.level).then(|| wait.class.clone())
    }

    /// Whether it has the lock that writers have, or one that keeps another from `level`.
    fn holds_against(&self, level: i32) -> bool {
        let own = self.lock_level.load(Relaxed);
        let shared = level >= SQLITE_LOCK_EXCLUSIVE && own >= SQLITE_LOCK_SHARED;
        self.has_write_lock.load(Relaxed) || own >= SQLITE_LOCK_RESERVED || shared
    }

    /// It has a lock of the database now.
    pub(crate) fn set_lock_level(&self, level: i32) {
        let before = self.lock_level.swap(level, Relaxed);
        if before < SQLITE_LOCK_RESERVED && level >= SQLITE_LOCK_RESERVED {
            self.begin_transaction();
        }
        if level <= SQLITE_LOCK_SHARED && !self.has_write_lock.load(Relaxed) {
            self.overwrites.store(false, Relaxed);
        }
    }

    /// It has the write lock of the WAL, or gave it back.
    pub(crate) fn set_write_lock(&self, has: bool) {
        self.has_write_lock.store(has, Relaxed);
        if has {
            self.begin_transaction();
        } else {
            self.overwrites.store(false, Relaxed);
        }
    }

    /// It writes from here on, or has failed to: then SQLite rolls back.
    pub(crate) fn begin_transaction(&self) {
        self.transactions.fetch_add(1, Relaxed);
    }

    /// The number of the transaction in which it alone writes to the log.
    pub(crate) fn transaction(&self) -> Option<u64> {
        let writes = self.has_write_lock.load(Relaxed)
            || self.lock_level.load(Relaxed) >= SQLITE_LOCK_RESERVED;
        (writes && !self.checkpoints.load(Relaxed)).then(|| self.transactions.load(Relaxed))
    }

    /// It got the lock that it waited for, if it did.
    pub(crate) fn waits_no_more(&self) {
        *lock(&self.waits) = None;
    }

    /// A lock was refused. Its holder continues in this connection's class. So do its writes that are
    /// queued already.
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
