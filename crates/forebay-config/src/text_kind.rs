//! What a text is that is no YAML of forebay.

pub(crate) const CLOUD_INIT: &str = "this seems to be user data of cloud-init; write the content of one of \
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

/// What the text is, by its lines; `None` where they do not tell.
pub(crate) fn of(text: &str) -> Option<&'static str> {
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
