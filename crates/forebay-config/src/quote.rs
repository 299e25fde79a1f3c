//! Text from a file inside a message of one line.

/// The most characters of a quoted text; the rest is replaced by `...`.
const CHARS_MAX: usize = 60;

/// `text` shortened to the length of a quotation, and [`escaped`].
pub(crate) fn printable(text: &str) -> String {
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", escaped(&text[..end])),
        None => escaped(text),
    }
}

/// `text` with control characters escaped, so that a hostile file cannot steer a terminal.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_length_is_bounded() {
        assert_eq!(printable("C:\\a \"b\" \u{e9}"), "C:\\a \"b\" \u{e9}");
        assert_eq!(printable("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(printable(&"x".repeat(1000)), format!("{}...", "x".repeat(CHARS_MAX)));
    }
}
