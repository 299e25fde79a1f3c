//! How long functions are.

use crate::strip::closing;
use crate::words::{is_name, places};

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Lines of it, without blank ones and comments.
    pub lines: usize,
}

/// The functions of `code`, which is stripped; one within another counts for both.
pub fn functions(code: &str) -> Vec<Function> {
    places(code, "fn").filter_map(|at| function(&code[at..])).collect()
}

fn function(code: &str) -> Option<Function> {
    let (name, open) = head(&code[2..])?;
    let lines = code[..closing(code, 2 + open)].lines();
    Some(Function { name, lines: lines.filter(|line| !line.trim().is_empty()).count() })
}

/// The name of a function and where its body begins, from what stands behind `fn`.
pub(crate) fn head(code: &str) -> Option<(String, usize)> {
    let name: String = code.trim_start().chars().take_while(|&c| is_name(c)).collect();
    let mut brackets = 0_i32;
    let body = code.char_indices().find(|&(_, character)| {
        brackets += i32::from(matches!(character, '(' | '['));
        brackets -= i32::from(matches!(character, ')' | ']'));
        brackets == 0 && matches!(character, '{' | ';')
    });
    let (open, _) = body.filter(|&(_, character)| character == '{' && !name.is_empty())?;
    Some((name, open))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strip::strip;

    #[test]
    fn lines_of_code_are_counted() {
        let code =
            "fn declared(a: [u8; 4]);\nfn f(a: fn(u8) -> u8) -> u8\n{\n\n  // why\n  { a }\n}\n";
        let expected = [Function { name: "f".into(), lines: 4 }];
        assert_eq!(functions(&strip(code)), expected);
    }
}
