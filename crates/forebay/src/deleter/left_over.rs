//! Entries that other deleters left in a trash. The first deleter that claims one deletes it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;

use super::deletion::Target;
use super::directory::allocated;
use super::entry::{Claimed, Entry};
use super::entry_name::EntryName;
use super::error::{DeleteErrorCause, DeleteOperation, During};
use super::item::{Item, Place};
use super::state::{Watched, Worker};
use super::trash::Trash;

/// The most entries of another deleter that are checked in a row.
const ENTRIES_PER_CHECK_MAX: usize = 1024;

impl Worker {
    /// Deletes the entries that other deleters left in `trash`. With `and_watch`, entries of
    /// present deleters are watched. Entries that this deleter already deletes or watches keep
    /// their target.
    pub(super) fn adopt(
        &mut self,
        trash: &Arc<Trash>,
        target: &Arc<Target>,
        and_watch: bool,
    ) -> Result<(), DeleteErrorCause> {
        let max = self.shared.options.files_max;
        let (found, more) = trash.entries_of_others(max).during(DeleteOperation::List)?;
        let known = self.in_hand(trash);
        let mut watched: HashMap<u64, VecDeque<u64>> = HashMap::new();
        let mut present: HashMap<u64, bool> = HashMap::new();
        for name in found.into_iter().filter(|name| !known.contains(name)) {
            let is_present =
                *present.entry(name.owner).or_insert_with(|| trash.claims().has(name.owner));
            if is_present && !and_watch {
                continue;
            }
            self.shared.adopt(target);
            match is_present {
                true => watched.entry(name.owner).or_default().push_back(name.number),
                false => self.take_over(trash, name, target),
            }
        }
        self.watched.extend(watched.into_iter().map(|(owner, mut numbers)| {
            // A deleter deletes its entries in this order.
            numbers.make_contiguous().sort_unstable();
            Watched { target: Arc::clone(target), trash: Arc::clone(trash), owner, numbers }
        }));
        if more { Err(DeleteErrorCause::Full { max }) } else { Ok(()) }
    }

    /// The entries of others in `trash` that this deleter deletes or watches.
    fn in_hand(&self, trash: &Trash) -> HashSet<EntryName> {
        let opened = self.opened.iter().map(|file| &file.item);
        let items = self.queue.iter().chain(opened);
        let in_hand = items.filter_map(|item| item.place.entry_in(trash));
        let watched = self.watched.iter().filter(|watched| watched.trash.is_same(trash));
        let in_hand = in_hand.filter(|entry| entry.is_left()).map(|entry| entry.name);
        in_hand.chain(watched.flat_map(Watched::names)).collect()
    }

    /// Queues an entry that no present deleter owns.
    fn take_over(&mut self, trash: &Arc<Trash>, name: EntryName, target: &Arc<Target>) {
        match trash.stat_entry(name) {
            Ok(stat) => {
                let item = self.item(target, Place::Trash(Entry::new(trash, name)), &stat);
                self.queue.push_back(item);
            }
            Err(Errno::NOENT) => self.shared.end_scan(target),
            Err(errno) => {
                let failed = Err(errno).during(DeleteOperation::LookUp);
                self.shared.end(target, failed);
            }
        }
    }

    /// Claims the next item. Returns `None` if another deleter has it or has deleted it.
    pub(super) fn claim(&mut self, mut item: Item) -> Option<Item> {
        let Place::Trash(entry) = &mut item.place else { return Some(item) };
        match entry.claim().during(DeleteOperation::LookUp) {
            Ok(Claimed::Before) => Some(item),
            Ok(Claimed::Now(stat)) => {
                // Another deleter may have freed a part of it before it ended.
                let freed = item.bytes.saturating_sub(allocated(&stat));
                item.bytes -= freed;
                item.target.take_off(freed);
                self.shared.counts().backlog_bytes.fetch_sub(freed, Relaxed);
                Some(item)
            }
            Ok(Claimed::ByAnother) => {
                let (trash, name) = (Arc::clone(&entry.trash), entry.name);
                let target = self.take_off(item);
                self.watch(trash, name, target);
                None
            }
            Ok(Claimed::Gone) => {
                let target = self.take_off(item);
                self.shared.end_scan(&target);
                None
            }
            Err(cause) => {
                self.end(item, Err(cause));
                None
            }
        }
    }

    /// Checks the other deleters of the trashes that this one uses, and takes over the entries of
    /// those that have ended.
    pub(super) fn check_watched(&mut self) {
        for watched in std::mem::take(&mut self.watched) {
            self.look_at(watched);
        }
        for trash in self.directories.left_by_another() {
            let left = Arc::new(Target::new(trash.path()));
            // If the trash cannot be listed, files can still be moved there.
            let _ = self.adopt(&trash, &left, false);
        }
        self.end_emptied();
    }

    fn look_at(&mut self, mut watched: Watched) {
        if !watched.trash.claims().has(watched.owner) {
            for name in watched.names() {
                self.take_over(&watched.trash, name, &watched.target);
            }
            return;
        }
        for _ in 0..ENTRIES_PER_CHECK_MAX {
            let Some(name) = watched.names().next() else { return };
            if watched.trash.stat_entry(name).err() != Some(Errno::NOENT) {
                break;
            }
            watched.numbers.pop_front();
            self.shared.end_scan(&watched.target);
        }
        self.watched.push(watched);
    }

    /// Ends each `empty_trash` whose trash has no entries left.
    pub(super) fn end_emptied(&mut self) {
        for emptying in std::mem::take(&mut self.emptying) {
            if self.has_left(&emptying.trash) {
                self.emptying.push(emptying);
            } else {
                self.shared.end_scan(&emptying.target);
            }
        }
    }

    fn has_left(&self, trash: &Trash) -> bool {
        let is_left = |item: &Item| item.place.entry_in(trash).is_some_and(|entry| entry.is_left());
        self.opened.iter().any(|file| is_left(&file.item))
            || self.queue.iter().any(is_left)
            || self.watched.iter().any(|watched| watched.trash.is_same(trash))
    }

    fn watch(&mut self, trash: Arc<Trash>, name: EntryName, target: Arc<Target>) {
        let known = self.watched.iter_mut().find(|watched| {
            watched.owner == name.owner
                && Arc::ptr_eq(&watched.trash, &trash)
                && Arc::ptr_eq(&watched.target, &target)
        });
        match known {
            Some(watched) => watched.numbers.push_back(name.number),
            None => self.watched.push(Watched {
                target,
                trash,
                owner: name.owner,
                numbers: [name.number].into(),
            }),
        }
    }

    /// Removes an item that belongs to another deleter. Returns its target.
    fn take_off(&mut self, item: Item) -> Arc<Target> {
        item.target.take_off(item.bytes);
        self.forget(item)
    }
}
