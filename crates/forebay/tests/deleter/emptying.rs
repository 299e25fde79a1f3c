//! Several processes that delete what is left in one trash.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use forebay::{Deleter, DeleterOptions, Deletion, DeletionState, Scheduler};

use crate::fixture::{Bed, MIB};

/// What a process of its own does, and in which directory: `empty DIR`, `delete DIR` or `fork DIR`.
const AS_PROCESS: &str = "FOREBAY_TEST_DELETER_PROCESS";
/// At how many moments processes are killed; 8 if it is not set.
const KILLS: &str = "FOREBAY_TEST_KILLS";
/// The rate of each process in bytes per second.
const RATE: u64 = 32 * MIB;
const FILES: u64 = 12;
/// Rounds until both of two processes have had a part.
const ROUNDS_MAX: u32 = 8;
/// Longer than it takes to delete what another process left, on any machine.
const EMPTY_MAX: Duration = Duration::from_secs(60);
const FILE: u64 = 4 * MIB;

/// A process with a deleter. It writes how many files and bytes are deleted, again and again.
struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// Starts one, which waits for [`Process::begin`].
    fn start(work: &str, dir: &Path) -> Self {
        let name = concat!(module_path!(), "::a_process_of_its_own").split_once("::").unwrap().1;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]);
        command.env(AS_PROCESS, format!("{work} {}", dir.display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self { child, lines };
        process.wait_for("ready");
        process
    }

    fn begin(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    }

    /// What it says after `word` at the beginning of a line.
    fn wait_for(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it has ended");
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
    }

    /// The files and bytes that it says last, once it has ended.
    fn deleted(&mut self) -> (u64, u64) {
        let lines = self.lines.by_ref().lines().map_while(Result::ok);
        lines.filter_map(|line| said(&line)).last().unwrap_or_default()
    }

    fn end(mut self) -> (u64, u64) {
        let deleted = self.deleted();
        assert!(self.child.wait().unwrap().success());
        deleted
    }

    fn kill(mut self) -> (u64, u64) {
        self.child.kill().unwrap();
        let deleted = self.deleted();
        self.child.wait().unwrap();
        deleted
    }
}

