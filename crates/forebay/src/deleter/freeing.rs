//! Freeing of removed files: a large file in parts, small files together.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use forebay_core::{Access, Op, StepMax, Time, saturating_nanos};
use rustix::io::Errno;

use super::deletion::DeletedHow;
use super::error::{DeleteErrorCause, DeleteOperation};
use super::item::Item;
use super::jobs::JOBS_MAX;
use super::open_file::{OpenFile, Opened, SMALL_MAX};
use super::state::{CHECK_PERIOD, RETRIES_MAX, Worker};
use crate::Class;
use crate::admit::AdmitFuture;
use crate::permit::Permit;
use crate::sys::waker::with_own;

/// The most small files that share a step.
const FILES_MAX: usize = 64;

impl Worker {
    /// The most that a step of a class may free now.
    fn limit(&self, class: &Class) -> StepMax {
        let options = &self.shared.options;
        let goal = class.disk.here().of(Op::Discard).io.effective_goal();
        StepMax::at_rate(goal, saturating_nanos(options.step), self.rate, options.commands)
    }

    /// Does the next step, if there is one.
    pub(super) fn free_some(&mut self) {
        self.open_some();
        let Some(first) = self.opened.front() else { return };
        let (class, is_small) = (first.item.place.class().clone(), first.is_small);
        let limit = self.limit(&class);
        if is_small { self.free_small(&class, limit) } else { self.free_part(&class, limit) }
    }

    /// Opens the next files.
    fn open_some(&mut self) {
        loop {
            let items = self.next_items();
            if items.is_empty() {
                return;
            }
            // The first item that lacks a descriptor decides whether all such items are tried
            // again.
            let (mut retries, mut again) = (None, Vec::new());
            for opened in OpenFile::open_all(items) {
                match opened {
                    Ok(Opened::Freeable(file)) => self.opened.push_back(file),
                    Ok(Opened::Over(item, how)) => self.end(item, Ok(how)),
                    Err((item, DeleteErrorCause::System { errno, .. }))
                        if lacks_descriptors(errno)
                            && *retries.get_or_insert_with(|| self.may_retry()) =>
                    {
                        again.push(item);
                    }
                    Err((item, cause)) => self.end(item, Err(cause)),
                }
            }
            if !again.is_empty() {
                again.into_iter().rev().for_each(|item| self.queue.push_front(item));
                return;
            }
            // After a lack of descriptors, the count continues, so that the next item does not wait
            // as long again.
            if retries.is_none() {
                self.retries = 0;
            }
        }
    }

