//! Every public method of what has state, as a forked child calls it.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use forebay::engine::{Engine, EngineConfig, Operation};
use forebay::{
    AdmitError, AdmitFor, AlignedBuf, BacklogController, BufResult, BufferPool, DeleteError,
    DeleteErrorCause, Deleter, DeleterOptions, Forked, Limits, Op, Request, Scheduler,
};

use super::forked::{Handles, LEN, buffer, options};

/// Whether the method did in a child what it is documented to.
type Method = fn(&mut Handles) -> bool;

fn is_forked<T>(result: &io::Result<T>) -> bool {
    let source = result.as_ref().err().and_then(|error| error.get_ref());
    source.is_some_and(|source| source.downcast_ref() == Some(&Forked))
}

fn no_permit<T>(result: &Result<T, AdmitError>) -> bool {
    match result {
        Err(AdmitError::Forked(_)) => true,
        Err(AdmitError::Lookup(error)) => error.to_string() == Forked.to_string(),
        _ => false,
    }
}

fn not_deleted<T>(result: &Result<T, DeleteError>) -> bool {
    let cause = result.as_ref().err().map(|error| &error.cause);
    matches!(cause, Some(DeleteErrorCause::Forked(Forked)))
}

/// What the future resolves to at once.
fn polled<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn read() -> [(Op, u64); 2] {
    [(Op::Read, LEN); 2]
}

fn admit_for(h: &Handles) -> AdmitFor {
    h.class.admit_for(&h.disk, Op::Read, LEN)
}

fn request(h: &mut Handles) -> Request<BufResult<AlignedBuf>> {
    h.requests.pop().unwrap()
}

