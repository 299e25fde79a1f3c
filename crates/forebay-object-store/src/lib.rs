//! A local directory as an [`ObjectStore`], whose reads and writes take their turns by priority
//! class.
//!
//! [`ScheduledStore`] is [`LocalFileSystem`] with other reads and writes: the same paths, conditions
//! and errors, and the same durability. What they do at the disk is ordered by
//! [`forebay`]:
//!
//! - A **get** reads where its bytes are asked for: each chunk of its stream is read by
//!   [`Class::read_at`], at most 256 KiB at a time, so what is in memory costs nothing and the rest
//!   has a permit first. The payload is never a file, which would be read in no class. A chunk is at
//!   most 1 MiB, and the [`Bytes`] own the memory that it was read into; an object
//!   that is asked for as a whole is copied together if it has several.
//! - A **put** goes through [`Class::buffered_writer`], from the memory of the payload: the page
//!   cache takes it, and it is written back in the class's turn, with a bound of what is dirty. It
//!   gets its name when all of it is written.
//! - **Copies, renames, deletes and lists** move no bytes, and pass no class.
//!
//! The class is the store's; [`ScheduledStore::with_class`] makes another store of the same
//! directory, and [`ScheduledStore::with_put_class`] one whose puts are of a class of their own. A
//! [`Class`] in the `extensions` of [`GetOptions`], [`PutOptions`] or
//! [`PutMultipartOptions`] stands for that request alone.
//!
//! In a tokio runtime the work is done in its pool for blocking calls, as that of
//! [`LocalFileSystem`] is, but for at most 64 jobs of a store at a time: a class whose turn does not
//! come leaves threads to the others. Elsewhere the work is done by the thread that polls.
//!
//! # Durability
//! As with [`LocalFileSystem`] nothing is synced unless [`ScheduledStore::with_fsync`] says so: then
//! a put or a finished upload that has returned is durable, with its name and the directories that
//! were made for it. An error of writeback fails the put that waits for it; without `with_fsync`
//! none does, for what is written back later, as ever.
//!
//! # Cancel safety
//! A dropped get, stream or put does no more than what it is doing: the chunk that is being read,
//! or the put as a whole. A dropped upload leaves nothing, as an aborted one.
//!
//! ```
//! use forebay_object_store::ScheduledStore;
//! use object_store::{ObjectStoreExt, path::Path};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let root = dir.path();
//! let scheduler = forebay::Scheduler::builder().build()?;
//! let queries = ScheduledStore::new(root, &scheduler.add_class("queries", 1000)?)?;
//! let compaction = queries.with_class(&scheduler.add_class("compaction", 100)?);
//! # smol::block_on(async {
//! let table = Path::from("tables/1");
//! compaction.put(&table, "forebay".into()).await?;
//! assert_eq!(queries.get_range(&table, 0..4).await?, "fore");
//! # Ok::<_, object_store::Error>(())
//! # })?;
//! # Ok(())
//! # }
//! ```

mod error;
mod jobs;
mod reader;
mod staged;
mod upload;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forebay::Class;
use futures_util::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Extensions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, RenameOptions, Result, coalesce_ranges,
};

use error::not_implemented;
use jobs::Jobs;
use reader::Reader;
use staged::Staged;
use upload::Upload;

/// A local directory whose objects are read and written in the turns of a class. See the
/// [crate's documentation](self). Clones are the same store.
#[derive(Clone, Debug)]
pub struct ScheduledStore {
    inner: LocalFileSystem,
    class: Class,
    put_class: Class,
    jobs: Jobs,
    fsync: bool,
}

impl ScheduledStore {
    /// A store of what is below the directory `root`, for a class.
    ///
    /// # Errors
    /// If the directory is not there.
    pub fn new(root: impl AsRef<std::path::Path>, class: &Class) -> Result<Self> {
        let inner = LocalFileSystem::new_with_prefix(root)?;
        let (class, put_class) = (class.clone(), class.clone());
        Ok(Self { inner, class, put_class, jobs: Jobs::new(), fsync: false })
    }

    /// The same directory for another class.
    #[must_use]
    pub fn with_class(&self, class: &Class) -> Self {
        let (class, put_class) = (class.clone(), class.clone());
        Self { class, put_class, jobs: Jobs::new(), ..self.clone() }
    }

    /// Puts and uploads of another class than gets: for an engine that reads for queries and flushes
    /// by one store.
    #[must_use]
    pub fn with_put_class(self, class: &Class) -> Self {
        Self { put_class: class.clone(), ..self }
    }

    /// Whether what a put, a copy or a rename has done is durable when it returns; not unless it is
    /// asked for.
    #[must_use]
    pub fn with_fsync(mut self, fsync: bool) -> Self {
        self.inner = self.inner.with_fsync(fsync);
        self.fsync = fsync;
        self
    }

    /// Whether directories that a delete leaves empty are removed; not unless it is asked for.
    #[must_use]
    pub fn with_automatic_cleanup(mut self, cleanup: bool) -> Self {
        self.inner = self.inner.with_automatic_cleanup(cleanup);
        self
    }
}

/// The class of a request: its own if it has one.
fn class_of(extensions: &Extensions, store: &Class) -> Class {
    extensions.get::<Class>().unwrap_or(store).clone()
}

impl fmt::Display for ScheduledStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScheduledStore({}, class `{}`)", self.inner, self.class.name())
    }
}

#[async_trait]
impl ObjectStore for ScheduledStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if !options.attributes.is_empty() || matches!(options.mode, PutMode::Update(_)) {
            return Err(not_implemented("attributes and `PutMode::Update`", self));
        }
        let dest = self.inner.path_to_filesystem(location)?;
        let (class, fsync) = (class_of(&options.extensions, &self.put_class), self.fsync);
        let put = move || {
            let staged = Staged::create(dest, &class, fsync)?;
            staged.write_at(&payload, 0)?;
            staged.publish(options.mode == PutMode::Create)
        };
        self.jobs.run(put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        if !options.attributes.is_empty() {
            return Err(not_implemented("attributes", self));
        }
        let dest = self.inner.path_to_filesystem(location)?;
        let (class, fsync) = (class_of(&options.extensions, &self.put_class), self.fsync);
        let staged = self.jobs.run(move || Staged::create(dest, &class, fsync)).await?;
        Ok(Box::new(Upload::new(staged, self.jobs.clone())))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let class = class_of(&options.extensions, &self.class);
        let found = self.inner.get_opts(location, options).await?;
        let GetResult { payload, meta, range, attributes, extensions } = found;
        let payload = match payload {
            GetResultPayload::File(file, path) => {
                let reader = Arc::new(Reader { file, path, class });
                GetResultPayload::Stream(reader.stream(self.jobs.clone(), range.clone()))
            }
            stream @ GetResultPayload::Stream(_) => stream,
        };
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    /// Ranges that touch are read at once; nothing between them is.
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        coalesce_ranges(ranges, |range| self.get_range(location, range), 0).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}
