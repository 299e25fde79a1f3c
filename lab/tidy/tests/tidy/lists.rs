//! The lists of every future and of every method that the library's tests go through: they have what
//! the sources have.

use std::collections::BTreeSet;
use std::fs;

use tidy::{Method, methods, public_types, without_tests};

use super::assert_none;

const TESTS: &str = "crates/forebay/tests/every";

/// Types without anything that a thread of the library, or another handle, has as well: a value, a
/// description, or what its caller alone owns. A child can do with its copy what it likes.
const VALUES: &[&str] = &[
    "AlignedBuf",
    "Backend",
    "BufResult",
    "Clock",
    "DeleteError",
    "DirectFile",
    "DeleterOptions",
    "DiskConfig",
    "DiskProperties",
    "DiskSnapshot",
    "Distribution",
    "FileExtent",
    "FileOptions",
    "IoQueues",
    "MeasuredDirection",
    "Operation",
    "PageCacheSupport",
    "Properties",
    "ReadBuf",
    "RegionChoice",
    "SchedulerBuilder",
    "Slice",
    "TargetBelowBase",
    "Traffic",
    "WriteBackError",
    "WriteBuf",
];

/// Traits of the standard library whose methods count as a type's own.
const TRAITS: &[&str] = &["BufRead", "Iterator", "Read", "Seek", "Write"];

/// The public types of the library, and all methods.
fn library() -> (BTreeSet<String>, Vec<Method>) {
    let folder = tidy::root().join("crates/forebay/src");
    let (mut types, mut all) = (BTreeSet::new(), Vec::new());
    for source in tidy::read(&folder).unwrap() {
        if source.path != "internals.rs" {
            let code = without_tests(&source.code);
            types.extend(public_types(&code));
            all.extend(methods(&code));
        }
    }
    all.retain(|method| types.contains(&method.of));
    (types, all)
}

fn is_of_a_trait(method: &Method, traits: &[&str]) -> bool {
    method.of_trait.as_deref().is_some_and(|of_trait| traits.contains(&of_trait))
}

/// The names in quotes in a file of the tests.
fn listed(file: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(tidy::root().join(TESTS).join(file)).unwrap();
    let list = text.split("] = &[").nth(1).unwrap();
    let names = list.split("(\"").skip(1).filter_map(|rest| rest.split_once("\", |"));
    names.map(|(name, _)| name.to_owned()).collect()
}

fn assert_same(found: &BTreeSet<String>, listed: &BTreeSet<String>, file: &str) {
    let missing = found.difference(listed).map(|name| format!("{name} is not in {TESTS}/{file}"));
    let stale = listed.difference(found).map(|name| format!("{name} is not in the sources"));
    assert_none(missing.chain(stale), "lists of every");
}

#[test]
fn every_public_future_is_tested() {
    let (_, methods) = library();
    let functions = methods.iter().filter(|method| method.is_public && method.is_future);
    let functions = functions.map(|method| format!("{}::{}", method.of, method.name));
    let types = methods.iter().filter(|method| is_of_a_trait(method, &["Future", "IntoFuture"]));
    let found: BTreeSet<String> = functions.chain(types.map(|method| method.of.clone())).collect();
    assert!(found.len() >= 11, "{found:?}");
    assert_same(&found, &listed("futures.rs"), "futures.rs");
}

#[test]
fn every_public_method_of_what_has_state_is_tested_in_a_child() {
    let (types, methods) = library();
    let stale = VALUES.iter().filter(|value| !types.contains(**value));
    assert_none(stale.map(|value| (*value).to_owned()), "types that are not in the sources");
    let has_state = |method: &&Method| {
        let of = method.of.as_str();
        !VALUES.contains(&of)
    };
    let found: BTreeSet<String> = methods
        .iter()
        .filter(has_state)
        .filter(|method| method.is_public || is_of_a_trait(method, TRAITS))
        .map(|method| format!("{}::{}", method.of, method.name))
        .collect();
    assert!(found.len() > 130, "{}", found.len());
    assert_same(&found, &listed("methods.rs"), "methods.rs");
}

#[test]
fn every_handle_is_tested_for_the_threads_that_it_may_be_used_in() {
    let (_, methods) = library();
    let text = fs::read_to_string(tidy::root().join(TESTS).join("auto_traits.rs")).unwrap();
    let is_listed = |name: &str| tidy::places(&text, name).next().is_some();
    let missing = methods
        .iter()
        .filter(|method| !VALUES.contains(&method.of.as_str()))
        .filter(|method| method.is_public || is_of_a_trait(method, &["Drop", "Future"]))
        .filter(|method| !is_listed(&method.of))
        .map(|method| format!("{} is not in {TESTS}/auto_traits.rs", method.of));
    assert_none(missing.collect::<BTreeSet<_>>(), "lists of every");
}

/// Where the standard library's lock is: in the library's own, and in the statics that a child has,
/// too, which are locked there.
const LOCKS: &[&str] = &[
    "accounting/watch.rs",
    "messages.rs",
    "registry/claims.rs",
    "sys/lock.rs",
    "sys/sync.rs",
    "sys/ticker.rs",
];

#[test]
fn state_is_behind_the_locks_of_the_library() {
    let folder = tidy::root().join("crates/forebay/src");
    let is_test = |path: &str| path.contains("tests");
    let sources = tidy::read(&folder).unwrap().into_iter().filter(|source| !is_test(&source.path));
    let others = sources.filter(|source| !LOCKS.contains(&source.path.as_str())).filter(|source| {
        let code = without_tests(&source.code);
        ["Mutex", "RwLock"].iter().any(|lock| tidy::places(&code, lock).next().is_some())
    });
    assert_none(others.map(|source| source.path), "files with locks that are not sys::lock's");
}

#[test]
fn wakers_are_woken_in_one_place() {
    let folder = tidy::root().join("crates/forebay/src");
    let keeps = |source: &tidy::Source| {
        let code = without_tests(&source.code);
        let clones = code.contains("waker().clone()");
        let keeps = clones || code.contains("Option<Waker>") || code.contains("Vec<Waker>");
        keeps && source.path != "sys/waker.rs"
    };
    let others = tidy::read(&folder).unwrap().into_iter().filter(keeps);
    assert_none(others.map(|source| source.path), "files that keep wakers without sys::waker");
}

#[test]
fn threads_of_the_library_block_signals() {
    let folder = tidy::root().join("crates/forebay/src");
    let starts = |source: &tidy::Source| {
        let code = without_tests(&source.code);
        code.contains("Builder::new().name(") && !code.contains("signals::blocked(")
    };
    let others = tidy::read(&folder).unwrap().into_iter().filter(starts);
    assert_none(others.map(|source| source.path), "files that start threads without sys::signals");
}
