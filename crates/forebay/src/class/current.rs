//! The current class of a thread, which is used by calls that name no class.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;

use super::Class;
use crate::registry::Shared;

thread_local! {
    /// The classes that this thread has entered and not left, each with a unique number.
    static ENTERED: RefCell<Vec<(u64, Class)>> = const { RefCell::new(Vec::new()) };
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

impl Class {
    /// Makes this the current class of the calling thread until the guard is dropped. Calls on the
    /// scheduler that name no class use it. If several classes are entered, the last one applies.
    ///
    /// A future keeps the class that was current when it was made. The guard must not be held
    /// across an `.await` of a task that moves between threads. Use [`Class::scope`] in tasks.
    pub fn enter(&self) -> Entered {
        let number = NEXT.replace(NEXT.get() + 1);
        // At the end of the thread the list may be destroyed. Then this has no effect.
        let _ = ENTERED.try_with(|entered| entered.borrow_mut().push((number, self.clone())));
        Entered { number, bound_to_thread: PhantomData }
    }

    /// Makes this the current class of `future`, as [`Class::enter`] does for a thread.
    ///
    /// It is entered for each poll, on any thread, and left afterwards. Tasks that the future
    /// spawns do not inherit the scope.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use forebay::{Op, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// let compaction = scheduler.add_class("compaction", 100)?;
    /// let task = compaction.scope({
    ///     let scheduler = scheduler.clone();
    ///     async move {
    ///         let permit = scheduler.admit_async(Op::Write, 1 << 20).await?;
    ///         drop(permit);
    ///         Ok::<_, std::io::Error>(scheduler.current_class())
    ///     }
    /// });
    /// assert_eq!(smol::block_on(task)?, compaction);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cancel safety: that of `future`.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let class = self.clone();
        async move {
            let mut future = pin!(future);
            poll_fn(|context| {
                let _entered = class.enter();
                future.as_mut().poll(context)
            })
            .await
        }
    }
}

/// A guard that keeps a class the current one of its thread: see [`Class::enter`].
#[derive(Debug)]
#[must_use = "the class is left when this is dropped"]
pub struct Entered {
    number: u64,
    bound_to_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // At the end of the thread the list may be destroyed. The class is dropped after the
        // borrow, because it may be the last handle of its scheduler.
        let _left = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            let at = entered.iter().rposition(|(number, _)| *number == self.number)?;
            Some(entered.remove(at))
        });
    }
}

/// The innermost class of `scheduler` that this thread has entered.
pub(crate) fn innermost(scheduler: &Arc<Shared>) -> Option<Class> {
    let found = |entered: &RefCell<Vec<(u64, Class)>>| {
        let entered = entered.borrow();
        let of_scheduler = |(_, class): &&(u64, Class)| Arc::ptr_eq(&class.scheduler, scheduler);
        entered.iter().rev().find(of_scheduler).map(|(_, class)| class.clone())
    };
    ENTERED.try_with(found).ok().flatten()
}