/// Reads `so far FILES BYTES.`; a line that was cut says nothing.
fn said(line: &str) -> Option<(u64, u64)> {
    let mut words = line.strip_prefix("so far ")?.strip_suffix('.')?.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[test]
fn a_process_of_its_own() {
    let Ok(what) = std::env::var(AS_PROCESS) else { return };
    let (work, dir) = what.split_once(' ').unwrap();
    let scheduler = Scheduler::builder().build().unwrap();
    // Long enough to be killed on the way.
    let rate = if work == "empty" { RATE } else { RATE / 8 };
    let options = DeleterOptions::new().always_in_steps(true).rate(rate).free_bytes_min(Some(0));
    let class = scheduler.add_class("deletes", 50).unwrap();
    let deleter = Deleter::new(&class, options).unwrap();
    let mut out = std::io::stdout();
    // What the test's name stands in is another line.
    writeln!(out, "\nready").unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let deletions: Vec<Deletion> = match work {
        "empty" | "fork" => vec![deleter.empty_trash(dir)],
        _ => deleter.delete_all((0..FILES).map(|n| Path::new(dir).join(n.to_string()))),
    };
    let mut tell = || {
        let done = deleter.snapshot();
        writeln!(out, "so far {} {}.", done.files, done.bytes).unwrap();
    };
    match work {
        "empty" => {}
        "fork" => {
            while deleter.snapshot().backlog_files == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            writeln!(std::io::stdout(), "child {}", fork_for_long()).unwrap();
        }
        _ => deletions.iter().for_each(|deletion| deletion.wait_removed().unwrap()),
    }
    while deletions.iter().any(|deletion| deletion.progress().state != DeletionState::Ended) {
        tell();
        std::thread::sleep(Duration::from_millis(1));
    }
    deletions.iter().for_each(|deletion| _ = deletion.wait().unwrap());
    deleter.drain().wait().unwrap();
    tell();
}

fn leave_files(bed: &Bed) {
    fs::create_dir_all(bed.path(".forebay-trash")).unwrap();
    for n in 0..FILES {
        bed.file(&format!(".forebay-trash/forebay-00000000000000ab-{n:x}"), FILE);
    }
}

#[test]
fn two_processes_that_empty_one_trash_share_it_and_each_keeps_its_rate() {
    // A process that the machine holds up for long finds nothing left to share.
    let shared = (0..ROUNDS_MAX).any(|_| {
        let bed = Bed::new();
        leave_files(&bed);
        let mut both = [(); 2].map(|()| Process::start("empty", bed.dir()));
        let began = Instant::now();
        both.iter_mut().for_each(Process::begin);
        let [one, other] = both.map(Process::end);
        let took = began.elapsed();
        assert_eq!((one.0 + other.0, bed.names()), (FILES, vec![]), "{one:?} {other:?}");
        if !bed.has_leases() {
            return true;
        }
        assert_eq!(one.1 + other.1, FILES * FILE, "{one:?} {other:?}");
        // Without pacing it takes a tenth of this; a loaded machine only makes it longer. The last
        // step of each is not waited for.
        let least = Duration::from_secs_f64((FILES * FILE) as f64 / (2 * RATE) as f64 * 0.7);
        assert!(took >= least, "{took:?}, at both rates {least:?} at least");
        one.0 > 0 && other.0 > 0
    });
    assert!(shared, "only one did anything, each time");
}

#[test]
fn files_of_a_killed_process_are_taken_over_and_none_is_freed_twice() {
    for moment in moments() {
        let bed = Bed::new();
        leave_files(&bed);
        let [mut killed, mut other] = [(); 2].map(|()| Process::start("empty", bed.dir()));
        [&mut killed, &mut other].into_iter().for_each(Process::begin);
        std::thread::sleep(moment);
        let (killed, other) = (killed.kill(), other.end());
        assert_eq!(bed.names(), [""; 0], "{moment:?}");
        let (files, bytes) = (killed.0 + other.0, killed.1 + other.1);
        assert!(files <= FILES && bytes <= FILES * FILE, "{moment:?}: {killed:?} {other:?}");
    }
}

#[test]
fn emptying_waits_for_a_deleter_that_is_there_and_takes_over_when_it_is_killed() {
    for moment in moments() {
        let bed = Bed::new();
        (0..FILES).for_each(|n| _ = bed.file(&n.to_string(), FILE));
        let mut owner = Process::start("delete", bed.dir());
        owner.begin();
        owner.wait_for("so far");
        let deleter = bed.deleter();
        let emptying = deleter.empty_trash(bed.dir());
        std::thread::sleep(moment);
        assert_eq!(deleter.snapshot().files, 0, "it deleted what is another's");
        assert_ne!(emptying.progress().state, DeletionState::Ended);
        let killed = owner.kill();
        let emptied = emptying.wait().unwrap();
        deleter.drain().wait().unwrap();
        assert_eq!(bed.names(), [""; 0], "{moment:?}");
        let files = emptied.files + killed.0;
        assert!(emptied.files > 0 && files <= FILES, "{moment:?}: {emptied:?} {killed:?}");
    }
}

/// Starts a child that does nothing but have the descriptors of this process; its number.
fn fork_for_long() -> i32 {
    // SAFETY: the child only makes system calls that any child may make.
    unsafe {
        match libc::fork() {
            0 => loop {
                libc::pause();
            },
            child => child,
        }
    }
}

/// It kept what the process had claimed for as long as it lived.
#[test]
fn files_of_a_killed_process_are_taken_over_although_its_forked_child_lives() {
    let bed = Bed::new();
    leave_files(&bed);
    let mut owner = Process::start("fork", bed.dir());
    owner.begin();
    let child = owner.wait_for("child ").parse().unwrap();
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
    let deleter = bed.deleter();
    let emptying = deleter.empty_trash(bed.dir());
    let began = Instant::now();
    while emptying.progress().state != DeletionState::Ended && began.elapsed() < EMPTY_MAX {
        std::thread::sleep(Duration::from_millis(10));
    }
    let state = emptying.progress().state;
    let child = rustix::process::Pid::from_raw(child).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    assert_eq!(state, DeletionState::Ended, "{:?}", emptying.progress());
    assert!(emptying.wait().unwrap().files > 0);
    deleter.drain().wait().unwrap();
    assert_eq!(bed.names(), [""; 0]);
}

/// From the beginning of a delete on, half of the time that it takes one process.
fn moments() -> impl Iterator<Item = Duration> {
    let kills = std::env::var(KILLS).ok().and_then(|kills| kills.parse().ok()).unwrap_or(8);
    let all = Duration::from_secs_f64((FILES * FILE) as f64 / RATE as f64 / 2.0);
    (0..kills).map(move |n: u32| all * n / kills)
}

/// Its first files were counted twice: in the backlog, and as deleted.
#[test]
fn emptying_again_waits_for_the_first_and_counts_nothing_twice() {
    let bed = Bed::new();
    leave_files(&bed);
    let options = DeleterOptions::new().always_in_steps(true).rate(RATE);
    let deleter = bed.deleter_with(options);
    let first = deleter.empty_trash(bed.dir());
    while first.progress().steps == 0 && bed.has_leases() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // By another path, too.
    let others = [bed.dir().to_owned(), bed.dir().join(".")].map(|dir| deleter.empty_trash(dir));
    others.iter().for_each(|other| _ = other.wait_removed());
    let waiting = deleter.snapshot();
    assert!(waiting.backlog_files <= FILES, "{waiting:?}");
    assert!(waiting.backlog_bytes <= FILES * FILE, "{waiting:?}");
    for other in others {
        let other = other.wait().unwrap();
        assert_eq!((other.files, other.bytes), (0, 0), "{other:?}");
        assert_eq!(first.progress().state, DeletionState::Ended);
    }
    assert_eq!(first.wait().unwrap().files, FILES);
    let done = deleter.snapshot();
    assert_eq!((done.files, done.backlog_files, done.backlog_bytes), (FILES, 0, 0), "{done:?}");
}
