//! An interval as text for a terminal, and for programs.

use forebay_report::lines_within;
use forebay_report::verdict::{ClassFigures, Finding};
use serde_json::{Value, json};

use super::class_table::ClassTable;
use super::columns::{cut, printable, width};
use super::figures::{ClassInterval, DiskInterval, Interval};

/// The least width that words are broken for.
const WORDS_MIN: usize = 20;

/// Lines of at most this many columns, and of 20 at least.
pub(super) fn lines(name: &str, interval: &Interval, columns: usize) -> Vec<String> {
    let columns = columns.max(WORDS_MIN);
    let mut lines = Vec::new();
    let mut say = |text: &str| lines.extend(broken("", text, columns));
    say(&format!("forebay at {name}, {:.1} s", interval.seconds));
    if interval.restarted {
        say("the process was restarted: the figures begin there");
    }
    if interval.disks.is_empty() {
        say("the process schedules no disk now");
    }
    for disk in &interval.disks {
        lines.push(String::new());
        of_disk(&mut lines, disk, columns);
    }
    lines
}

fn of_disk(lines: &mut Vec<String>, disk: &DiskInterval, columns: usize) {
    let percent = |part: Option<f64>| part.map_or_else(|| String::from("-"), percent);
    let figures = &disk.figures;
    let target = match (disk.target, figures.target.as_ref().and_then(|target| target.holds)) {
        (None, _) => String::from("none"),
        (Some(target), Some(true)) => format!("{} holds", time(target)),
        (Some(target), Some(false)) => format!("{} MISSED", time(target)),
        (Some(target), None) => time(target),
    };
    let what = format!("in disk {} ({})", count(disk.in_disk), time(disk.in_disk_seconds));
    let room = columns.saturating_sub(what.len() + 2).max(WORDS_MIN);
    lines.extend(side_by_side("", &[cut(&printable(&disk.name), room), what], columns));
    let words = [
        format!("used {}", percent(figures.consumption)),
        format!("speed {}", percent(figures.speed)),
        format!("target {target}"),
        format!("window {}", disk.window.map_or_else(|| String::from("none"), time)),
    ];
    let stalls = (figures.stalls.count > 0).then(|| figures.stalls.to_string());
    let words: Vec<String> = words.into_iter().chain(stalls).collect();
    lines.extend(side_by_side("  ", &words, columns));
    // before the classes, which may be more than there is room for
    disk.findings.iter().for_each(|finding| of_finding(lines, finding, columns));
    of_classes(lines, disk, columns);
}

/// A line for each class that did or wanted something.
fn of_classes(lines: &mut Vec<String>, disk: &DiskInterval, columns: usize) {
    let table = ClassTable::new(columns);
    let all = || disk.figures.classes.iter().zip(&disk.classes);
    let is_idle = |(class, interval): &(&ClassFigures, &ClassInterval)| {
        class.waiting <= 0.0 && interval.operations <= 0.0 && interval.in_disk <= 0.0
    };
    let idle = all().filter(is_idle).count();
    if idle < disk.classes.len() {
        lines.push(table.head());
    }
    for (class, interval) in all().filter(|class| !is_idle(class)) {
        let ClassInterval { operations, bytes, in_disk, queue_longest, asked, got, why, .. } =
            *interval;
        let cells = [
            count(operations),
            megabytes(bytes / 1e6),
            percent(asked),
            percent(got),
            count(class.waiting),
            count(in_disk),
            time(class.queue_p99),
            time(queue_longest),
            time(class.disk_p99),
            why.to_owned(),
        ];
        lines.push(table.line(&printable(&class.name), &cells));
    }
    if idle > 0 {
        lines.extend(broken("", &format!("{idle} classes are idle"), columns));
    }
}

/// Words with two blanks between them, in as many lines as they need, with a mark before each.
fn side_by_side(mark: &str, words: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if width(line) + 2 + width(word) <= columns => {
                line.push_str("  ");
                line.push_str(word);
            }
            _ => lines.push(format!("{mark}{word}")),
        }
    }
    lines
}

fn of_finding(lines: &mut Vec<String>, finding: &Finding, columns: usize) {
    let mark = if finding.kind.warns() { "! " } else { "= " };
    lines.extend(broken(mark, &finding.to_string(), columns));
}

/// A text in as many lines as it needs, with a mark before the first.
pub(super) fn broken(mark: &str, text: &str, columns: usize) -> Vec<String> {
    lines_within(mark, &printable(text), columns)
}

fn percent(part: f64) -> String {
    format!("{:.0} %", (part * 100.0).min(999.0))
}

/// Megabytes, in at most eight characters.
fn megabytes(value: f64) -> String {
    if value.abs() < 99_999.0 { format!("{value:.1}") } else { count(value) }
}

/// A number of at most seven characters.
fn count(value: f64) -> String {
    match value {
        value if value < 0.0 => String::from("-"),
        value if value >= 1e9 => format!("{value:.1e}"),
        value if value >= 1e6 => format!("{:.1}M", value / 1e6),
        value if value >= 1e4 => format!("{:.1}k", value / 1e3),
        value => format!("{value:.0}"),
    }
}