    /// The next items to open: one large file, or the small ones that fit in a step with the open
    /// files.
    fn next_items(&mut self) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        loop {
            let first_open = self.opened.front().map(|file| (&file.item, file.is_small));
            let first =
                first_open.or_else(|| items.first().map(|first| (first, first.bytes <= SMALL_MAX)));
            if let Some((first, is_small)) = first {
                let limit = self.limit(first.place.class());
                let of_open = self.opened.iter().map(|file| (file.item.bytes, file.extents.len()));
                let all = of_open.chain(items.iter().map(|item| (item.bytes, 1)));
                let (bytes, extents) =
                    all.fold((0, 0), |(bytes, extents), (b, e)| (bytes + b, extents + e));
                let is_full = bytes >= limit.bytes
                    || extents >= limit.commands as usize
                    || self.opened.len() + items.len() >= FILES_MAX;
                let fits = |item: &Item| {
                    item.bytes <= SMALL_MAX && item.place.is_same_directory(&first.place)
                };
                if !is_small || is_full || !self.queue.front().is_some_and(fits) {
                    return items;
                }
            }
            let Some(item) = self.queue.pop_front() else { return items };
            items.extend(self.claim(item));
        }
    }

    /// Whether items that lack descriptors are tried again. It waits first, because descriptors may
    /// be closed.
    fn may_retry(&mut self) -> bool {
        let retries = self.retries < RETRIES_MAX;
        if retries {
            self.retries += 1;
            self.back_off();
        }
        retries
    }

    /// Frees a part of the first file.
    fn free_part(&mut self, class: &Class, limit: StepMax) {
        let Some(first) = self.opened.front_mut() else { return };
        let step = first.next_step(limit).transpose();
        let admitted = step.map(|step| {
            let mut step = step?;
            let group = class.disk.here().of(Op::Discard);
            let most = group.discard_step(limit, step.lens());
            step.shorten(most.bytes);
            let access = Op::Discard.commands(most.commands);
            Ok((self.admit(class, access, step.bytes())?, step))
        });
        let Some(mut file) = self.opened.pop_front() else { return };
        let (permit, step) = match admitted {
            Some(Ok(admitted)) => admitted,
            Some(Err(cause)) => return self.end(file.item, Err(cause)),
            None => {
                let (item, result) = file.finish();
                return self.end(item, result);
            }
        };
        let begin = self.now();
        match file.free(&step.extents) {
            Ok(bytes) => {
                drop(permit);
                self.count_step(begin, &mut file, bytes, step.extents.len() as u64);
                self.opened.push_front(file);
            }
            Err(cause) => {
                permit.fail();
                self.end(file.item, Err(cause));
            }
        }
    }

    /// Frees small files, with one permit and one flush for all of them.
    fn free_small(&mut self, class: &Class, limit: StepMax) {
        let lens = |file: &OpenFile| -> Vec<u64> {
            file.extents.iter().map(|extent| extent.end - extent.start).collect()
        };
        let all = self.opened.iter().flat_map(lens);
        let most = class.disk.here().of(Op::Discard).discard_step(limit, all);
        // Whole files, and at least one.
        let (mut count, mut bytes, mut commands) = (0, 0, 0);
        for file in &self.opened {
            let lens = lens(file);
            let with = (bytes + lens.iter().sum::<u64>(), commands + lens.len() as u32);
            if count > 0 && (with.0 > most.bytes || with.1 > most.commands) {
                break;
            }
            count += 1;
            (bytes, commands) = with;
        }
        let access = Op::Discard.commands(commands.max(1));
        let permit = match self.admit(class, access, bytes.max(1)) {
            Ok(permit) => permit,
            Err(cause) => {
                let files: Vec<OpenFile> = self.opened.drain(..).collect();
                return files.into_iter().for_each(|file| self.end(file.item, Err(cause.clone())));
            }
        };
        let begin = self.now();
        let freed: Vec<_> = self.opened.drain(..count).map(OpenFile::free_whole).collect();
        let flushed = freed.last().map_or(Ok(()), |(item, _)| item.place.flush());
        drop(permit);
        self.count_small(begin, freed, u64::from(commands), flushed);
    }

    fn count_small(
        &mut self,
        begin: Time,
        freed: Vec<(Item, Result<DeletedHow, DeleteErrorCause>)>,
        commands: u64,
        flushed: Result<(), Errno>,
    ) {
        let bytes =
            freed.iter().filter(|(_, result)| result.is_ok()).map(|(item, _)| item.bytes).sum();
        self.pay(begin, bytes, commands);
        for (item, result) in freed {
            if result.is_ok() {
                item.target.add_step(item.bytes);
            }
            let flushed = flushed.map_err(|errno| DeleteErrorCause::System {
                operation: DeleteOperation::Flush,
                errno: errno.raw_os_error(),
            });
            self.end(item, result.and_then(|how| flushed.map(|()| how)));
        }
    }

    fn count_step(&mut self, begin: Time, file: &mut OpenFile, bytes: u64, commands: u64) {
        self.pay(begin, bytes, commands);
        let item = &mut file.item;
        item.target.add_step(bytes);
        let freed = bytes.min(item.bytes);
        item.bytes -= freed;
        self.shared.counts().backlog_bytes.fetch_sub(freed, Relaxed);
    }

    fn pay(&mut self, begin: Time, bytes: u64, commands: u64) {
        self.pace.pay(begin, (bytes, self.rate), (commands, self.shared.options.commands));
        self.shared.counts().add_step(self.now(), bytes, commands);
    }

    /// Waits for a permit, and does jobs meanwhile.
    fn admit(
        &mut self,
        class: &Class,
        access: Access,
        bytes: u64,
    ) -> Result<Permit, DeleteErrorCause> {
        let mut admit = pin!(AdmitFuture::required(class.clone(), access, bytes));
        loop {
            if let Poll::Ready(admitted) =
                with_own(&self.waker, |context| admit.as_mut().poll(context))
            {
                return admitted.map_err(|error| DeleteErrorCause::Admission(Arc::new(error)));
            }
            if self.put_off.len() < JOBS_MAX && self.shared.has_jobs() {
                self.take_jobs();
            }
            self.look(self.now());
            self.parking.park(self.clock, Some(self.now().plus_nanos(CHECK_PERIOD)));
        }
    }
}

fn lacks_descriptors(errno: i32) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM].iter().any(|lack| lack.raw_os_error() == errno)
}
