//! Text in columns of a terminal, in which some characters take two and some none.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What others named, without what a terminal would take for a command, and without what takes no
/// column, such as marks that turn the direction of a line.
pub(super) fn printable(text: &str) -> String {
    let shown = |char: char| if char.width().is_some_and(|width| width > 0) { char } else { '?' };
    text.chars().map(shown).collect()
}

/// How many columns it takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// As much of it as there is room for.
pub(super) fn within(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, char)| {
        taken += char.width().unwrap_or_default();
        taken > columns
    });
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// This many columns of it, with a mark where some is missing.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    format!("{}~", within(text, columns.saturating_sub(1)))
}

/// Exactly this many columns, with blanks behind it or with a mark where some is missing.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let blanks = columns.saturating_sub(width(&text));
    text + &" ".repeat(blanks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_two_columns_take_two() {
        assert_eq!(padded("\u{1F600}a", 4), "\u{1F600}a ");
        assert_eq!(cut("\u{1F600}\u{1F600}\u{1F600}", 4), "\u{1F600}~");
        assert_eq!(within("a\u{1F600}b", 2), "a");
        assert_eq!(within("ab", 5), "ab");
    }

    #[test]
    fn control_and_hidden_characters_are_shown_as_a_mark() {
        assert_eq!(printable("a\x1b[2J\n\u{202E}\u{200B}b"), "a?[2J???b");
    }
}