/// A time of at most eight characters.
fn time(seconds: f64) -> String {
    match seconds {
        s if s <= 0.0 => String::from("-"),
        s if s < 0.001 => format!("{:.0} us", s * 1e6),
        s if s < 0.099 => format!("{:.2} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 9999.0 => format!("{s:.1} s"),
        s => format!("{s:.0e} s"),
    }
}

/// The same for programs: seconds, bytes, and parts of 1.
pub(super) fn json(name: &str, interval: &Interval) -> Value {
    let disks: Vec<Value> = interval.disks.iter().map(json_of_disk).collect();
    json!({
        "endpoint": name,
        "seconds": interval.seconds,
        "restarted": interval.restarted,
        "disks": disks,
    })
}

fn json_of_disk(disk: &DiskInterval) -> Value {
    let figures = &disk.figures;
    let class = |(figures, class): (&ClassFigures, &ClassInterval)| {
        json!({
            "class": figures.name,
            "shares": figures.shares,
            "operations_per_second": class.operations,
            "bytes_per_second": class.bytes,
            "asked": class.asked,
            "got": class.got,
            "waiting": figures.waiting,
            "in_disk": class.in_disk,
            "p99_queue_seconds": figures.queue_p99,
            "max_queue_seconds": class.queue_longest,
            "p99_disk_seconds": figures.disk_p99,
            "why_waiting": class.why,
        })
    };
    let classes: Vec<Value> = figures.classes.iter().zip(&disk.classes).map(class).collect();
    let finding = |finding: &Finding| {
        json!({
            "kind": finding.kind.name(),
            "class": finding.class,
            "what": finding.what,
            "remedy": finding.remedy,
        })
    };
    let blocked = &figures.blocked;
    json!({
        "disk": disk.name,
        "used": figures.consumption,
        "speed": figures.speed,
        "stops": {
            "count": figures.stalls.count,
            "seconds": figures.stalls.seconds,
            "longest_seconds": figures.stalls.longest_seconds,
            "overdue": figures.stalls.overdue,
        },
        "latency_target_seconds": disk.target,
        "latency_target_holds": figures.target.as_ref().and_then(|target| target.holds),
        "window_seconds": disk.window,
        "in_disk": disk.in_disk,
        "in_disk_seconds": disk.in_disk_seconds,
        "blocked_seconds": {
            "pace": blocked.pace,
            "window": blocked.window,
            "class_limit": blocked.class_limit,
            "ahead": blocked.ahead,
            "pace_disk_idle": blocked.pace_disk_idle,
        },
        "classes": classes,
        "findings": disk.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use forebay_report::verdict::{DiskFigures, findings};

    use super::*;

    fn interval(name: &str) -> Interval {
        let class = |name: &str| ClassFigures {
            name: name.into(),
            shares: 100,
            consumption: 0.4,
            waiting: 12_345.0,
            queue_p99: 123_456.0,
            disk_p99: 0.099_999,
            errors: 3,
            ..ClassFigures::default()
        };
        let figures = DiskFigures {
            seconds: 1.0,
            consumption: Some(0.8),
            classes: vec![class(name), class(&"long name ".repeat(20))],
            ..DiskFigures::default()
        };
        let of_class = ClassInterval {
            operations: 123_456_789.0,
            bytes: 1e22,
            in_disk: -1e300,
            why: "window",
            ..ClassInterval::default()
        };
        let disk = DiskInterval {
            name: name.into(),
            findings: findings(&figures),
            figures,
            classes: vec![of_class.clone(), of_class],
            ..DiskInterval::default()
        };
        Interval { seconds: 1.0, restarted: true, disks: vec![disk] }
    }

    #[test]
    fn every_line_fits_and_holds_no_command_for_a_terminal() {
        for columns in (0..100).chain([200]) {
            for line in lines("host:1", &interval("\x1b[2Ja\nb\u{1F600}"), columns) {
                // a word is as long as it is
                let longest = line.split(' ').map(width).max().unwrap_or_default() + 2;
                assert!(width(&line) <= columns.max(WORDS_MIN).max(longest), "{line}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }

    #[test]
    fn a_narrow_terminal_shows_all_words_of_what_is_wrong() {
        let lines = lines("host:1", &interval("reader"), 40);
        let begin = lines.iter().position(|line| line.starts_with("! ")).unwrap();
        let classes = lines.iter().position(|line| line.starts_with("class ")).unwrap();
        assert!(begin < classes, "{lines:?}");
        assert!(lines[begin..classes].iter().all(|line| width(line) <= 40), "{lines:?}");
    }

    #[test]
    fn a_text_is_broken_between_words() {
        let lines = broken("! ", "connection refused by a:1: is it there?", 20);
        assert_eq!(lines, ["! connection refused", "  by a:1: is it", "  there?"]);
    }

    #[test]
    fn a_thousand_idle_classes_are_one_line() {
        let mut interval = interval("reader");
        let disk = &mut interval.disks[0];
        let idle = |class: usize| ClassFigures { name: format!("{class}"), ..Default::default() };
        disk.figures.classes.extend((0..1000).map(idle));
        disk.classes.extend((0..1000).map(|_| ClassInterval::default()));
        let lines = lines("host:1", &interval, 80);
        assert!(lines.len() < 20, "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("1000 classes are idle")), "{lines:?}");
    }

    #[test]
    fn columns_stand_below_their_heads() {
        let lines = lines("host:1", &interval("reader"), 80);
        let head = lines.iter().find(|line| line.starts_with("class ")).unwrap();
        let row = lines.iter().find(|line| line.starts_with("reader   ")).unwrap();
        assert_eq!(head.find("why"), row.find("window"), "{row}");
        assert!(lines.iter().any(|line| line.starts_with("! ") && line.contains("failed")));
    }

    #[test]
    fn programs_get_the_names_as_they_are() {
        let value = json("host:1", &interval("a\nb"));
        assert_eq!(value["disks"][0]["classes"][0]["class"], "a\nb");
        assert_eq!(value["disks"][0]["findings"][0]["kind"], "errors");
        assert_eq!(value["restarted"], true);
    }
}
