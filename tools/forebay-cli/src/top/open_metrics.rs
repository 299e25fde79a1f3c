//! Reads the OpenMetrics text of any process.

use std::collections::HashMap;

/// The names of this project's metrics begin so.
const PREFIX: &str = "forebay_";
/// So do those of queues, which are most.
const QUEUE_PREFIX: &str = "io_queue_";

/// Old and new names of metrics. A process of the previous version serves the old ones.
const RENAMED: [(&str, &str); 12] = [
    ("io_queue_bridged_total", "io_queue_absence_bypasses_total"),
    ("io_queue_held_long", "io_queue_stuck_requests"),
    ("io_queue_held_long_seconds", "io_queue_stuck_seconds"),
    ("io_queue_late_turn_sec_total", "io_queue_late_turn_seconds_total"),
    ("io_queue_limited_time_sec_total", "io_queue_limited_seconds_total"),
    ("io_queue_past_window_total", "io_queue_window_bypasses_total"),
    ("io_queue_stop_max_seconds", "io_queue_stall_max_seconds"),
    ("io_queue_stop_overdue_total", "io_queue_stall_overdue_total"),
    ("io_queue_stopped_sec_total", "io_queue_stalled_seconds_total"),
    ("io_queue_stopped_seconds_total", "io_queue_stalled_seconds_total"),
    ("io_queue_stops_total", "io_queue_stalls_total"),
    ("io_queue_waited_sec_total", "io_queue_waited_seconds_total"),
];

/// What each class has, whatever it did.
const OF_EACH_CLASS: &str = "shares";

/// The metrics of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scrape {
    /// By name, of the process.
    pub(crate) values: HashMap<String, f64>,
    /// In the order of the text.
    pub(crate) disks: Vec<DiskSamples>,
    places: HashMap<String, usize>,
}

/// Those of a disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DiskSamples {
    pub(crate) name: String,
    /// By name, and by `name/label` where it is a part.
    pub(crate) values: HashMap<String, f64>,
    /// In the order of the text.
    pub(crate) classes: Vec<ClassSamples>,
    places: HashMap<String, usize>,
}

/// Those of a class on a disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClassSamples {
    pub(crate) name: String,
    /// By name.
    pub(crate) values: HashMap<String, f64>,
    /// Of histograms by name: how many were at most so large.
    pub(crate) buckets: HashMap<String, Vec<(f64, f64)>>,
}

/// One line: a name without the prefix, labels, and a value.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

/// The metrics in `text`; or what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Scrape, String> {
    let mut scrape = Scrape::default();
    let (mut ours, mut ended) = (false, false);
    for (number, line) in text.lines().enumerate() {
        ended = line == "# EOF";
        if ended {
            break;
        }
        let Some(line) = line.strip_prefix(PREFIX) else { continue };
        let sample =
            sample(line).ok_or_else(|| format!("line {} of its metrics is invalid", number + 1))?;
        ours = true;
        scrape.add(sample);
    }
    match (ours, ended) {
        (true, true) => match scrape.unknown() {
            false => Ok(scrape),
            true => Err(String::from(
                "its metrics are of an incompatible version of forebay: its classes have no shares",
            )),
        },
        (true, false) => Err(String::from("its metrics are cut off")),
        (false, _) => Err(String::from("its answer does not have metrics of forebay")),
    }
}

/// A line without the prefix of its name.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let renamed = RENAMED.iter().find(|(old, _)| *old == name);
    let name = renamed.map_or(name, |(_, new)| new);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value = rest.split(' ').find(|word| !word.is_empty())?.parse().ok()?;
    Some(Sample { name, labels, value })
}

/// Labels up to the brace that closes them, and what follows it.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        labels.push((name, value));
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
}

/// A value up to the quote that closes it, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// The label of which each value has a figure of its own.
fn part_label(name: &str) -> Option<&'static str> {
    match name {
        "blocked_seconds_total" => Some("reason"),
        "engines" => Some("backend"),
        "retries_total" => Some("direction"),
        "device_member_in_flight_seconds_total" => Some("member"),
        name if name.starts_with("device_") => Some("direction"),
        _ => None,
    }
}

impl Scrape {
    fn add(&mut self, sample: Sample<'_>) {
        let Sample { name, mut labels, value } = sample;
        let name = name.strip_prefix(QUEUE_PREFIX).unwrap_or(name);
        let mut take = |label| {
            let at = labels.iter().position(|(name, _)| *name == label)?;
            Some(labels.swap_remove(at).1)
        };
        let (disk, class, bound) = (take("mountpoint"), take("class"), take("le"));
        // all others are of the program, such as the run of `bench`, which shows one at a time
        let key = match part_label(name).and_then(take) {
            Some(part) => format!("{name}/{part}"),
            None => name.to_owned(),
        };
        match (disk, class) {
            (Some(disk), Some(class)) => {
                self.disk(disk).class(class).add(key, bound.as_deref(), value);
            }
            (Some(disk), None) => _ = self.disk(disk).values.insert(key, value),
            (None, _) => _ = self.values.insert(key, value),
        }
    }

