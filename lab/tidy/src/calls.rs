//! Which function calls which, as far as names tell.

use std::collections::{BTreeMap, BTreeSet};

use crate::functions::head;
use crate::sources::Source;
use crate::strip::{closing, without_tests};
use crate::words::{is_name, places};

/// The calls among the functions of a crate; what is for tests is left out.
///
/// A call is known by the name of the function. Names that several files define, and those that the
/// standard library has too, are left out: nobody can tell by the name what they call.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// By name: the file, and the names that the body calls.
    functions: BTreeMap<String, (String, BTreeSet<String>)>,
}

/// Names of methods that the standard library has too.
const COMMON: &[&str] = &[
    "add", "all", "any", "count", "end", "find", "first", "from", "get", "insert", "is_empty",
    "len", "max", "min", "new", "parse", "pop", "push", "remove", "set", "some", "take",
];

impl Calls {
    /// The calls in these files.
    pub fn new(sources: &[Source]) -> Self {
        let mut found: BTreeMap<String, Vec<(String, BTreeSet<String>)>> = BTreeMap::new();
        for source in sources.iter().filter(|source| !source.path.contains("tests")) {
            let code = without_tests(&source.code);
            for at in places(&code, "fn") {
                if let Some((name, calls)) = function(&code[at + 2..]) {
                    found.entry(name).or_default().push((source.path.clone(), calls));
                }
            }
        }
        let is_known = |name: &str, places: &[(String, BTreeSet<String>)]| {
            let files: BTreeSet<&String> = places.iter().map(|(file, _)| file).collect();
            files.len() == 1 && !COMMON.contains(&name)
        };
        let mut functions = BTreeMap::new();
        for (name, places) in found.into_iter().filter(|(name, places)| is_known(name, places)) {
            let file = places[0].0.clone();
            let calls = places.into_iter().flat_map(|(_, calls)| calls).collect();
            functions.insert(name, (file, calls));
        }
        Self { functions }
    }

    /// The files that the calls of a function lead to, its own first among them.
    pub fn files_from(&self, function: &str) -> BTreeSet<&str> {
        let (mut files, mut done, mut next) = (BTreeSet::new(), BTreeSet::new(), vec![function]);
        while let Some(name) = next.pop() {
            let Some((file, calls)) = self.functions.get(name).filter(|_| done.insert(name)) else {
                continue;
            };
            files.insert(file.as_str());
            next.extend(calls.iter().map(String::as_str));
        }
        files
    }

    /// Files whose calls lead back to them over others, each with a call that goes on.
    pub fn circles(&self) -> Vec<String> {
        let mut edges: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        for (file, calls) in self.functions.values() {
            for name in calls {
                match self.functions.get(name) {
                    Some((to, _)) if to != file => {
                        edges.entry(file).or_default().insert(to, name);
                    }
                    _ => {}
                }
            }
        }
        let reaches = |from: &str, goal: &str| {
            let (mut done, mut next) = (BTreeSet::new(), vec![from]);
            while let Some(file) = next.pop() {
                if file == goal {
                    return true;
                }
                if done.insert(file) {
                    next.extend(edges.get(file).into_iter().flat_map(BTreeMap::keys));
                }
            }
            false
        };
        let mut found = Vec::new();
        for (file, to) in &edges {
            for (other, name) in to {
                if reaches(other, file) {
                    found.push(format!("{file} calls {name} of {other}"));
                }
            }
        }
        found
    }
}

/// The name of a function and the names that its body calls, from what stands behind `fn`.
fn function(code: &str) -> Option<(String, BTreeSet<String>)> {
    let (name, open) = head(code)?;
    let body = &code[open..closing(code, open)];
    let before = |at: usize| {
        let reversed = body[..at].chars().rev().take_while(|&c| is_name(c));
        reversed.collect::<Vec<_>>().into_iter().rev().collect::<String>()
    };
    let calls = body.match_indices('(').map(|(at, _)| before(at)).filter(|name| !name.is_empty());
    Some((name, calls.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, code: &str) -> Source {
        let lines = code.lines().count();
        Source { path: path.into(), code: crate::strip::strip(code), lines }
    }

    #[test]
    fn circles_of_calls_are_found_and_common_names_are_not_calls() {
        let one = source("one.rs", "fn first_step() { second_step(); x.len() }  fn len() {}");
        let two = source("two.rs", "fn second_step() { self.third_step(1) }");
        let back = source("three.rs", "fn third_step() { first_step() }");
        let on = source("three.rs", "fn third_step() { other() } fn other() {}");
        assert_eq!(Calls::new(&[one.clone(), two.clone(), on]).circles(), [""; 0]);
        let calls = Calls::new(&[one, two, back]);
        assert_eq!(
            calls.circles(),
            [
                "one.rs calls second_step of two.rs",
                "three.rs calls first_step of one.rs",
                "two.rs calls third_step of three.rs"
            ]
        );
        assert_eq!(calls.files_from("second_step").len(), 3);
    }
}
