//! Which keys the mappings of a file may have, asked of the type that the file is read as.

use serde::de::DeserializeOwned;

use crate::deserializer::{Fault, from_tree};
use crate::quote::printable;
use crate::syntax_tree::{Node, SyntaxTree};
use crate::{known, nearest};

/// The deepest mapping that is asked for.
const DEPTH_MAX: usize = 6;

/// A key that no mapping of any file has.
const NO_KEY: &str = "?";

/// What a list counts as, among the keys that lead to a mapping.
const ITEM: &str = "[]";

/// The mappings of a type that refuse unknown keys.
pub(crate) struct Schema {
    mappings: Vec<Mapping>,
}

/// One mapping, or the mappings of one list.
struct Mapping {
    /// The keys that lead to it, and an [`ITEM`] for each list.
    steps: Vec<&'static str>,
    /// The keys that it may have.
    keys: Vec<&'static str>,
}

impl Schema {
    /// The mappings of a file that is read as `T`.
    pub(crate) fn of<T: DeserializeOwned>() -> Self {
        let mut schema = Self { mappings: Vec::new() };
        schema.add::<T>(&mut Vec::new());
        schema
    }

    /// Adds what is behind these steps, if that is a mapping or a list of mappings.
    fn add<T: DeserializeOwned>(&mut self, steps: &mut Vec<&'static str>) {
        let depth = steps.len();
        let keys = keys_at::<T>(steps).or_else(|| {
            steps.push(ITEM);
            keys_at::<T>(steps)
        });
        if let Some(keys) = keys.filter(|_| depth <= DEPTH_MAX) {
            self.mappings.push(Mapping { steps: steps.clone(), keys: keys.clone() });
            for key in keys {
                steps.push(key);
                self.add::<T>(steps);
                steps.pop();
            }
        }
        steps.truncate(depth);
    }

    /// What to do about the key `unknown` at `node`, whose mapping has the keys `here`.
    pub(crate) fn advice(
        &self,
        unknown: &str,
        here: &[&'static str],
        tree: &SyntaxTree<'_>,
        node: Option<&Node<'_>>,
    ) -> String {
        let steps = node.map(|node| tree.steps(node)).unwrap_or_default();
        // the last step is the key itself
        let at: Vec<&str> = steps.iter().rev().skip(1).rev().map(AsRef::as_ref).collect();
        let owner = |key: &str| {
            let others = self.mappings.iter().filter(|mapping| mapping.steps != at);
            let owners = others.filter(|mapping| mapping.keys.contains(&key));
            owners.min_by_key(|mapping| mapping.distance(&at))
        };
        if let Some(mapping) = owner(unknown) {
            return format!("it belongs {}", mapping.place(&at));
        }
        if nearest(unknown, here.iter().copied()).is_none() {
            let all = self.mappings.iter().flat_map(|mapping| &mapping.keys).copied();
            let owned = nearest(unknown, all).and_then(|key| Some((key, owner(key)?)));
            if let Some((key, mapping)) = owned {
                return format!("did you mean `{key}`, which belongs {}?", mapping.place(&at));
            }
        }
        known(unknown, here.iter().copied())
    }
}

impl Mapping {
    /// How many steps lead from the mapping behind the steps `at` to this one.
    fn distance(&self, at: &[&str]) -> usize {
        self.steps.len() + at.len() - 2 * self.common(at)
    }

    fn common(&self, at: &[&str]) -> usize {
        self.steps.iter().zip(at).take_while(|(mine, theirs)| mine == theirs).count()
    }

    /// Where this mapping is, for who looks at the one behind the steps `at`.
    fn place(&self, at: &[&str]) -> String {
        let is_key = |step: &&&str| **step != ITEM;
        let common = self.common(at);
        if common == self.steps.len()
            && let Some(inner) = at[common..].iter().find(is_key)
        {
            return format!("next to `{}`, not in it", printable(inner));
        }
        let within = if self.steps.last() == Some(&ITEM) { "in an entry of" } else { "under" };
        match self.steps.iter().rev().find(is_key) {
            Some(key) => format!("{within} `{key}`"),
            None => String::from("in an entry of a list (`- ` before each)"),
        }
    }
}

/// The keys of the mapping that is behind these steps in a `T`; `None` if none is there.
fn keys_at<T: DeserializeOwned>(steps: &[&'static str]) -> Option<Vec<&'static str>> {
    let (mut text, mut end) = (String::new(), String::new());
    for step in steps {
        let (open, close) = if *step == ITEM { ("[", ']') } else { ("{", '}') };
        text.push_str(open);
        if *step != ITEM {
            text.push_str(&format!("{step}: "));
        }
        end.insert(0, close);
    }
    let text = format!("{text}{{\"{NO_KEY}\": 0}}{end}");
    let tree = SyntaxTree::of("", &text, &[]).ok()?;
    match from_tree::<T>(&tree).err()?.fault() {
        Fault::UnknownField { field, expected } if field == NO_KEY => Some(expected.to_vec()),
        _ => None,
    }
}
