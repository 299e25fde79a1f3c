//! In which threads handles and futures may be used: what does not hold does not compile.

use std::fs::File as StdFile;
use std::io;
use std::sync::Arc;

use forebay::engine::{Engine, EngineWaker};
use forebay::shard::Shard;
use forebay::{
    AdmitFor, AdmitForFuture, AdmitFuture, AdmitMany, AdmitParts, BacklogController, BufferPool,
    BufferedWriter, Class, ClassGroup, Deleter, Deletion, Disk, Entered, File, Op, Permit, Request,
    Scheduler, SchedulerBuilder, ThreadPermit,
};

use super::futures::Bed;

fn anywhere<T: Send + Sync + Unpin>() {}
fn in_one_at_a_time<T: Send + Unpin>() {}
fn can_be_spawned<T: Send>(_: T) {}

#[test]
fn handles_may_be_used_in_any_thread() {
    anywhere::<(Scheduler, SchedulerBuilder, Class, ClassGroup, Disk)>();
    anywhere::<(File, BufferPool, BacklogController)>();
    anywhere::<(BufferedWriter<StdFile>, BufferedWriter<Arc<StdFile>>, Deleter, Deletion)>();
    anywhere::<(Permit, EngineWaker)>();
}

#[test]
fn futures_may_be_spawned() {
    anywhere::<(AdmitFuture, AdmitFor, AdmitMany<'static>, AdmitForFuture, AdmitParts)>();
    in_one_at_a_time::<(Deletion, Request<io::Result<()>>)>();
    let bed = Bed::new();
    can_be_spawned(bed.writer.write_at_async(&[7], 0));
    can_be_spawned(bed.writer.sync_data_async());
    can_be_spawned(bed.writer.sync_all_async());
    can_be_spawned(bed.free.scope(bed.free.admit_async(Op::Read, 1)));
    let deletions = bed.deletions();
    can_be_spawned(deletions[0].removed());
    bed.go_on();
}

/// Which of the two implementations is meant is open for a type that is `Send`: it does not compile.
trait StaysInItsThread<Which> {
    fn holds() {}
}

struct IfSend;

impl<T> StaysInItsThread<()> for T {}
impl<T: Send> StaysInItsThread<IfSend> for T {}

#[test]
fn types_bound_to_a_thread_are_not_send() {
    <ThreadPermit<'static> as StaysInItsThread<_>>::holds();
    <Entered as StaysInItsThread<_>>::holds();
    <Engine as StaysInItsThread<_>>::holds();
    <Shard as StaysInItsThread<_>>::holds();
}
