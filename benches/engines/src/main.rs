//! fjall, SlateDB and redb under three regimes: as they are, with forebay in their I/O and a policy
//! that lets all through, and scheduled. `docs/measure/engines` runs it.
//!
//! ```text
//! engines fill ENGINE BASE
//! engines run ENGINE BASE DIR MODE WRITERS SECONDS [IO-PROPERTIES]
//! ```
//!
//! `fill` makes the rows that are read. `run` makes DIR from them, loads and reads for a while, and
//! prints a line of JSON. ENGINE is `fjall`, `slatedb` or `redb`; MODE `without`, `control` or
//! `scheduled`.

mod copy;
mod engine;
mod load;
mod mode;
mod on_fjall;
mod on_redb;
mod on_slatedb;
mod outcome;

use std::env;
use std::path::Path;
use std::time::Duration;

use crate::engine::{Engine, Failure};
use crate::load::Load;
use crate::mode::Mode;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["fill", engine, base] => engine_of(engine)?.fill(Path::new(base)),
        ["run", engine, base, dir, mode, writers, seconds] => {
            run(engine, [base, dir], mode, [writers, seconds], None)
        }
        ["run", engine, base, dir, mode, writers, seconds, properties] => {
            run(engine, [base, dir], mode, [writers, seconds], Some(properties))
        }
        _ => Err("see the head of benches/engines/src/main.rs".into()),
    }
}

fn engine_of(name: &str) -> Result<Box<dyn Engine>, Failure> {
    match name {
        "fjall" => Ok(Box::new(on_fjall::Fjall)),
        "redb" => Ok(Box::new(on_redb::Redb)),
        "slatedb" => Ok(Box::new(on_slatedb::SlateDb)),
        _ => Err(format!("no engine is called {name}").into()),
    }
}

fn run(
    name: &str,
    [base, dir]: [&str; 2],
    mode: &str,
    [writers, seconds]: [&str; 2],
    properties: Option<&str>,
) -> Result<(), Failure> {
    let engine = engine_of(name)?;
    let (base, dir) = (Path::new(base), Path::new(dir));
    let writers = writers.parse()?;
    copy::copy(base, dir, &*engine, writers)?;
    let mode = Mode::new(mode, dir, properties.map(Path::new))?;
    let store = engine.open(dir, &mode, writers)?;
    let load = Load { writers, measured: Duration::from_secs(seconds.parse()?) };
    let outcome = load.run(&*store, &mode)?;
    let space = copy::space(dir)? as f64 / engine.live_bytes(writers) as f64;
    println!("{}", outcome.json(name, &mode, writers, space));
    store.close()
}
