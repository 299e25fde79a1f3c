//! Sentences of the README, the book and the architecture are short, and no page is an exception without a reason.

use std::fs;
use std::path::PathBuf;

use tidy::{root, sentences, words};

use super::assert_none;

/// The mean number of words of a page's sentences is at most this.
const MEAN_MAX: f64 = 15.0;
/// A sentence of more words is long.
const LONG: usize = 30;
/// Less than this part of the sentences of a page are long.
const LONG_PART_MAX: f64 = 0.05;

/// Words and sentences of a page.
struct Measure {
    words: usize,
    long: Vec<String>,
    sentences: usize,
}

fn measure(markdown: &str) -> Measure {
    let sentences = sentences(markdown);
    let long = sentences.iter().filter(|sentence| words(sentence) > LONG).cloned().collect();
    let words = sentences.iter().map(|sentence| words(sentence)).sum();
    Measure { words, long, sentences: sentences.len() }
}

impl Measure {
    fn mean(&self) -> f64 {
        self.words as f64 / self.sentences.max(1) as f64
    }

    fn long_part(&self) -> f64 {
        self.long.len() as f64 / self.sentences.max(1) as f64
    }

    fn is_readable(&self) -> bool {
        self.mean() <= MEAN_MAX && self.long_part() < LONG_PART_MAX
    }
}

/// The pages whose sentences are measured, by their path below the root.
pub(crate) fn pages() -> Vec<(String, PathBuf)> {
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md"].map(Into::into).into();
    for folder in ["docs", "docs/decisions"] {
        let entries = fs::read_dir(root().join(folder)).into_iter().flatten();
        let names = entries.map(|entry| PathBuf::from(folder).join(entry.unwrap().file_name()));
        pages.extend(names.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages.sort();
    pages.into_iter().map(|page| (page.display().to_string(), root().join(page))).collect()
}

#[test]
fn sentences_of_pages_are_short() {
    let mut found = Vec::new();
    for (page, path) in pages() {
        let measure = measure(&fs::read_to_string(path).unwrap());
        let (mean, long) = (measure.mean(), 100.0 * measure.long_part());
        let Measure { words, sentences, .. } = measure;
        println!("{page}: {words} words, {sentences} sentences, mean {mean:.1}, long {long:.1} %");
        if !measure.is_readable() {
            let longest = measure.long.join("\n    ");
            found.push(format!("{page}: mean {mean:.1} words, {long:.1} % long\n    {longest}"));
        }
    }
    assert_none(
        found,
        "pages whose mean is above 15 words, or of which 5 % of sentences are above 30",
    );
}

#[test]
fn prose_alone_is_measured() {
    let page = "# A heading. Not measured

Two words. A [link of](https://example.org/a.b) five words! Is 1.5 ms `not.a stop` one sentence?
It goes on; a semicolon ends none: nor does a colon, e.g. This one.

| a | table |
|---|---|

    indented code. It is skipped.

- an item ends a sentence
- **so** does this
  on two lines
1. and a number

```rust
code.is_none();
```
![A picture.](a.svg)Last
";
    let expected = [
        ("Two words.", 2),
        ("A link of five words!", 5),
        ("Is 1.5 ms `not.a stop` one sentence?", 7),
        ("It goes on; a semicolon ends none: nor does a colon, e.g. This one.", 14),
        ("an item ends a sentence", 5),
        ("so does this on two lines", 6),
        ("and a number", 3),
        ("Last", 1),
    ];
    let measured: Vec<(String, usize)> =
        sentences(page).into_iter().map(|sentence| (sentence.clone(), words(&sentence))).collect();
    assert_eq!(measured, expected.map(|(sentence, words)| (sentence.to_owned(), words)));
}

#[test]
fn long_sentences_and_a_long_mean_are_found() {
    let sentence = |words: usize| format!("{}w. ", "W ".repeat(words - 1));
    assert!(measure(&sentence(15).repeat(20)).is_readable());
    assert!(!measure(&(sentence(15).repeat(20) + &sentence(16))).is_readable());
    let with_long = |short: usize| measure(&(sentence(5).repeat(short) + &sentence(31)));
    assert!(with_long(20).is_readable());
    assert!(!with_long(19).is_readable());
    assert_eq!(with_long(19).long.len(), 1);
}
