//! Which known name was meant by a misspelt one.

/// The candidate that `word` most likely means, if one is near enough to be a misspelling.
///
/// Letter case counts nothing. Near enough is one edit (a letter added, lost, changed or swapped
/// with its neighbour) for every three letters of the word, and at least one, but never as many
/// as the word has letters. Of equally near candidates the first is returned. Where none is near,
/// an abbreviation of three letters or more, such as `read_bw`, means the shortest candidate that
/// begins like it and has its letters in their order.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let letters = word.chars().count();
    let edits_max = (letters / 3).max(1).min(letters.saturating_sub(1));
    let (mut misspelt, mut abbreviated) = (None, None);
    for candidate in candidates {
        let lower = candidate.to_lowercase();
        let edits = strsim::damerau_levenshtein(&word, &lower);
        if edits <= edits_max && misspelt.is_none_or(|(least, _)| edits < least) {
            misspelt = Some((edits, candidate));
        }
        let is_short = letters >= 3 && is_abbreviation(&word, &lower);
        if is_short && abbreviated.is_none_or(|short: &str| candidate.len() < short.len()) {
            abbreviated = Some(candidate);
        }
    }
    misspelt.map(|(_, candidate)| candidate).or(abbreviated)
}

/// Whether `word` begins like `candidate` and has its letters in their order.
fn is_abbreviation(word: &str, candidate: &str) -> bool {
    let mut rest = candidate.chars();
    word.chars().next() == candidate.chars().next()
        && word.chars().all(|letter| rest.any(|other| other == letter))
}

/// The advice that ends a message about an unknown name: ``did you mean `parallelism`?`` when a
/// known name is near, the list of all known names otherwise.
///
/// ```
/// use forebay_config::known;
///
/// assert_eq!(known("compactoin", ["query", "compaction"]), "did you mean `compaction`?");
/// assert_eq!(known("backup", ["query", "compaction"]), "known are `query`, `compaction`");
/// ```
pub fn known<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = nearest(word, candidates.clone()) {
        return format!("did you mean `{name}`?");
    }
    let names: Vec<String> = candidates.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        return String::from("none are known here");
    }
    format!("known are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_finds_its_name() {
        let keys = ["parallelism", "reqsize", "rps", "shares"];
        assert_eq!(nearest("paralelism", keys), Some("parallelism"));
        assert_eq!(nearest("Reqsize", keys), Some("reqsize"));
        assert_eq!(nearest("rsp", keys), Some("rps"));
        assert_eq!(nearest("sahres", keys), Some("shares"));
    }

    #[test]
    fn an_abbreviation_finds_its_name() {
        let keys = ["read_bandwidth_sustained", "read_iops", "read_bandwidth", "write_bandwidth"];
        assert_eq!(nearest("read_bw", keys), Some("read_bandwidth"));
        assert_eq!(nearest("write_bw", keys), Some("write_bandwidth"));
        assert_eq!(nearest("bw", keys), None);
        assert_eq!(nearest("read_size", keys), None);
    }

    #[test]
    fn a_different_word_finds_nothing() {
        assert_eq!(nearest("latency", ["parallelism", "reqsize", "rps"]), None);
        assert_eq!(nearest("b", ["a"]), None);
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!(known("x", []), "none are known here");
    }
}