/// By the names in the sources.
pub(crate) const METHODS: &[(&str, Method)] = &[
    ("AdmitFor::in_one_part", |h| no_permit(&admit_for(h).in_one_part().and_then(AdmitFor::wait))),
    ("AdmitFor::in_parts", |h| {
        let mut parts = admit_for(h).in_parts().unwrap();
        no_permit(&parts.next().unwrap().1.wait())
    }),
    ("AdmitFor::try_now", |h| no_permit(&admit_for(h).try_now())),
    ("AdmitFor::wait", |h| no_permit(&admit_for(h).wait())),
    ("AdmitFor::wait_timeout", |h| no_permit(&admit_for(h).wait_timeout(Duration::MAX))),
    ("AdmitParts::next", |h| {
        admit_for(h).in_parts().unwrap().all(|(_, part)| no_permit(&part.wait()))
    }),
    ("AdmitParts::size_hint", |h| admit_for(h).in_parts().unwrap().size_hint().0 == 1),
    ("AdmitMany::try_now", |h| no_permit(&h.class.admit_many(&read()).try_now())),
    ("AdmitMany::wait", |h| no_permit(&h.class.admit_many(&read()).wait())),
    ("AdmitMany::wait_timeout", |h| {
        no_permit(&h.class.admit_many(&read()).wait_timeout(Duration::MAX))
    }),
    ("BacklogController::apply", |h| {
        let controller = BacklogController::new(&[(0.0, 1), (1.0, 9)]).unwrap();
        controller.apply(&h.class, 0.5).is_err()
    }),
    ("BacklogController::new", |_| BacklogController::new(&[]).is_err()),
    ("BacklogController::shares", |_| {
        BacklogController::new(&[(0.0, 1), (1.0, 9)]).unwrap().shares(1.0) == 9
    }),
    ("BufferPool::kept_bytes", |h| h.pool.kept_bytes() == 0),
    ("BufferPool::new", |_| BufferPool::new(LEN as usize, 1 << 20).take(1).is_ok()),
    ("BufferPool::take", |h| is_forked(&h.pool.take(1))),
    ("BufferPool::taken_bytes", |h| h.pool.taken_bytes() == 0),
    ("BufferedWriter::dirty", |h| h.writer.dirty() == 0 && h.busy_writer.dirty() == 0),
    ("BufferedWriter::flush", |h| is_forked(&h.writer.flush())),
    ("BufferedWriter::get_ref", |h| Arc::ptr_eq(h.writer.get_ref(), &h.std_file)),
    ("BufferedWriter::into_inner", |h| is_forked(&h.taken_writer.take().unwrap().into_inner())),
    ("BufferedWriter::seek", |h| is_forked(&h.writer.seek(SeekFrom::Start(7)))),
    ("BufferedWriter::set_class", |h| is_forked(&h.busy_writer.set_class(&h.class))),
    ("BufferedWriter::set_write_back_after", |h| {
        h.busy_writer.set_write_back_after(1 << 20);
        is_forked(&h.busy_writer.write_back())
    }),
    ("BufferedWriter::sync_all", |h| is_forked(&h.busy_writer.sync_all())),
    ("BufferedWriter::sync_all_async", |h| {
        is_forked(&polled(h.busy_writer.sync_all_async()).unwrap())
    }),
    ("BufferedWriter::sync_data", |h| is_forked(&h.busy_writer.sync_data())),
    ("BufferedWriter::sync_data_async", |h| {
        is_forked(&polled(h.busy_writer.sync_data_async()).unwrap())
    }),
    ("BufferedWriter::sync_with", |h| is_forked(&h.busy_writer.sync_with(|| Ok(())))),
    ("BufferedWriter::with_dirty_max", |h| {
        h.taken_writer = h.taken_writer.take().map(|writer| writer.with_dirty_max(1 << 20));
        true
    }),
    ("BufferedWriter::write", |h| is_forked(&h.writer.write(&[7]))),
    ("BufferedWriter::write_all_at", |h| is_forked(&h.busy_writer.write_all_at(&[7], 0))),
    ("BufferedWriter::write_at", |h| is_forked(&h.busy_writer.write_at(&[7], 0))),
    ("BufferedWriter::write_at_async", |h| {
        is_forked(&polled(h.busy_writer.write_at_async(&[7], 0)).unwrap())
    }),
    ("BufferedWriter::write_back", |h| is_forked(&h.busy_writer.write_back())),
    ("Class::admit", |h| no_permit(&h.class.admit(Op::Read, LEN))),
    ("Class::admit_async", |h| no_permit(&polled(h.class.admit_async(Op::Read, LEN)).unwrap())),
    ("Class::admit_for", |h| no_permit(&polled(admit_for(h).into_future()).unwrap())),
    ("Class::admit_many", |h| no_permit(&polled(h.class.admit_many(&read())).unwrap())),
    ("Class::admit_timeout", |h| no_permit(&h.class.admit_timeout(Op::Read, LEN, Duration::MAX))),
    ("Class::buffered_writer", |h| is_forked(&h.class.buffered_writer(&*h.std_file))),
    ("Class::disk", |h| h.class.disk().name() == "default"),
    ("Class::enter", |h| {
        let _entered = h.class.enter();
        h.scheduler.current_class() == h.class
    }),
    ("Class::nested_in", |h| {
        let class = h.class.nested_in(&h.permits[0]);
        no_permit(&class.admit(Op::Read, LEN))
    }),
    ("Class::limits", |h| h.class.limits() == Limits::default()),
    ("Class::name", |h| h.class.name() == "class"),
    ("Class::on", |h| no_permit(&h.class.on(&h.disk).unwrap().admit(Op::Read, LEN))),
    ("Class::page_cache_counters", |h| {
        let _ = h.class.page_cache_counters();
        true
    }),
    ("Class::permit_counters", |h| h.class.permit_counters().operations == [0; 4]),
    ("Class::prefetch", |h| {
        // As for the next.
        let _ = h.class.prefetch(&*h.std_file, ..);
        true
    }),
    ("Class::read_at", |h| {
        // What is in memory needs nothing of the parent's.
        let _ = h.class.read_at(&*h.std_file, &mut [0; 10], 0);
        true
    }),
    ("Class::scope", |h| {
        let scheduler = h.scheduler.clone();
        let scope = h.class.scope(async move { scheduler.admit_async(Op::Read, LEN).await });
        no_permit(&polled(scope).unwrap())
    }),
    ("Class::set_limits", |h| h.class.set_limits(&Limits::default()).is_err()),
    ("Class::set_shares", |h| h.class.set_shares(7).is_err()),
    ("Class::shares", |h| h.class.shares() == 0),
    ("Class::sync_all", |h| h.class.sync_all(&*h.std_file).is_err()),
    ("Class::sync_data", |h| h.class.sync_data(&*h.std_file).is_err()),
    ("Class::try_admit", |h| no_permit(&h.class.try_admit(Op::Read, LEN))),
    ("ClassGroup::add_class", |h| h.group.add_class("new", 1).is_err()),
    ("ClassGroup::add_class_group", |h| h.group.add_class_group("new", 1).is_err()),
    ("ClassGroup::limits", |h| h.group.limits() == Limits::default()),
    ("ClassGroup::name", |h| h.group.name() == "group"),
    ("ClassGroup::set_limits", |h| h.group.set_limits(&Limits::default()).is_err()),
    ("ClassGroup::set_shares", |h| h.group.set_shares(7).is_err()),
    ("ClassGroup::shares", |h| h.group.shares() == 0),
    ("Deletion::cancel", |h| !h.deletion.cancel()),
    ("Deletion::removed", |h| not_deleted(&polled(h.deletion.removed()).unwrap())),
    ("Deletion::path", |h| h.deletion.path().starts_with(h.dir.path())),
    ("Deletion::progress", |h| h.deletion.progress().steps == 0),
    ("Deletion::wait", |h| not_deleted(&h.deletion.wait())),
    ("Deletion::wait_removed", |h| not_deleted(&h.deletion.wait_removed())),
    ("Deleter::class", |h| *h.deleter.class() == h.class),
    ("Deleter::delete", |h| not_deleted(&h.deleter.delete("nothing").wait())),
    ("Deleter::delete_all", |h| {
        h.deleter.delete_all(["nothing"]).iter().all(|deletion| not_deleted(&deletion.wait()))
    }),
    ("Deleter::empty_trash", |h| not_deleted(&h.deleter.empty_trash(h.dir.path()).wait())),
    ("Deleter::new", |h| {
        let deleter = Deleter::new(&h.class, DeleterOptions::new()).unwrap();
        // The class is the parent's.
        deleter.delete(h.dir.path().join("nothing")).wait().is_err()
    }),
    ("Deleter::drain", |h| not_deleted(&h.deleter.drain().wait())),
    ("Deleter::snapshot", |h| h.deleter.snapshot().files == 0),
    ("Disk::counters", |h| h.disk.counters().dispatched == 0),
    ("Disk::effective_goal", |h| {
        let _ = h.disk.effective_goal();
        true
    }),
    ("Disk::file_from_fd", |h| h.disk.file_from_fd(h.std_file.try_clone().unwrap()).is_err()),
    ("Disk::in_flight", |h| {
        let _ = h.disk.in_flight();
        true
    }),
    ("Disk::io_queues", |h| h.disk.io_queues() > 0),
    ("Disk::load_status", |h| {
        let _ = h.disk.load_status();
        true
    }),
    ("Disk::name", |h| h.disk.name() == "default"),
    ("Disk::open", |h| h.disk.open(h.dir.path().join("data"), &options()).is_err()),
    ("Disk::permit_counters", |h| h.disk.permit_counters().dispatched == 0),
    ("Disk::shard", |h| h.disk.shard(&EngineConfig::default()).is_err()),
    ("Disk::submit", |h| {
        let operation = Operation::unlink("/nothing/there", 0).unwrap();
        h.disk.submit(&h.class, operation).wait().0.is_err()
    }),
    ("Engine::backend", |h| format!("{:?}", h.engine.backend()).len() > 1),
    ("Engine::cancel", |h| !h.engine.cancel(1)),
    ("Engine::fallback_reason", |h| h.engine.fallback_reason().is_none_or(|why| !why.is_empty())),
    ("Engine::in_flight", |h| h.engine.in_flight() <= 1),
    ("Engine::new", |_| Engine::new(&EngineConfig::default()).is_ok()),
    ("Engine::pop", |h| h.engine.pop().is_none()),
    ("Engine::push", |h| {
        h.engine.push(2, Operation::unlink("/nothing/there", 0).unwrap()).is_err()
    }),
    ("Engine::retries", |h| {
        let _ = h.engine.retries();
        true
    }),
    ("Engine::submit_and_wait", |h| is_forked(&h.engine.submit_and_wait(None))),
    ("Engine::waker", |h| {
        drop(h.engine.waker());
        true
    }),
    ("Engine::watch", |h| {
        h.engine.watch();
        true
    }),
    ("EngineWaker::wake", |h| {
        h.engine_waker.wake();
        true
    }),
    ("File::allocate", |h| is_forked(&h.file.allocate(&h.class, 0, LEN).wait())),
    ("File::direct_file", |h| h.file.direct_file().memory_alignment() > 0),
    ("File::disk", |h| h.file.disk().name() == "default"),
    ("File::punch_hole", |h| is_forked(&h.file.punch_hole(&h.class, 0, LEN).wait())),
    ("File::read_at", |h| is_forked(&h.file.read_at(&h.class, buffer(), 0).wait().0)),
    ("File::read_vectored_at", |h| {
        is_forked(&h.file.read_vectored_at(&h.class, vec![buffer()], 0).wait().0)
    }),
    ("File::sync_all", |h| is_forked(&h.file.sync_all(&h.class).wait())),
    ("File::sync_data", |h| is_forked(&h.file.sync_data(&h.class).wait())),
    ("File::truncate_to_written", |h| h.file.truncate_to_written(&h.class).wait().is_err()),
    ("File::truncate", |h| is_forked(&h.file.truncate(&h.class, 0).wait())),
    ("File::write_at", |h| is_forked(&h.file.write_at(&h.class, buffer(), 0).wait().0)),
    ("File::write_vectored_at", |h| {
        is_forked(&h.file.write_vectored_at(&h.class, vec![buffer()], 0).wait().0)
    }),
    ("Permit::admit_nested", |h| {
        no_permit(&polled(h.permits[0].admit_nested(&h.class, Op::Read, LEN)).unwrap())
    }),
    ("Permit::complete", |h| {
        h.permits.pop().unwrap().complete(&Ok(()));
        true
    }),
    ("Permit::complete_one", |h| {
        h.permits[0].complete_one(0, &Ok(()));
        true
    }),
    ("Permit::fail", |h| {
        h.permits.pop().unwrap().fail();
        true
    }),
    ("Permit::requests", |h| h.permits[0].requests() == 1),
    ("Request::detach", |h| is_forked(&request(h).detach())),
    ("Request::timed", |h| is_forked(&request(h).timed().wait().0.0)),
    ("Request::wait", |h| is_forked(&request(h).wait().0)),
    ("Request::wait_timeout", |h| is_forked(&request(h).wait_timeout(Duration::MAX).unwrap().0)),
    ("Scheduler::add_class", |h| h.scheduler.add_class("new", 1).is_err()),
    ("Scheduler::add_class_group", |h| h.scheduler.add_class_group("new", 1).is_err()),
    ("Scheduler::admit", |h| no_permit(&h.scheduler.admit(Op::Read, LEN))),
    ("Scheduler::admit_async", |h| {
        no_permit(&polled(h.scheduler.admit_async(Op::Read, LEN)).unwrap())
    }),
    ("Scheduler::admit_for", |h| no_permit(&h.scheduler.admit_for(&h.disk, Op::Read, LEN).wait())),
    ("Scheduler::admit_many", |h| no_permit(&h.scheduler.admit_many(&read()).wait())),
    ("Scheduler::admit_timeout", |h| {
        no_permit(&h.scheduler.admit_timeout(Op::Read, LEN, Duration::MAX))
    }),
    ("Scheduler::builder", |_| Scheduler::builder().build().is_ok()),
    ("Scheduler::class", |h| h.scheduler.class("class").is_none()),
    ("Scheduler::classes", |h| h.scheduler.classes().is_empty()),
    ("Scheduler::current_class", |h| h.scheduler.current_class() == h.scheduler.default_class()),
    ("Scheduler::default_disk", |h| h.scheduler.default_disk().counters().dispatched == 0),
    ("Scheduler::disk", |h| h.scheduler.disk("default").is_none()),
    ("Scheduler::disk_of", |h| is_forked(&h.scheduler.disk_of(h.dir.path()))),
    ("Scheduler::disk_of_file", |h| is_forked(&h.scheduler.disk_of_file(&*h.std_file))),
    ("Scheduler::disks", |h| h.scheduler.disks().is_empty()),
    ("Scheduler::file_from_fd", |h| {
        h.scheduler.file_from_fd(h.std_file.try_clone().unwrap()).is_err()
    }),
    ("Scheduler::from_file", |_| Scheduler::from_file(Path::new("/nothing/there")).is_err()),
    ("Scheduler::open", |h| h.scheduler.open(h.dir.path().join("data"), &options()).is_err()),
    ("Scheduler::reload", |h| h.scheduler.reload(&h.properties).is_err()),
    ("Scheduler::remove_class", |h| h.scheduler.remove_class(&h.class).is_err()),
    ("Scheduler::remove_class_group", |h| h.scheduler.remove_class_group(&h.group).is_err()),
    ("Scheduler::snapshot", |h| h.scheduler.snapshot().disks.is_empty()),
    ("Scheduler::try_admit", |h| no_permit(&h.scheduler.try_admit(Op::Read, LEN))),
    ("Scheduler::default_class", |h| h.scheduler.default_class().name() == "untagged"),
    ("Shard::backend", |h| format!("{:?}", h.shard.backend()).len() > 1),
    ("Shard::cancel", |h| {
        let operation = Operation::unlink("/nothing/there", 0).unwrap();
        h.shard.submit(&h.class, operation).is_err()
    }),
    ("Shard::counters", |h| format!("{:?}", h.shard.counters()).len() > 1),
    ("Shard::disk", |h| h.shard.disk().name() == "default"),
    ("Shard::fallback_reason", |h| h.shard.fallback_reason().is_none_or(|why| !why.is_empty())),
    ("Shard::is_empty", |h| h.shard.is_empty()),
    ("Shard::len", |h| matches!(h.shard.len(), 0)),
    ("Shard::pop", |h| h.shard.pop().is_none()),
    ("Shard::queue", |h| h.shard.queue().is_empty()),
    ("Shard::queue_of", |h| h.shard.queue_of(Op::Write).is_empty()),
    ("Shard::run_once", |h| is_forked(&h.shard.run_once(None))),
    ("Shard::submit", |h| {
        let operation = Operation::unlink("/nothing/there", 0).unwrap();
        h.shard.submit(&h.class, operation).is_err()
    }),
    ("Shard::timeout", |h| h.shard.timeout().is_none_or(|timeout| timeout < Duration::MAX)),
    ("Shard::waker", |h| {
        drop(h.shard.waker());
        true
    }),
    ("ThreadPermit::complete", |h| {
        h.thread_permits.pop().unwrap().complete(&Ok(()));
        true
    }),
    ("ThreadPermit::complete_one", |h| {
        h.thread_permits[0].complete_one(0, &Ok(()));
        true
    }),
    ("ThreadPermit::detach", |h| h.thread_permits.pop().unwrap().detach().requests() == 1),
    ("ThreadPermit::fail", |h| {
        h.thread_permits.pop().unwrap().fail();
        true
    }),
    ("ThreadPermit::requests", |h| h.thread_permits[0].requests() == 1),
];
