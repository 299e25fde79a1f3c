//! What errors show where a `main` returns them: what `Debug` makes of them.

use super::{assert_none, each_crate};

/// The traits in the last `derive` before the type `name`.
fn derived<'a>(code: &'a str, name: &str) -> &'a str {
    let declared = |kind: &str| code.find(&format!("{kind} {name}"));
    let end = declared("enum").or_else(|| declared("struct")).unwrap_or(0);
    // what stands between an attribute and its type belongs to it
    let before = &code[..end];
    let begin = before.rfind("\n}\n").unwrap_or(0);
    let attributes = before[begin..].rsplit_once("#[derive(").map(|(_, after)| after);
    attributes.and_then(|after| after.split(')').next()).unwrap_or_default()
}

/// The word that `text` begins with.
fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// The types that are errors.
fn errors(code: &str) -> Vec<&str> {
    let implemented = code.split("Error for ").skip(1).map(first_word);
    let derived = code.split("Error)]").skip(1).filter_map(|rest| {
        let after = |kind: &&str| Some(rest.find(*kind)? + kind.len());
        Some(first_word(&rest[["enum ", "struct "].iter().filter_map(after).min()?..]))
    });
    implemented.chain(derived).collect()
}

#[test]
fn errors_read_as_sentences_in_debug_too() {
    let (mut found, mut seen) = (Vec::new(), 0);
    each_crate(|crate_name, folder| {
        for source in tidy::read(&folder.join("src")).unwrap() {
            for error in errors(&source.code) {
                seen += 1;
                if derived(&source.code, error).contains("Debug") {
                    found.push(format!("{crate_name} {} {error}", source.path));
                }
            }
        }
    });
    assert!(seen > 20, "{seen}");
    assert_none(found, "errors that show what only their authors can read: debug_as_display!");
}
