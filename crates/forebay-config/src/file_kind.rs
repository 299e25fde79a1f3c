//! What a file is that was named in the place of another.

use crate::syntax_tree::SyntaxTree;

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
const CLOUD_INIT: &str = "this seems to be user data of cloud-init; write the content of one of \
                          its files into a file of its own, and name that";
const FIO: &str = "this seems to be a job file of fio; docs/migration.md says how to write its \
                   jobs for `forebay bench`";
const INI: &str = "this seems to be an INI or TOML file; expected YAML";
const IO_CONF: &str = "this seems to be a file of variables for a shell, which names the \
                       properties of the disks; name the file behind `--io-properties-file`, or \
                       measure the disk with `forebay tune DIR`";
const VARIABLES: &str = "this seems to be a file of variables for a shell; expected YAML";
const MARKUP: &str = "this seems to be HTML or XML; look whether a download was refused";

/// Keys of jobs of fio that hardly a job is without.
const FIO_KEYS: [&str; 14] = [
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "iodepth",
    "ioengine",
    "numjobs",
    "direct",
    "filename",
    "directory",
    "size",
    "runtime",
    "time_based",
    "group_reporting",
];

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

/// What a text is that is no YAML of forebay, by its lines; `None` where they do not tell.
pub(crate) fn of_text(text: &str) -> Option<&'static str> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut content = lines().filter(|line| !line.starts_with(['#', ';']));
    let first = content.next()?;
    if lines().next().is_some_and(|line| line.starts_with("#cloud-config")) {
        return Some(CLOUD_INIT);
    }
    if first.starts_with('<') {
        return Some(MARKUP);
    }
    let is_section = first.starts_with('[') && first.ends_with(']') && !first.contains(',');
    if is_section && content.clone().all(|line| !line.contains(": ")) {
        let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
        let is_of_fio = |line: &str| FIO_KEYS.contains(&key(line).as_str());
        return content.clone().next().map(|_| if content.any(is_of_fio) { FIO } else { INI });
    }
    let is_variable = |line: &str| {
        let line = line.strip_prefix("export ").unwrap_or(line);
        let name = line.split_once('=').map_or("", |(name, _)| name);
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(is_letter)
    };
    if is_variable(first) {
        let names_properties = ["--io-properties", "--max-io-requests", "--num-io-"];
        let is_io_conf = names_properties.iter().any(|option| text.contains(option));
        return Some(if is_io_conf { IO_CONF } else { VARIABLES });
    }
    None
}
