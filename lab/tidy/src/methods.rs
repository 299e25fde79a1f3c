//! Which functions types have, and which of them can be called from outside.

use crate::strip::closing;
use crate::words::{is_name, places};

/// A function in an `impl`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Method {
    /// The type that has it.
    pub of: String,
    /// The trait that it is of, if it is of one.
    pub of_trait: Option<String>,
    /// Its name.
    pub name: String,
    /// Whether it says `pub`, without a restriction.
    pub is_public: bool,
    /// Whether it is `async`, or returns `impl Future`.
    pub is_future: bool,
}

/// The functions in the `impl` blocks of `code`, which is stripped.
pub fn methods(code: &str) -> Vec<Method> {
    let mut methods = Vec::new();
    for at in places(code, "impl") {
        // at the beginning of a line: elsewhere it is a type
        let begins_line = code[..at].rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
        let Some(open) = code[at..].find('{').map(|open| at + open).filter(|_| begins_line) else {
            continue;
        };
        let Some((of_trait, of)) = header(&code[at + 4..open]) else { continue };
        let body = &code[open + 1..closing(code, open).saturating_sub(1)];
        for function in functions_of(body) {
            let (of, of_trait) = (of.clone(), of_trait.clone());
            methods.push(Method { of, of_trait, ..function });
        }
    }
    methods
}

/// The names of the types that `code`, which is stripped, makes public.
pub fn public_types(code: &str) -> Vec<String> {
    let of_kind = |kind: &'static str| {
        places(code, kind).filter(|&at| code[..at].trim_end().ends_with("pub")).map(move |at| {
            code[at + kind.len()..].trim_start().chars().take_while(|&c| is_name(c)).collect()
        })
    };
    of_kind("struct").chain(of_kind("enum")).collect()
}

/// The trait and the type of an `impl`, from what stands between that word and its brace.
fn header(text: &str) -> Option<(Option<String>, String)> {
    let text = text.trim_start();
    let text = if text.starts_with('<') { &text[angle_end(text)..] } else { text };
    let text = text.split(" where").next().unwrap_or(text);
    let (of_trait, of) = match text.split_once(" for ") {
        Some((of_trait, of)) => (Some(last_name(of_trait)?), of),
        None => (None, text),
    };
    Some((of_trait, last_name(of)?))
}

/// The last name of a path, before its parameters.
fn last_name(path: &str) -> Option<String> {
    let path = path.trim().trim_start_matches('&');
    let path = path.split(['<', '(']).next().unwrap_or(path);
    let name = path.trim().rsplit("::").next()?.trim();
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

/// Behind the bracket that closes the one at the beginning.
fn angle_end(text: &str) -> usize {
    let (mut depth, mut before) = (0, ' ');
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            // not of an arrow
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
        before = character;
    }
    text.len()
}

/// The functions directly in the body of an `impl`.
fn functions_of(body: &str) -> Vec<Method> {
    let mut functions = Vec::new();
    let mut from = 0;
    while let Some(at) = places(&body[from..], "fn").next().map(|at| from + at) {
        let before = &body[from..at];
        let qualifiers = before.rsplit([';', '}', ']']).next().unwrap_or(before);
        let signature_end = body[at..].find(['{', ';']).map_or(body.len(), |end| at + end);
        let signature = &body[at + 2..signature_end];
        let name: String = signature.trim_start().chars().take_while(|&c| is_name(c)).collect();
        let words: Vec<&str> = qualifiers.split_whitespace().collect();
        functions.push(Method {
            of: String::new(),
            of_trait: None,
            name,
            is_public: words.contains(&"pub"),
            is_future: words.contains(&"async") || signature.contains("-> impl Future"),
        });
        from = if body[signature_end..].starts_with('{') {
            closing(body, signature_end)
        } else {
            signature_end
        };
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strip::strip;

    #[test]
    fn methods_are_found_with_their_types() {
        let code = "
            pub struct One<T> { t: T }
            pub(crate) struct Two;
            impl<F: Fn() -> u8> One<F> {
                pub const fn a(&self) -> impl Fn() { fn inner() {} || () }
                #[inline]
                pub async fn b(&self) {}
                pub(crate) fn c() {}
            }
            impl<'a> std::io::Write for Two { fn flush(&mut self) {} }
        ";
        let found = methods(&strip(code));
        let said: Vec<String> = found
            .iter()
            .map(|m| {
                format!("{} {:?} {} {} {}", m.of, m.of_trait, m.name, m.is_public, m.is_future)
            })
            .collect();
        let expected = [
            "One None a true false",
            "One None b true true",
            "One None c false false",
            "Two Some(\"Write\") flush false false",
        ];
        assert_eq!(said, expected);
        assert_eq!(public_types(&strip(code)), ["One"]);
    }
}
