//! A program of verbs, made of bytes, and a plain model of what must hold while it
//! runs: for the property test alongside this, and for `fuzz/fuzz_targets/io_queue.rs`.

mod classes;
mod drain;
mod model;
mod shard;
mod verb;

use std::fmt;

use model::Model;
use verb::{Bytes, Verb};

/// Longer programs find nothing that shorter ones do not.
const VERBS_MAX: usize = 10_000;
/// Each verb is this many bytes, so that one may be left out without changing the others.
const VERB_BYTES: usize = 6;

/// What to do, as bytes; shown as the verbs that they say.
#[derive(Clone)]
pub(crate) struct Program(pub(crate) Vec<u8>);

impl Program {
    /// Runs it, and then everything to its end.
    ///
    /// # Panics
    /// Something does not hold.
    pub(crate) fn run(&self) {
        let mut model = self.model();
        for verb in self.verbs() {
            model.apply(&verb);
            model.check();
        }
        model.drain();
    }

    /// The first bytes say what it begins with.
    fn model(&self) -> Model {
        Model::new(&mut Bytes::new(&self.0[..VERB_BYTES.min(self.0.len())]))
    }

    fn verbs(&self) -> impl Iterator<Item = Verb> {
        let verbs = self.0.chunks(VERB_BYTES).skip(1).take(VERBS_MAX);
        verbs.map(|bytes| Verb::decode(&mut Bytes::new(bytes)))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}, which is {:?}", self.0, self.model())?;
        self.verbs().try_for_each(|verb| writeln!(f, "{verb:?}"))
    }
}
