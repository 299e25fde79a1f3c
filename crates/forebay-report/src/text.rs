//! Sentences for people, in lines that a terminal shows whole.

/// Columns of a line.
const COLUMNS: usize = 96;

/// Adds `words` to `text`, in the columns to the right of `head`.
pub fn paragraph(text: &mut String, head: &str, words: &str) {
    paragraph_within(text, head, words, COLUMNS);
}

/// The same in lines of at most so many columns; a longer word has a line of its own.
pub fn paragraph_within(text: &mut String, head: &str, words: &str, columns: usize) {
    let mut line = String::from(head);
    for word in words.split(' ') {
        if line.len() + word.len() > columns {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(head.len());
        }
        line.push_str(word);
        line.push(' ');
    }
    text.push_str(line.trim_end());
    text.push('\n');
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
}
