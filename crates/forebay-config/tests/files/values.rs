//! What the scalars, enums and aliases of a file are read as.

use std::collections::BTreeMap;

use forebay_config::{Located, Position, Source, parse};
use serde::Deserialize;
use serde::de::DeserializeOwned;

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let source = Source::new("f", text).with_optional(&["none"]);
    let mut read: BTreeMap<String, T> = source.parse().map_err(|error| error.message)?;
    read.pop_last().map(|(_, value)| value).ok_or_else(|| String::from("no key"))
}

#[test]
fn numbers_in_the_notations_of_yaml() {
    for (text, number) in [
        ("0", Some(0)),
        ("+5", Some(5)),
        ("0x1F", Some(31)),
        ("0o17", Some(15)),
        ("0b11", Some(3)),
        ("\" 5 \"", Some(5)),
        ("\"1_000\"", Some(1000)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("-0", None),
        ("010", None),
        ("+-5", None),
        ("0x", None),
        ("0x-1", None),
        ("\"1__0\"", None),
    ] {
        assert_eq!(read::<u64>(&format!("a: {text}\n")).ok(), number, "{text}");
    }
    assert_eq!(read::<i8>("a: -128\n"), Ok(-128));
    assert!(read::<i8>("a: -129\n").is_err());
    for (text, number) in
        [("1e3", Some(1e3)), (".Inf", Some(f64::INFINITY)), ("inf", None), ("1e999", None)]
    {
        assert_eq!(read::<f64>(&format!("a: {text}\n")).ok(), number, "{text}");
    }
}

/// A type that shows what a scalar looks like.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
enum Scalar {
    Bool(bool),
    Whole(u64),
    Negative(i64),
    Float(f64),
    Text(String),
}

#[test]
fn scalars_are_what_they_look_like_unless_they_are_quoted() {
    for (text, scalar) in [
        ("Yes", Scalar::Bool(true)),
        ("off", Scalar::Bool(false)),
        ("0x10", Scalar::Whole(16)),
        ("-4", Scalar::Negative(-4)),
        ("4.5", Scalar::Float(4.5)),
        ("nan", Scalar::Text(String::from("nan"))),
        ("'4'", Scalar::Text(String::from("4"))),
        ("!!str 4", Scalar::Text(String::from("4"))),
        ("!seconds 4", Scalar::Text(String::from("4"))),
        ("!!int 0x10", Scalar::Whole(16)),
        ("!!bool yes", Scalar::Bool(true)),
        ("!!float '4.5'", Scalar::Text(String::from("4.5"))),
    ] {
        assert_eq!(read::<Scalar>(&format!("a: {text}\n")), Ok(scalar), "{text}");
    }
    assert_eq!(read::<Scalar>("a: .inf\n"), Err("found `.inf`; expected a finite number".into()));
    let message = "found text in base64 (`!!binary`); write the text itself";
    assert_eq!(read::<String>("a: !!binary L3Zhcg==\n"), Err(message.into()));
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Policy {
    Off,
    Part(u64),
    Window { micros: u64 },
}

#[test]
fn enums_by_name_and_by_the_only_key_of_a_mapping() {
    assert_eq!(read("a: off\n"), Ok(Policy::Off));
    assert_eq!(read("a: {part: 4}\n"), Ok(Policy::Part(4)));
    assert_eq!(read("a:\n  window:\n    micros: 4\n"), Ok(Policy::Window { micros: 4 }));
    let refused = |text: &str| read::<Policy>(text).expect_err("refused");
    assert_eq!(refused("a: {ofs: 4}\n"), "unknown value `ofs`; did you mean `off`?");
    assert_eq!(refused("a: {off: 4}\n"), "unexpected value for unit enum variant");
    let mapping = "a mapping from this name to what belongs to it";
    assert_eq!(refused("a: part\n"), format!("found a name alone; expected {mapping}"));
    assert_eq!(refused("a: window\n"), format!("found a name alone; expected {mapping}"));
    assert_eq!(refused("a: {}\n"), "found a mapping; expected a name");
    let either = "a name, or a mapping from a name to what belongs to it";
    assert_eq!(refused("a: [off]\n"), format!("found a list; expected {either}"));
    let message = "expected end of mapping after enum variant value";
    assert_eq!(refused("a: {part: 4, off: 1}\n"), message);
}

#[test]
fn lists_of_a_length_and_values_that_are_not_there() {
    assert_eq!(read("a: [1, 2]\n"), Ok((1, 2)));
    let message = "found 3 values; expected a tuple of size 2";
    assert_eq!(read::<(u64, u64)>("a: [1, 2, 3]\n"), Err(message.into()));
    assert_eq!(read::<Option<u64>>("none:\n"), Ok(None));
    assert_eq!(read::<Option<u64>>("none: !!null ~\n"), Ok(None));
    assert_eq!(read::<Vec<u64>>("none: ~\n"), Ok(vec![]));
    assert_eq!(read::<String>("none:\n"), Err("null is not allowed here".into()));
}

#[test]
fn aliases_are_values_at_their_own_places() {
    let text = "a: &a [1, &b 2]\nb: *a\nc: [*b]\n";
    let lists: BTreeMap<String, Located<Vec<Located<u64>>>> = parse("f", text).unwrap();
    let at = |line, column| Position { line, column };
    let places = |key: &str| {
        let list = &lists[key];
        let items = list.value.iter().map(|item| (item.value, item.at));
        (list.at, items.collect::<Vec<_>>())
    };
    assert_eq!(places("b"), (at(2, 4), vec![(1, at(2, 4)), (2, at(2, 4))]));
    assert_eq!(places("c"), (at(3, 4), vec![(2, at(3, 5))]));

    // each alias is one level deeper than the one before
    let mut chain = String::from("a0: &a0 [x]\n");
    for link in 1..20_000 {
        chain.push_str(&format!("a{link}: &a{link} [*a{}]\n", link - 1));
    }
    let refused = parse::<BTreeMap<String, serde::de::IgnoredAny>>("f", &chain).unwrap_err();
    assert_eq!(refused.message, "the aliases stand for too many values; write them out");
}
