//! Which of forebay's files a text is, for who named one in the place of another.

use crate::syntax_tree::SyntaxTree;

/// What the file is that has this tree, and who takes it; `None` where its keys do not tell.
/// `unknown` is a key that is foreign to the kind of file that was expected.
pub(crate) fn in_words(tree: &SyntaxTree<'_>, unknown: Option<&str>) -> Option<&'static str> {
    let kinds: [(&[&str], &str); 4] = [
        (&["[0].type", "[0].shard_info"], "this is a job file, which `bench` and `sim run` take"),
        (&["disks"], "these are properties of disks, which --properties takes"),
        (&["kind"], "this is a disk file, which --disk and --simulate take"),
        (&["jobs", "disk"], "this is a scenario, which `sim replay` takes"),
    ];
    let is_it = |keys: &[&str]| {
        keys.iter().all(|key| tree.has(key)) && unknown.is_none_or(|key| keys.contains(&key))
    };
    kinds.into_iter().find_map(|(keys, words)| is_it(keys).then_some(words))
}
