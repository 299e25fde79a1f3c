//! Any text parses or is refused in one line: into the units, and into a type that follows it
//! wherever it goes.

#![no_main]

use std::collections::BTreeMap;

use forebay_config::{ByteSize, Located, Quantity, Source, Span};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only parsed")]
struct Job {
    name: Located<String>,
    size: Option<Located<ByteSize>>,
    rate: Option<Located<Quantity>>,
    time: Option<Located<Span>>,
    shards: Option<Vec<u16>>,
    inner: Option<Located<Box<Job>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only parsed")]
enum Anything {
    Number(u64),
    Text(String),
    List(Vec<Self>),
    Mapping(BTreeMap<String, Self>),
}

fuzz_target!(|text: &str| {
    let source = Source::new("f", text);
    let _ = source.parse::<Anything>();
    match source.parse::<Vec<Located<Job>>>() {
        Ok(jobs) => {
            for job in jobs {
                let error = source.error(job.value.name.at, "wrong");
                assert!(error.key.is_some(), "{error}");
            }
        }
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains('\n'), "{error}");
        }
    }
});