    fn disk(&mut self, name: String) -> &mut DiskSamples {
        let place = *self.places.entry(name).or_insert_with_key(|name| {
            self.disks.push(DiskSamples { name: name.clone(), ..DiskSamples::default() });
            self.disks.len() - 1
        });
        &mut self.disks[place]
    }

    /// Whether there are classes, and none has what each has.
    fn unknown(&self) -> bool {
        let mut classes = self.disks.iter().flat_map(|disk| &disk.classes).peekable();
        let is_known = |class: &ClassSamples| class.values.contains_key(OF_EACH_CLASS);
        classes.peek().is_some() && !classes.any(is_known)
    }

    /// Those of the disk of that name.
    pub(crate) fn find(&self, name: &str) -> Option<&DiskSamples> {
        self.disks.get(*self.places.get(name)?)
    }
}

impl DiskSamples {
    fn class(&mut self, name: String) -> &mut ClassSamples {
        let place = *self.places.entry(name).or_insert_with_key(|name| {
            self.classes.push(ClassSamples { name: name.clone(), ..ClassSamples::default() });
            self.classes.len() - 1
        });
        &mut self.classes[place]
    }

    /// Those of the class of that name.
    pub(crate) fn find(&self, name: &str) -> Option<&ClassSamples> {
        self.classes.get(*self.places.get(name)?)
    }
}

impl ClassSamples {
    fn add(&mut self, name: String, bound: Option<&str>, value: f64) {
        match (name.strip_suffix("_bucket"), bound.and_then(|bound| bound.parse().ok())) {
            (Some(histogram), Some(bound)) => {
                self.buckets.entry(histogram.to_owned()).or_default().push((bound, value));
            }
            _ => _ = self.values.insert(name, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn metrics_are_found_by_disk_and_class() {
        let text = "# HELP forebay_io_queue_shares Shares\n\
                    forebay_bugs_total 2\n\
                    forebay_io_queue_shares{mountpoint=\"/a \\\"b\\\"\\n\\\\\",class=\"c\"} 1e2 5\n\
                    forebay_io_queue_wait_bucket{le=\"+Inf\",mountpoint=\"d\",class=\"c\"} 7 # {}\n\
                    forebay_device_done_bytes_total{mountpoint=\"d\",device=\"x\",direction=\"read\"} 9\n\
                    forebay_io_queue_limit{run=\"scheduled\",mountpoint=\"d\",class=\"c\"} 3\n\
                    forebay_io_queue_engines{pod=\"p\", backend=\"threads\", mountpoint=\"d\"} 2\n\
                    other 1\n# EOF\n";
        let scrape = parse(text).unwrap();
        assert_eq!(scrape.values["bugs_total"], 2.0);
        let odd = scrape.find("/a \"b\"\n\\").unwrap();
        assert_eq!(odd.find("c").unwrap().values["shares"], 100.0);
        let disk = scrape.find("d").unwrap();
        assert_eq!(disk.values["device_done_bytes_total/read"], 9.0);
        // labels that others put alongside it are not its part
        assert_eq!(disk.values["engines/threads"], 2.0);
        assert_eq!(disk.find("c").unwrap().buckets["wait"], [(f64::INFINITY, 7.0)]);
        assert_eq!(disk.find("c").unwrap().values["limit"], 3.0);
    }

    #[test]
    fn foreign_metrics_are_reported() {
        for (text, words) in [
            ("", "does not have metrics of forebay"),
            ("<html>", "does not have metrics of forebay"),
            ("node_load1 0.5\n# EOF\n", "does not have metrics of forebay"),
            ("forebay_bugs_total 0\n", "are cut off"),
            ("\nforebay_x{a=\"b\n# EOF", "line 2"),
            ("forebay_x{a} 1\n# EOF", "line 1"),
            ("forebay_x one\n# EOF", "line 1"),
            ("forebay_queue_ops{mountpoint=\"d\",class=\"c\"} 7\n# EOF", "an incompatible version"),
            ("forebay_x\n# EOF", "line 1"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "(forebay_|[a-z{}\"=,\\\\ 0-9\n#]|\\PC){0,200}") {
            let _ = parse(&text);
            let _ = parse(&format!("forebay_{text}\n# EOF"));
        }

        #[test]
        fn written_bytes_are_read(disk in "\\PC*", class in "[^\r]*", value in 0u32..) {
            let escaped = |text: &str| {
                text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
            };
            let text = format!(
                "forebay_io_queue_shares{{mountpoint=\"{}\",class=\"{}\"}} {value}\n# EOF\n",
                escaped(&disk), escaped(&class)
            );
            let scrape = parse(&text).unwrap();
            let found = scrape.find(&disk).unwrap().find(&class).unwrap().values["shares"];
            prop_assert_eq!(found, f64::from(value));
        }
    }
}
