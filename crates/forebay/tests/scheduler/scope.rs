//! The class of a task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Waker};

use forebay::{Class, Scheduler};

use crate::two_disks;

/// What is current each time the task goes on, with pauses that let it move to
/// another thread.
async fn looks(scheduler: Scheduler) -> Vec<Class> {
    let mut seen = Vec::new();
    for _ in 0..100 {
        seen.push(scheduler.current_class());
        tokio::task::yield_now().await;
    }
    seen
}

#[test]
fn tasks_that_take_turns_on_a_thread_keep_their_classes() {
    let scheduler = two_disks().build().unwrap();
    let classes = ["one", "two", "three"].map(|name| scheduler.add_class(name, 100).unwrap());
    for threads in [1, 3] {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(threads).build().unwrap();
        let tasks: Vec<_> = (0..30)
            .map(|n| &classes[n % 3])
            .map(|class| (class, runtime.spawn(class.scope(looks(scheduler.clone())))))
            .collect();
        let untagged = runtime.spawn(looks(scheduler.clone()));
        runtime.block_on(async {
            for (class, task) in tasks {
                assert!(task.await.unwrap().iter().all(|seen| seen == class));
            }
            assert!(untagged.await.unwrap().iter().all(|seen| *seen == scheduler.default_class()));
        });
    }
}

#[test]
fn the_innermost_scope_counts_and_each_ends_with_its_poll() {
    let scheduler = two_disks().build().unwrap();
    let [outer, inner] = ["outer", "inner"].map(|name| scheduler.add_class(name, 1).unwrap());
    let current = || scheduler.current_class();
    let task = outer.scope(async {
        let before = current();
        let within = inner.scope(async { current() }).await;
        (before, within, current())
    });
    assert_eq!(smol::block_on(task), (outer.clone(), inner, outer.clone()));

    let entered = outer.enter();
    let mut waiting = pin!(scheduler.default_class().scope(std::future::pending::<()>()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    assert_eq!(current(), outer, "the task waits, and its class is left");
    drop(entered);

    let mut panics = pin!(outer.scope(async { panic!("a task panics, as a test of it") }));
    let polled = catch_unwind(AssertUnwindSafe(|| panics.as_mut().poll(&mut context)));
    assert!(polled.is_err());
    assert_eq!(current(), scheduler.default_class());
}
