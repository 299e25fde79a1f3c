//! The state that the methods of a VFS and of its files share.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use forebay::{Class, ClassError, DEFAULT_DISK, Scheduler, UnlistedError};
use libsqlite3_sys::{sqlite3_filename_database, sqlite3_uri_parameter, sqlite3_vfs};

use crate::classes::Classes;
use crate::connection::{Access, Connection, Databases, lock};
use crate::unscheduled::Past;

/// The state of a registered VFS.
pub(crate) struct Context {
    pub(crate) name: CString,
    pub(crate) mapped: Past,
    pub(crate) unscheduled: Past,
    unlisted: Past,
    pub(crate) scheduler: Scheduler,
    pub(crate) classes: Classes,
    pub(crate) base: *mut sqlite3_vfs,
    databases: Databases,
    /// The connections, by the address of the name that SQLite passed to open the database.
    connections: Mutex<Vec<(usize, Weak<Connection>)>>,
}

// SAFETY: a registered VFS may be used from all threads, and so may the scheduler.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The context of a VFS that wraps `base` and uses the scheduler's classes.
    ///
    /// # Errors
    /// A class could not be added.
    pub(crate) fn new(
        name: CString,
        scheduler: &Scheduler,
        base: *mut sqlite3_vfs,
    ) -> Result<Self, ClassError> {
        Ok(Self {
            name,
            mapped: Past::default(),
            unscheduled: Past::default(),
            unlisted: Past::default(),
            scheduler: scheduler.clone(),
            classes: Classes::of(scheduler)?,
            base,
            databases: Databases::default(),
            connections: Mutex::default(),
        })
    }

    /// The class of that name. `None` in a forked child, which has no scheduler and knows no class.
    pub(crate) fn class(&self, name: &CStr) -> Result<Option<Class>, String> {
        let name = name.to_string_lossy();
        if let Some(class) = self.scheduler.class(&name) {
            return Ok(Some(class));
        }
        let classes = self.scheduler.classes();
        if classes.is_empty() {
            return Ok(None);
        }
        let known: Vec<_> = classes.iter().map(Class::name).collect();
        Err(format!("unknown class `{name}`; the classes are {}", known.join(", ")))
    }

    /// Checks that an entry of the I/O properties covers the disk of `path`. If none does, it fails where
    /// the scheduler refuses such disks, and otherwise logs a warning once.
    fn check_listed(&self, path: &Path) -> Result<(), String> {
        let disk = self.scheduler.disk_of(path);
        let disk = match (disk, path.parent()) {
            (Err(error), Some(directory)) if error.kind() == io::ErrorKind::NotFound => {
                self.scheduler.disk_of(directory)
            }
            (disk, _) => disk,
        };
        match disk {
            Err(error) if error.get_ref().is_some_and(|it| it.is::<UnlistedError>()) => {
                Err(error.to_string())
            }
            Ok(disk) if disk.name() == DEFAULT_DISK => {
                let path = path.display();
                let why = "is in no entry of the I/O properties, so its I/O is not limited";
                self.unlisted.add(|| format!("the disk of `{path}` {why}"));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The class in which a journal is deleted: that of the connection that writes its database, or that
    /// of commits if no connection of this process does.
    pub(crate) fn class_of_delete(&self, path: &CStr) -> Class {
        let database = path.to_bytes().strip_suffix(b"-journal");
        let writer = database.and_then(|path| self.databases.find(path)?.writer());
        writer.map_or_else(|| self.classes.commits.clone(), |it| it.class(Access::Write))
    }

    /// The connection that opened the database of `name`, which is the database's own name or that of
    /// its WAL or journal.
    ///
    /// # Safety
    /// `name` is that of a database, WAL or journal, as SQLite hands it to a VFS.
    pub(crate) unsafe fn connection(&self, name: *const c_char) -> Option<Arc<Connection>> {
        // SAFETY: as the caller says.
        let database = unsafe { sqlite3_filename_database(name) } as usize;
        let connections = lock(&self.connections);
        let found = connections.iter().rev().find(|(address, _)| *address == database);
        found.and_then(|(_, connection)| connection.upgrade())
    }

    /// A new connection to the database of this name.
    ///
    /// # Safety
    /// As for [`Self::connection`].
    pub(crate) unsafe fn connect(&self, name: *const c_char) -> Result<Arc<Connection>, String> {
        // SAFETY: as the caller says.
        let (path, class) = unsafe {
            (CStr::from_ptr(name), sqlite3_uri_parameter(name, c"forebay_class".as_ptr()))
        };
        let own = match class.is_null() {
            true => None,
            // SAFETY: SQLite keeps it as long as the name.
            false => self.class(unsafe { CStr::from_ptr(class) })?,
        };
        if self.databases.find(path.to_bytes()).is_none() {
            self.check_listed(Path::new(OsStr::from_bytes(path.to_bytes())))?;
        }
        let database = self.databases.get(path.to_bytes());
        let connection = Connection::new(&self.scheduler, &self.classes, database, own);
        let mut connections = lock(&self.connections);
        connections.retain(|(_, other)| other.strong_count() > 0);
        connections.push((name as usize, Arc::downgrade(&connection)));
        Ok(connection)
    }
}
