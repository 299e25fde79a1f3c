//! A program of verbs, made of bytes, and a plain model with conditions that must hold while it runs.
//! The property test and `fuzz/fuzz_targets/io_queue.rs` use it.

mod classes;
mod drain;
mod model;
mod shard;
mod verb;

use std::fmt;

use model::Model;
use verb::{Bytes, Verb};

/// The most verbs of a program. Longer programs find nothing more.
const VERBS_MAX: usize = 10_000;
/// The bytes of each verb. One verb may be left out without a change of the others.
const VERB_BYTES: usize = 6;

/// A program as bytes. `Debug` shows it as verbs.
#[derive(Clone)]
pub(crate) struct Program(pub(crate) Vec<u8>);

impl Program {
    /// Runs the program, and then all requests to their end.
    ///
    /// # Panics
    /// A condition does not hold.
    pub(crate) fn run(&self) {
        let mut model = self.model();
        for verb in self.verbs() {
            model.apply(&verb);
            model.check();
        }
        model.drain();
    }

    /// Makes the initial state from the first bytes.
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
