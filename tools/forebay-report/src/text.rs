//! Sentences for people, in lines that a terminal shows whole.

use unicode_width::UnicodeWidthStr as _;

/// Columns of a line.
const COLUMNS: usize = 96;

/// Adds `words` to `text`, in the columns to the right of `head`.
pub fn paragraph(text: &mut String, head: &str, words: &str) {
    paragraph_within(text, head, words, COLUMNS);
}

/// The same in lines of at most this many columns, as [`lines_within`] has them.
pub fn paragraph_within(text: &mut String, head: &str, words: &str, columns: usize) {
    for line in lines_within(head, words, columns) {
        text.push_str(&line);
        text.push('\n');
    }
}

/// `words` to the right of `head`, in lines of at most this many columns of a terminal; a word that
/// is longer has a line of its own, and the first stands alongside the head.
#[must_use]
pub fn lines_within(head: &str, words: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = head.to_owned();
    let mut is_begin = true;
    for word in words.split(' ') {
        if !is_begin && line.width() + 1 + word.width() > columns {
            lines.push(line.trim_end().to_owned());
            line = " ".repeat(head.width());
            is_begin = true;
        }
        if !is_begin {
            line.push(' ');
        }
        line.push_str(word);
        is_begin = false;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_do_not_fit_go_on_below_the_first() {
        let mut text = String::new();
        paragraph(&mut text, "- ", &"word ".repeat(20));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("- word") && lines[0].len() <= COLUMNS);
        assert_eq!(lines[1], "  word");
    }

    #[test]
    fn columns_are_counted_and_not_bytes() {
        assert_eq!(lines_within("! ", "µs µs µs", 10), ["! µs µs µs"]);
        assert_eq!(lines_within("! ", "磁盘 慢", 8), ["! 磁盘", "  慢"]);
        assert_eq!(lines_within("! ", "extraordinary word", 6), ["! extraordinary", "  word"]);
    }
}
