//! The sentences of a Markdown text.
//!
//! Headings, tables, blocks of code and pictures are no prose. A list item and a paragraph end a sentence, and so does a
//! full stop, an exclamation mark or a question mark before a space. A semicolon and a colon
//! do not. Words of code within a sentence count.

/// Abbreviations whose full stop ends no sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "vs."];

/// The sentences of a Markdown text, without its marks for links and emphasis.
pub fn sentences(markdown: &str) -> Vec<String> {
    blocks(markdown).iter().flat_map(|block| split(&plain(block))).collect()
}

/// How many words a sentence has: what stands between spaces and has a letter or a digit.
pub fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// Paragraphs and list items, each on one line.
fn blocks(markdown: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let (mut fenced, mut after_blank) = (false, true);
    for line in markdown.lines() {
        let text = line.trim_start().trim_start_matches("> ");
        let is_fence = text.starts_with("```");
        let is_code = after_blank && line.starts_with("    ");
        let item = item(text);
        fenced ^= is_fence;
        let is_prose = !(fenced || is_fence || is_code || text.starts_with(['#', '|']));
        if !is_prose || text.is_empty() || item.is_some() {
            blocks.push(String::new());
        }
        if let (true, Some(block)) = (is_prose, blocks.last_mut()) {
            block.push_str(item.unwrap_or(text));
            block.push(' ');
        }
        after_blank = text.is_empty() || is_code;
    }
    blocks
}

/// The text of a line that begins a list item.
fn item(line: &str) -> Option<&str> {
    let number = line.trim_start_matches(|character: char| character.is_ascii_digit());
    let numbered = if number.len() < line.len() { number.strip_prefix(". ") } else { None };
    line.strip_prefix("- ").or(numbered)
}

/// A block without pictures, targets of links and emphasis.
fn plain(block: &str) -> String {
    let (mut text, mut rest, mut in_code) = (String::new(), block, false);
    while let Some(next) = rest.chars().next() {
        let picture = rest.strip_prefix("![").filter(|_| !in_code);
        if let Some((_, after)) = picture.and_then(|alt| alt.split_once("](")) {
            rest = after.split_once(')').map_or("", |(_, after)| after);
        } else if let Some(target) = rest.strip_prefix("](").filter(|_| !in_code) {
            rest = target.split_once(')').map_or("", |(_, after)| after);
        } else {
            in_code ^= next == '`';
            if in_code || !matches!(next, '*' | '[') {
                text.push(next);
            }
            rest = &rest[next.len_utf8()..];
        }
    }
    text
}

/// The sentences of a text.
fn split(text: &str) -> Vec<String> {
    let (mut sentences, mut begin, mut in_code) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        in_code ^= character == '`';
        let after = &text[at + character.len_utf8()..];
        let sentence = text[begin..at].to_owned() + character.encode_utf8(&mut [0; 4]);
        let is_end = !in_code && matches!(character, '.' | '!' | '?');
        if is_end
            && ends_sentence(after)
            && !ABBREVIATIONS.iter().any(|end| sentence.ends_with(end))
        {
            sentences.push(sentence);
            begin = at + character.len_utf8();
        }
    }
    sentences.push(text[begin..].to_owned());
    let trimmed = sentences.iter().map(|sentence| sentence.trim().to_owned());
    trimmed.filter(|sentence| words(sentence) > 0).collect()
}

/// Whether a full stop before this text ends a sentence: not within a number, a name or a path.
fn ends_sentence(after: &str) -> bool {
    after.trim_start_matches([')', '"', '”']).starts_with(char::is_whitespace)
}
