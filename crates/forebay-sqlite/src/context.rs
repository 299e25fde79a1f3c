//! What the methods of a VFS and of its files share.

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

/// What the methods of a VFS share.
pub(crate) struct Context {
    pub(crate) name: CString,
    pub(crate) mapped: Past,
    pub(crate) unscheduled: Past,
    unlisted: Past,
    pub(crate) scheduler: Scheduler,
    pub(crate) classes: Classes,
    pub(crate) base: *mut sqlite3_vfs,
    databases: Databases,
    /// By the address of the name by which SQLite opened the database.
    connections: Mutex<Vec<(usize, Weak<Connection>)>>,
}

// SAFETY: a registered VFS may be used from all threads, and so may the scheduler.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Of a VFS around `base`, with classes of the scheduler.
    ///
    /// # Errors
    /// A class could not be made.
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

    /// The class of that name; none in a forked child, where no class is known.
    pub(crate) fn class(&self, name: &CStr) -> Result<Option<Class>, String> {
        let name = name.to_string_lossy();
        let classes = self.scheduler.classes();
        let found = classes.iter().find(|class| class.name() == name).cloned();
        if found.is_some() || classes.is_empty() {
            return Ok(found);
        }
        let known: Vec<_> = classes.iter().map(Class::name).collect();
        Err(format!("there is no class `{name}`; there are {}", known.join(", ")))
    }

    /// Fails for a file on a disk that no entry covers, if the scheduler refuses those; else it says so.
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
                let why = "which is in no entry of the io-properties: nothing limits it";
                self.unlisted.add(|| format!("`{path}` is on a disk {why}"));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The class of who deletes this journal; that of commits if nobody writes its database.
    pub(crate) fn class_of_delete(&self, path: &CStr) -> Class {
        let database = path.to_bytes().strip_suffix(b"-journal");
        let writer = database.and_then(|path| self.databases.find(path)?.writer());
        writer.map_or_else(|| self.classes.commits.clone(), |it| it.class(Access::Write))
    }

    /// The connection of a database that was opened by this name. The name of its WAL and journal lead
    /// to it.
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
