//! Whether requests that must not block (`RWF_NOWAIT`) are done: reads and overwrites apart.

use crate::environment::Nowait;
use crate::finding::Finding;
use crate::sources::WRITING_2025;
use crate::subject::Subject;

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    match &subject.environment.io {
        Ok(io) => vec![say("reads", io.nowait_read), say("overwrites", io.nowait_write)],
        Err(why) => vec![Finding::unknown(format!("RWF_NOWAIT: {why}"))],
    }
}

fn say(which: &str, outcome: Nowait) -> Finding {
    match outcome {
        Nowait::Done => Finding::fine(format!("{which} with RWF_NOWAIT are done")),
        Nowait::WouldBlock => {
            Finding::note(format!("{which} with RWF_NOWAIT come back undone: they would block"))
                .why(
                    "programs that ask for it submit every such request twice, the second time \
                     from a thread; with the flag left away, the article's load was no faster. \
                     forebay's direct requests do without it",
                )
                .source(WRITING_2025)
        }
        Nowait::Unsupported => {
            Finding::note(format!("{which} with RWF_NOWAIT are not supported by the filesystem"))
        }
        Nowait::Failed => Finding::unknown(format!("{which} with RWF_NOWAIT: they failed")),
    }
}
