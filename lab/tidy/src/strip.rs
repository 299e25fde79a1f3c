//! Rust without what is not code.

use crate::words::is_name;

/// `text` with blanks for comments and for what is in strings; lines stay where they are.
pub fn strip(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = skipped(rest, code.ends_with(is_name));
        let len = if skipped > 0 { skipped } else { first.len_utf8() };
        let (head, tail) = rest.split_at(len);
        match skipped {
            0 => code.push_str(head),
            _ => code.extend(head.chars().map(|c| if c == '\n' { c } else { ' ' })),
        }
        rest = tail;
    }
    code
}

/// How many bytes at the beginning of `text` are a comment, a string or a character.
fn skipped(text: &str, in_name: bool) -> usize {
    let until = |from: usize, end: &str| {
        text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
    };
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return until(2, "*/");
    }
    if text.starts_with('"') {
        return quoted(text, '"');
    }
    if let Some(inside) = text.strip_prefix('\'') {
        // a lifetime has no end
        let is_character = inside.starts_with('\\') || inside.chars().nth(1) == Some('\'');
        return if is_character { quoted(text, '\'') } else { 0 };
    }
    let hashes = text
        .strip_prefix('r')
        .map_or("", |raw| &raw[..raw.len() - raw.trim_start_matches('#').len()]);
    if !in_name && text.starts_with(&format!("r{hashes}\"")) {
        return until(2 + hashes.len(), &format!("\"{hashes}"));
    }
    0
}

/// How many bytes there are to the end of what is quoted.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `code`, which is stripped, without what is compiled for tests only; lines stay where they are.
pub fn without_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..at]);
        let item = &rest[at..];
        let end = match (item.find('{'), item.find(';')) {
            (Some(open), semicolon) if semicolon.is_none_or(|semicolon| open < semicolon) => {
                closing(item, open)
            }
            (_, Some(semicolon)) => semicolon + 1,
            _ => item.len(),
        };
        kept.extend(item[..end].chars().filter(|&character| character == '\n'));
        rest = &item[end..];
    }
    kept + rest
}

/// Behind the brace that closes the one at `open`.
pub(crate) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, character) in code[open..].char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => return open + at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_no_code() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b\n */ c", "a     \n    c"),
            (r#"f("a \" b", c)"#, "f(        , c)"),
            ("f(r#\"a \" b\"#)", "f(          )"),
            ("f('\\'', '{', 'a)", "f(    ,    , 'a)"),
        ] {
            assert_eq!(strip(text), code, "{text}");
        }
    }

    #[test]
    fn what_is_for_tests_is_left_out() {
        let code = "a\n#[cfg(test)]\nmod tests { { } }\nb\n#[cfg(test)]\nmod tests;\nc";
        assert_eq!(without_tests(code), "a\n\n\nb\n\n\nc");
    }
}
