//! An engine and a directory to try it in.

use std::path::PathBuf;

use forebay::engine::{BackendChoice, Completion, Engine, EngineConfig, Operation};
use forebay::{AlignedBuf, DirectFile};
use tempfile::TempDir;

/// A length, offset and alignment that every file system takes.
pub(crate) const BLOCK: usize = 4096;

pub(crate) fn engine(backend: BackendChoice, depth_max: u32) -> Engine {
    Engine::new(&EngineConfig { backend, depth_max, ..EngineConfig::default() }).unwrap()
}

pub(crate) struct Bench {
    pub(crate) engine: Engine,
    dir: TempDir,
}

impl Bench {
    pub(crate) fn new(backend: BackendChoice) -> Self {
        Self::with(engine(backend, 32))
    }

    pub(crate) fn with(engine: Engine) -> Self {
        Self { engine, dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A new file to read and write.
    pub(crate) fn file(&self) -> DirectFile {
        let options = DirectFile::options().read(true).write(true).create_new(true);
        options.open(self.path("data")).unwrap()
    }

    /// Executes one operation and waits for it.
    pub(crate) fn run(&mut self, operation: Operation) -> Completion {
        self.engine.push(u64::MAX, operation).unwrap();
        let completed = next(&mut self.engine);
        assert_eq!(completed.token, u64::MAX);
        completed
    }

    /// Executes one operation and returns the number of its error.
    pub(crate) fn errno(&mut self, operation: Operation) -> i32 {
        self.run(operation).result.unwrap_err().raw_os_error().unwrap()
    }

    pub(crate) fn write(&mut self, file: &DirectFile, offset: u64, data: AlignedBuf) {
        let len = data.len();
        let completed = self.run(Operation::write(file.clone(), offset, data));
        assert_eq!(completed.result.unwrap(), len);
    }

    /// Reads `len` bytes, or what there is of them.
    pub(crate) fn read(&mut self, file: &DirectFile, offset: u64, len: usize) -> Vec<u8> {
        let completed = self.run(Operation::read(file.clone(), offset, filled(len, 0xee)));
        let read = completed.result.unwrap();
        completed.operation.into_buffer::<AlignedBuf>().unwrap()[..read].to_vec()
    }
}

/// Waits for a completion.
pub(crate) fn next(engine: &mut Engine) -> Completion {
    loop {
        if let Some(completed) = engine.pop() {
            return completed;
        }
        engine.submit_and_wait(None).unwrap();
    }
}

pub(crate) fn filled(len: usize, byte: u8) -> AlignedBuf {
    let mut buffer = AlignedBuf::new(len, BLOCK).unwrap();
    buffer.fill(byte);
    buffer
}
