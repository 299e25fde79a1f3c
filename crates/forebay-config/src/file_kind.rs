//! Detects the kind of a file that was given instead of another.

use crate::syntax_tree::SyntaxTree;
use crate::text_kind::CLOUD_INIT;

/// The keys that tell a kind of file, and the words for it. A `*` stands for any key at the top.
const KINDS: [(&[&str], &str); 13] = [
    (&["[0].type", "[0].shard_info"], "this is a job file, which `bench` and `sim run` take"),
    (&["disks"], "these are properties of disks, which --properties takes"),
    (&["kind", "apiVersion"], MANIFEST),
    (&["kind"], "this is a disk file, which --disk and --simulate take"),
    (&["jobs", "disk"], "this is a scenario, which `sim replay` takes"),
    (&["[0].read_iops"], "this is a list of disks; write `disks:` in the line before it"),
    (&["*.read_iops"], TABLE),
    (&["*.disks"], TABLE),
    (&["fio version"], "these are results of fio, which `explore --from` takes"),
    (&["cluster_name"], PROGRAM),
    (&["redpanda"], PROGRAM),
    (&["services"], PROGRAM),
    (&["write_files"], CLOUD_INIT),
];

const MANIFEST: &str = "this seems to be a manifest of Kubernetes; write the text of one entry of \
                        its `data` into a file of its own, and name that";
const TABLE: &str = "this seems to be a table of the figures of several instance types; copy those \
                     of one into a file of its own, below `disks:` and `- mountpoint: DIR`";
const PROGRAM: &str = "this seems to be the configuration of another program; name the file that \
                       has the figures of the disks, or the jobs";

/// What the file is that has this tree, and what to do; `None` where its keys do not tell.
/// `unknown` is a key that is foreign to the kind of file that was expected.
pub(crate) fn of_tree(tree: &SyntaxTree<'_>, unknown: Option<&str>) -> Option<&'static str> {
    let is_it = |keys: &[&str]| {
        let is_there = |key: &&str| match key.strip_prefix("*.") {
            Some(key) => tree.has_second(key) && !tree.has("disks"),
            None => tree.has(key),
        };
        let is_foreign = |key: &str| keys.iter().any(|other| *other == key || other.contains('*'));
        keys.iter().all(is_there) && unknown.is_none_or(is_foreign)
    };
    KINDS.into_iter().find_map(|(keys, words)| is_it(keys).then_some(words))
}
