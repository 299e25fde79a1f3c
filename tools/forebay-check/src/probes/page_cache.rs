//! Whether the kernel writes back what it is asked to, a part of a file at a time.

use crate::environment::PageCache;
use crate::finding::Finding;
use crate::subject::Subject;

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    subject.environment.page_cache.map(say).into_iter().collect()
}

fn say(seen: PageCache) -> Finding {
    match seen {
        PageCache { ranges: true, .. } => Finding::fine(
            "parts of a file are written back when that is asked for: seen dirty, then clean",
        ),
        PageCache { residency: false, .. } => Finding::note(
            "what of a file is in memory is not seen (cachestat: Linux 6.5, and no overlay)",
        )
        .why(
            "forebay writes back the parts of a file with fdatasync, takes a permit for each \
             buffered read, and prices a flush by what was written through it",
        ),
        PageCache { dirty_pages: false, .. } => Finding::note(
            "a write leaves nothing dirty in memory: it goes to the disk at once, or there is none",
        )
        .why("forebay takes the permit before the write"),
        PageCache { .. } => Finding::note("sync_file_range leaves dirty what it is to write back")
            .why("forebay writes back the parts of a file with fdatasync"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn page_cache_support_is_decided_by_effects_and_not_by_return_values() {
        let of = |residency, dirty_pages, ranges| say(PageCache { residency, dirty_pages, ranges });
        assert_eq!(of(true, true, true).level, Level::Fine);
        for (seen, word) in [
            (of(false, false, false), "not seen"),
            (of(true, false, false), "at once"),
            (of(true, true, false), "leaves dirty"),
        ] {
            assert_eq!(seen.level, Level::Note);
            assert!(seen.what.contains(word), "{}", seen.what);
        }
    }
}
