//! Where work that blocks is done.

use std::sync::Arc;

use object_store::Result;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::error::generic;

/// Jobs of a store at a time: an eighth of the threads that tokio has for them.
const JOBS_MAX: usize = 64;

/// The jobs of a store.
#[derive(Clone, Debug)]
pub(crate) struct Jobs(Arc<Semaphore>);

impl Jobs {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(JOBS_MAX)))
    }

    /// Does a job on a thread of tokio's; on this one where there is no runtime. Once it has begun
    /// it goes on, also when the future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = Arc::clone(&self.0).acquire_owned().await;
        let turn = turn.map_err(|_| generic("the store is closed"))?;
        let job = move || {
            let _turn = turn;
            job()
        };
        match Handle::try_current() {
            Ok(runtime) => runtime.spawn_blocking(job).await?,
            Err(_) => job(),
        }
    }
}
