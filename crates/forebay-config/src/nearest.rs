//! Which known name was meant by a misspelt one.

/// The candidate that `word` most likely means, if one is near enough to be a misspelling.
///
/// Letter case counts nothing. Near enough is one edit (a letter added, lost, changed or swapped
/// with its neighbour) for every three letters of the word, and at least one, but never as many
/// as the word has letters. Of equally near candidates the first is returned.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let letters = word.chars().count();
    let edits_max = (letters / 3).max(1).min(letters.saturating_sub(1));
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(edits, _)| *edits <= edits_max)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
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
    fn a_different_word_finds_nothing() {
        assert_eq!(nearest("latency", ["parallelism", "reqsize", "rps"]), None);
        assert_eq!(nearest("b", ["a"]), None);
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!(known("x", []), "none are known here");
    }
}
