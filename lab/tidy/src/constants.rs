//! The numeric constants of a file, with their documentation.

use crate::strip::{strip, without_tests};
use crate::words::{is_name, places};

/// Types whose constants are numbers; others, such as states that a type begins in, are left out.
const NUMERIC: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f64",
    "DiskTime", "Duration",
];

/// A constant whose type is a number, or a tuple or an array of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// The expression as it is written, on one line.
    pub value: String,
    /// Its documentation, on one line; empty without any.
    pub doc: String,
    /// Its line, counted from 1.
    pub line: usize,
}

/// The numeric constants of `text`, a file of Rust, without those for tests only.
pub fn constants(text: &str) -> Vec<Constant> {
    let code = without_tests(&strip(text));
    let code: Vec<&str> = code.lines().collect();
    let text: Vec<&str> = text.lines().collect();
    (0..code.len()).filter_map(|at| constant(&code, &text, at)).collect()
}

/// The constant that begins on line `at`, counted from 0.
fn constant(code: &[&str], text: &[&str], at: usize) -> Option<Constant> {
    let declaration = code[at].trim_start();
    let declaration = match declaration.strip_prefix("pub(") {
        Some(restricted) => restricted.split_once(')')?.1.trim_start(),
        None => declaration.strip_prefix("pub ").unwrap_or(declaration),
    };
    let (name, first) = declaration.strip_prefix("const ")?.split_once(':')?;
    if !name.chars().all(is_name) {
        return None;
    }
    let lines = std::iter::once(first).chain(code[at + 1..].iter().copied());
    let (numeric, value) = type_and_value(&joined(lines.map(str::trim)))?;
    let is_head = |line: &&str| line.starts_with("///") || line.starts_with("#[");
    let above = text[..at].iter().rev().map(|line| line.trim_start()).take_while(is_head);
    let mut doc: Vec<&str> = above.filter_map(|line| line.strip_prefix("///")).collect();
    doc.reverse();
    let doc = joined(doc.into_iter().map(str::trim));
    numeric.then(|| Constant { name: name.to_owned(), value, doc, line: at + 1 })
}

/// Lines as one, without blank ones.
fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Of what follows a constant's name and colon: whether its type is numeric, and its value.
fn type_and_value(code: &str) -> Option<(bool, String)> {
    let (mut depth, mut value_at) = (0_usize, None);
    for (at, character) in code.char_indices() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            '=' if depth == 0 && value_at.is_none() => value_at = Some(at),
            ';' if depth == 0 => {
                let value_at = value_at?;
                let value = code[value_at + 1..at].trim().to_owned();
                return Some((is_numeric(&code[..value_at]), value));
            }
            _ => {}
        }
    }
    None
}

/// Whether a type is a number, or a tuple or array of one kind of number.
fn is_numeric(of_type: &str) -> bool {
    let of_type = of_type.trim().trim_start_matches(['(', '[']);
    NUMERIC.iter().any(|number| places(of_type, number).next() == Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, String, String)> {
        let constants = constants(text).into_iter();
        constants.map(|constant| (constant.name, constant.value, constant.doc)).collect()
    }

    fn expected(name: &str, value: &str, doc: &str) -> Vec<(String, String, String)> {
        vec![(name.into(), value.into(), doc.into())]
    }

    #[test]
    fn numbers_are_found_with_their_documentation() {
        for (text, name, value, doc) in [
            ("/// A.\nconst A: u64 = 1 << 2;", "A", "1 << 2", "A."),
            ("x!();\nconst A: u64 = 1; // why", "A", "1", ""),
            (
                "/// A\n/// b.\n#[x]\npub(super) const A: [i64; N] =\n    [1, 2];",
                "A",
                "[1, 2]",
                "A b.",
            ),
            ("  pub const A: (u64, u64) = (3, /* of */ 4);", "A", "(3,          4)", ""),
            ("const A: DiskTime = DiskTime::from_nanos(7);", "A", "DiskTime::from_nanos(7)", ""),
        ] {
            assert_eq!(of(text), expected(name, value, doc), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_number_is_left_out() {
        for text in [
            "const EMPTY: Self = Self { head: 0 };",
            "const ALL: [Self; 4] = [Self::Read];",
            "const NAME: &str = \"const A: u8 = 1;\";",
            "const _: () = assert!(true);",
            "pub const fn length(a: u64) -> u64 { a }",
            "// const A: u8 = 1;",
        ] {
            assert_eq!(of(text), [], "{text}");
        }
    }

    #[test]
    fn constants_for_tests_are_left_out_and_lines_counted() {
        let text = "#[cfg(test)]\nmod tests {\n    const A: u8 = 1;\n}\n/// B.\nconst B: u8 = 1;\n";
        let found = constants(text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].line), ("B", 6));
    }
}
