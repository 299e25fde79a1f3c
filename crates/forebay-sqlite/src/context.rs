//! What the methods of a VFS and of its files share.

use std::ffi::{CStr, CString, c_char};
use std::sync::{Arc, Mutex, Weak};

use forebay::{Class, ClassError, Scheduler};
use libsqlite3_sys::{sqlite3_filename_database, sqlite3_uri_parameter, sqlite3_vfs};

use crate::classes::Classes;
use crate::connection::{Connection, Databases, lock};
use crate::unscheduled::Past;

/// What the methods of a VFS share.
pub(crate) struct Context {
    pub(crate) name: CString,
    pub(crate) mapped: Past,
    pub(crate) unscheduled: Past,
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
            scheduler: scheduler.clone(),
            classes: Classes::of(scheduler)?,
            base,
            databases: Databases::default(),
            connections: Mutex::default(),
        })
    }

    /// The class of that name.
    pub(crate) fn class(&self, name: &CStr) -> Result<Class, String> {
        let name = name.to_string_lossy();
        let known = || {
            let classes = self.scheduler.classes();
            classes.iter().map(|class| class.name().to_owned()).collect::<Vec<_>>().join(", ")
        };
        self.scheduler
            .class(&name)
            .ok_or_else(|| format!("there is no class `{name}`; there are {}", known()))
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
            false => Some(self.class(unsafe { CStr::from_ptr(class) })?),
        };
        let database = self.databases.get(path.to_bytes());
        let connection = Connection::new(&self.scheduler, &self.classes, database, own);
        let mut connections = lock(&self.connections);
        connections.retain(|(_, other)| other.strong_count() > 0);
        connections.push((name as usize, Arc::downgrade(&connection)));
        Ok(connection)
    }
}
