//! Files that nobody wrote with good intent. Each is refused, and none brings the reader down.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use forebay_config::{ConfigError, MAX_FILE_BYTES, parse, read};
use proptest::prelude::*;
use rustix::fs::{FileType, Mode};
use serde::Deserialize;

/// A type that follows a file wherever it goes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only parsed")]
enum Anything {
    Number(u64),
    Text(String),
    List(Vec<Self>),
    Mapping(BTreeMap<String, Self>),
}

fn refused(text: &str) -> String {
    match parse::<Anything>("f", text) {
        Ok(_) => String::from("accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn nothing_and_too_much() {
    let empty = "f: the file is empty; expected YAML with at least one key";
    assert_eq!(refused(""), empty);
    assert_eq!(refused("\n  \n# a comment\n"), empty);
    assert_eq!(refused("---\n"), empty);
    assert_eq!(refused("null"), empty);
    assert_eq!(
        refused("a: 1\n---\nb: 2\n"),
        "f:2:1: a second document begins here; expected one; remove it and the `---`"
    );
    assert_eq!(
        refused(&"x".repeat(MAX_FILE_BYTES + 1)),
        "f: longer than 1048576 bytes, the most that is read; is this the right file?"
    );
    assert_eq!(
        refused(&"- 1\n".repeat(200_000)),
        "f: more than 50000 values; is this the right file?"
    );
}

#[test]
fn nesting() {
    let deep = "nested deeper than 32 levels; is this the right file?";
    let brackets = format!("{}{}", "[".repeat(40), "]".repeat(40));
    assert_eq!(refused(&brackets), format!("f:1:33: {deep}"));
    assert_eq!(refused(&"- ".repeat(40)), format!("f:1:65: {deep}"));
    assert!(refused(&"[".repeat(300)).ends_with(deep));
    for sign in ["[", "{", "- ", "? ", "{a: ", "[? ", "!t [", "&a ["] {
        for count in [100, 10_000, 200_000] {
            assert_ne!(refused(&sign.repeat(count)), "accepted", "{count} times {sign}");
        }
    }
}

#[test]
fn the_parser_says_what_is_wrong() {
    for (text, reason) in [
        ("- name: [\n", "unclosed bracket '['"),
        ("a: \"b\n", "quoted scalar"),
        ("a: b: c\n", "mapping values are not allowed"),
    ] {
        let said = refused(text);
        let (_, found) = said.split_once("not valid YAML: ").unwrap();
        assert!(!found.starts_with(';') && found.contains(reason), "{said}");
    }
}

#[test]
fn aliases() {
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (before, name) in ('a'..='h').zip('b'..='i') {
        let aliases = vec![format!("*{before}"); 9].join(", ");
        bomb.push_str(&format!("{name}: &{name} [{aliases}]\n"));
    }
    assert!(refused(&bomb).ends_with("the aliases stand for too many values; write them out"));

    assert!(refused("a: *b\n").starts_with("f:1:4: not valid YAML: "));
    assert_ne!(refused("a: &a [*a]\n"), "accepted");
    assert_eq!(
        refused("a: &a {x: 1}\nb:\n  <<: *a\n"),
        "f:3:3: b.<<: merge keys are not supported; write the keys out"
    );
}

#[test]
fn signs_that_are_no_text() {
    assert!(refused("a: b\0c\n").starts_with("f:1:5: not valid YAML: "));
    assert!(refused("a:\n\t- b\n").ends_with("by a tab, which YAML does not allow; use spaces"));
    assert!(refused("a: \"b\n").starts_with("f:2:1: not valid YAML: "));
    assert_eq!(refused("? [a, b]\n: c\n"), "f:1:3: a key that is no word; write `KEY: VALUE`");
    // what a file says is quoted in one line, and cannot steer a terminal
    let message = refused("\"a\\n\\e[31m\": ~\n");
    assert_eq!(
        message,
        "f:1:1: a\\n\\u{1b}[31m: there is no value (`~` and `null` mean none); write one, \
         or remove the key"
    );
}

#[test]
fn files_that_cannot_be_read() -> std::io::Result<()> {
    let missing = read(Path::new("/not/there")).map_err(|error| error.to_string());
    assert_eq!(
        missing,
        Err(String::from(
            "/not/there: cannot be read: No such file or directory (os error 2); check the path"
        ))
    );

    let message = |bytes: &[u8]| -> std::io::Result<Option<String>> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), bytes)?;
        Ok(read(file.path()).err().map(|ConfigError { message, .. }| message))
    };
    assert_eq!(message(b"a: 1")?, None);
    assert_eq!(
        message(b"a: \xff")?.as_deref(),
        Some("not UTF-8 text at byte 3; save the file as UTF-8")
    );
    assert_eq!(message(&vec![b'x'; MAX_FILE_BYTES])?, None);
    let too_long = "longer than 1048576 bytes, the most that is read; is this the right file?";
    assert_eq!(message(&vec![b'x'; MAX_FILE_BYTES + 1])?.as_deref(), Some(too_long));

    // endless ones are read as far as the bound
    let endless = read(Path::new("/dev/zero")).map_err(|error| error.message);
    assert!(endless.is_err_and(|message| message.starts_with("a binary file")));
    Ok(())
}

#[test]
fn a_pipe_is_read_if_a_program_writes_into_it_and_is_not_waited_for_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .unwrap();
    let said = read(&pipe).unwrap_err().message;
    let expected = "cannot be read: it is a pipe that no program writes into; check the path";
    assert_eq!(said, expected);
    // As for a process substitution of a shell, whose program writes later.
    let mut writer = File::options().read(true).write(true).open(&pipe).unwrap();
    let reader = {
        let pipe = pipe.clone();
        thread::spawn(move || read(&pipe))
    };
    thread::sleep(Duration::from_millis(50));
    writer.write_all(b"a: 1\n").unwrap();
    drop(writer);
    assert_eq!(reader.join().unwrap().as_deref(), Ok("a: 1\n"));
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = parse::<Anything>("f", &text);
    }

    #[test]
    fn text_made_of_yamls_signs_never_panics(
        parts in prop::collection::vec(
            prop_oneof![
                "[\\[\\]{},:?|>&*!%@`'\"#~-]{1,2}",
                Just(String::from("\n")),
                Just(String::from("  ")),
                Just(String::from(": ")),
                Just(String::from("- ")),
                Just(String::from("&a ")),
                Just(String::from("*a")),
                Just(String::from("<<")),
                "[a-c0-9.]{1,3}",
            ],
            0..60,
        ),
    ) {
        if let Err(error) = parse::<Anything>("f", &parts.concat()) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
