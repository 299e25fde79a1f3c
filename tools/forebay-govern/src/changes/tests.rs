//! A machine whose kernel is a map of files, on which a governor is killed after each of its writes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::rc::Rc;

use super::*;

const QOS: &str = "/cg/io.cost.qos";
const MODEL: &str = "/cg/io.cost.model";
const WBT: &str = "/sys/block/sda/queue/wbt_lat_usec";
const SCHEDULER: &str = "/sys/block/sda/queue/scheduler";
const TAGS: &str = "/sys/block/sda/queue/nr_requests";
const CONTROL: &str = "/cg/cgroup.subtree_control";
const WEIGHT: &str = "/cg/db/io.weight";
/// A cgroup in which others have no weights yet.
const SLICE: &str = "/cg/slice";
const OURS: &str = "/cg/forebay-govern-sda";

#[derive(Clone, Default)]
struct Fake {
    files: Rc<RefCell<BTreeMap<PathBuf, String>>>,
    /// The number of writes until the governor is killed.
    left: Rc<Cell<Option<u32>>>,
}

impl Fake {
    fn new(qos: &str, weight: &str) -> Self {
        let fake = Self::default();
        for (path, text) in [
            (BOOT, "boot 1\n"),
            ("/sys/block/sda/diskseq", "4\n"),
            ("/sys/block/sda/stat", "1 2 3\n"),
            (QOS, qos),
            (MODEL, ""),
            (WBT, "2000\n"),
            (SCHEDULER, "none [mq-deadline] bfq\n"),
            (TAGS, "256\n"),
            (CONTROL, "cpu memory\n"),
            (WEIGHT, weight),
            ("/cg/db/cgroup.procs", "41\n"),
            ("/proc/41/stat", "41 (a) b) S 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 777 0\n"),
        ] {
            fake.put(Path::new(path), text);
        }
        fake
    }

    fn put(&self, path: &Path, text: impl Into<String>) {
        self.files.borrow_mut().insert(path.into(), text.into());
    }

    fn get(&self, path: &str) -> String {
        self.files.borrow()[Path::new(path)].clone()
    }

    /// All files, without the figures that the kernel keeps of a disk after io.cost was on.
    fn all(&self) -> BTreeMap<PathBuf, String> {
        let mut all = self.files.borrow().clone();
        for path in [QOS, MODEL] {
            let text = all[Path::new(path)]
                .replace("8:0 enable=0 ctrl=auto\n", "")
                .replace("8:0 ctrl=auto\n", "");
            all.insert(path.into(), text);
        }
        all
    }

    /// Counts a write. Fails if the governor was killed before.
    fn step(&self) -> io::Result<()> {
        match self.left.get() {
            Some(0) => Err(io::Error::other("killed")),
            left => {
                self.left.set(left.map(|left| left - 1));
                Ok(())
            }
        }
    }
}

/// The file `before`, with the line of the disk replaced by `text`.
fn with_line(before: &str, text: &str) -> String {
    let number = text.split(' ').next().unwrap();
    let others = before.lines().filter(|line| line.split(' ').next() != Some(number));
    let own = (!text.ends_with(" default")).then_some(text);
    others.chain(own).map(|line| format!("{line}\n")).collect()
}

impl Files for Fake {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.files.borrow().get(path).cloned().ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        self.step()?;
        let before = self.read(path)?;
        let name = path.file_name().unwrap().to_str().unwrap();
        let new = match name {
            "io.cost.qos" | "io.cost.model" | "io.weight" => with_line(&before, text),
            "scheduler" => {
                self.put(Path::new(TAGS), "128\n");
                before.replace(['[', ']'], "").replace(text, &format!("[{text}]"))
            }
            "cgroup.subtree_control" if path.starts_with(SLICE) => {
                let weight = Path::new(SLICE).join("pg/io.weight");
                if text == "+io" {
                    self.put(&weight, "default 100\n");
                } else {
                    self.files.borrow_mut().remove(&weight);
                }
                text.replace('+', "").replace("-io", "") + "\n"
            }
            "cgroup.subtree_control" => match text {
                "+io" => format!("io {}", before.replace("io ", "")),
                _ => before.replace("io ", ""),
            },
            "cgroup.procs" => {
                let mut files = self.files.borrow_mut();
                for (path, text) in files.iter_mut() {
                    if path.ends_with("cgroup.procs") {
                        *text = text.replace("41\n", "");
                    }
                }
                files.entry(path.into()).or_default().push_str(&format!("{text}\n"));
                return Ok(());
            }
            _ => format!("{text}\n"),
        };
        if name == "io.cost.qos" {
            self.put(Path::new(WBT), if text.contains("enable=1") { "0\n" } else { "2000\n" });
        }
        self.put(path, new);
        Ok(())
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        for (file, text) in [("cgroup.procs", ""), ("io.weight", "default 100\n")] {
            self.put(&path.join(file), text);
        }
        Ok(())
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        if self.read(&path.join("cgroup.procs"))?.contains("41") {
            return Err(rustix::io::Errno::BUSY.into());
        }
        self.files.borrow_mut().retain(|file, _| !file.starts_with(path));
        Ok(())
    }

    fn remove_load(&self, path: &Path) -> io::Result<()> {
        self.remove_directory(path)
    }
}

/// All changes of a governor, including the scheduler.
fn govern(changes: &mut Changes<Fake>) -> Result<(), GovernError> {
    let path = Path::new;
    changes.set(Kind::Controller, path(CONTROL), "+io")?;
    for (kind, file) in [(Kind::Whole, WBT), (Kind::Whole, TAGS), (Kind::Chosen, SCHEDULER)] {
        changes.keep(kind, path(file))?;
    }
    changes.set(Kind::Chosen, path(SCHEDULER), "bfq")?;
    changes.set(Kind::Whole, path(TAGS), "4")?;
    changes.set(Kind::Model, path(MODEL), "8:0 ctrl=user model=linear rbps=1")?;
    changes.set(Kind::Qos, path(QOS), "8:0 enable=1 ctrl=user min=80.00")?;
    changes.set(Kind::Qos, path(QOS), "8:0 enable=1 ctrl=user min=70.00")?;
    changes.set(Kind::Weight, path(WEIGHT), "8:0 1000")?;
    changes.set(Kind::Weight, path("/cg/gone/io.weight"), "8:0 50").err();
    changes.make(path(OURS), false)?;
    changes.set(Kind::Weight, &path(OURS).join("io.weight"), "8:0 50")?;
    changes.move_process((41, 777), path("/cg/db"), path(OURS))
}

fn begin(fake: &Fake, dir: &Path) -> Result<Changes<Fake>, GovernError> {
    begin_and_say(fake, dir, &mut |_| ())
}

fn begin_and_say(
    fake: &Fake,
    dir: &Path,
    say: &mut dyn FnMut(String),
) -> Result<Changes<Fake>, GovernError> {
    Changes::begin(fake.clone(), StateFile::lock(dir, "sda").unwrap(), "sda", "8:0", say)
}

const USERS: &str = "8:0 enable=1 ctrl=user min=90.00\n8:16 enable=0 ctrl=auto\n";

#[test]
fn after_a_kill_at_any_write_everything_is_restored() {
    for (qos, weight) in [("", "default 100\n"), (USERS, "default 100\n8:0 300\n8:16 7\n")] {
        for writes in 0..30 {
            let fake = Fake::new(qos, weight);
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path().join("forebay");
            let before = fake.all();
            fake.left.set(Some(writes));
            let ended = begin(&fake, &dir).and_then(|mut changes| govern(&mut changes));
            assert_eq!(ended.is_ok(), writes >= 11, "{writes}");
            assert!(writes == 0 || fake.all() != before, "{writes}");
            // If a restore is killed, the next one completes it.
            fake.left.set(Some(writes / 3));
            let _ = put_back(&fake, &StateFile::lock(&dir, "sda").unwrap());
            fake.left.set(None);
            begin(&fake, &dir).unwrap();
            let sorted = |all: BTreeMap<PathBuf, String>| -> Vec<(PathBuf, Vec<String>)> {
                let lines = |text: String| {
                    let mut lines: Vec<String> = text.lines().map(Into::into).collect();
                    lines.sort();
                    lines
                };
                all.into_iter().map(|(path, text)| (path, lines(text))).collect()
            };
            assert_eq!(sorted(fake.all()), sorted(before), "{writes}");
            assert!(!dir.join("sda.json").exists());
        }
    }
}

#[test]
fn the_next_governor_names_what_a_killed_one_has_left() {
    let fake = Fake::new("", "default 100\n");
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("forebay");
    let mut said = Vec::new();
    let mut changes = begin_and_say(&fake, &dir, &mut |line| said.push(line)).unwrap();
    changes.make(Path::new(OURS), true).unwrap();
    changes.set(Kind::Qos, Path::new(QOS), "8:0 enable=1 ctrl=user min=80.00").unwrap();
    drop(changes);
    begin_and_say(&fake, &dir, &mut |line| said.push(line)).unwrap();
    begin_and_say(&fake, &dir, &mut |line| said.push(line)).unwrap();
    assert_eq!(said, [format!("a governor of sda was killed; put back: {QOS}, {OURS}")]);
}

#[test]
fn a_cgroup_that_another_program_has_made_stays_with_its_processes() {
    for is_load in [true, false] {
        let fake = Fake::new("", "default 100\n");
        let dir = tempfile::tempdir().unwrap();
        let mut changes = begin(&fake, &dir.path().join("forebay")).unwrap();
        let procs = Path::new(OURS).join("cgroup.procs");
        fake.put(&procs, "70\n");
        changes.make(Path::new(OURS), is_load).unwrap();
        changes.put_back().unwrap();
        assert_eq!(fake.files.borrow().get(&procs).map(String::as_str), Some("70\n"));
    }
}

#[test]
fn a_new_disk_with_the_same_name_and_a_new_process_with_the_same_pid_are_left_alone() {
    let fake = Fake::new("", "default 100\n");
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("forebay");
    let mut changes = begin(&fake, &dir).unwrap();
    govern(&mut changes).unwrap();
    assert!(changes.has_disk());
    let qos = fake.get(QOS);
    fake.put(Path::new("/sys/block/sda/diskseq"), "5\n");
    assert!(!changes.has_disk());
    drop(changes);
    let stat = fake.get("/proc/41/stat").replace("777", "778");
    fake.put(Path::new("/proc/41/stat"), stat);
    assert!(put_back(&fake, &StateFile::lock(&dir, "sda").unwrap()).unwrap().is_some());
    assert_eq!((fake.get(QOS), fake.get(TAGS).as_str()), (qos, "4\n"));
    assert!(!fake.files.borrow().contains_key(&Path::new(OURS).join("io.weight")));
    assert_eq!(fake.get(CONTROL), "cpu memory\n");
    assert_eq!(put_back(&fake, &StateFile::lock(&dir, "sda").unwrap()), Ok(None));
}

#[test]
fn processes_whose_cgroup_has_gone_come_to_the_one_above() {
    let fake = Fake::new("", "default 100\n");
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("forebay");
    govern(&mut begin(&fake, &dir).unwrap()).unwrap();
    // as systemd removes that of a service that has no process in it
    fake.files.borrow_mut().retain(|path, _| !path.starts_with("/cg/db"));
    fake.put(Path::new("/cg/cgroup.procs"), "");
    put_back(&fake, &StateFile::lock(&dir, "sda").unwrap()).unwrap();
    assert_eq!(fake.get("/cg/cgroup.procs"), "41\n");
    assert!(!fake.files.borrow().contains_key(&Path::new(OURS).join("cgroup.procs")));
}

#[test]
fn what_the_governor_of_another_disk_needs_stays_until_that_one_ends() {
    for first_ends_first in [true, false] {
        let fake = Fake::new("", "default 100\n");
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("forebay");
        let [one, other] = [("sda", "8:0"), ("sdb", "8:16")].map(|(disk, number)| {
            let state = StateFile::lock(&dir, disk).unwrap();
            let mut changes =
                Changes::begin(fake.clone(), state, disk, number, &mut |_| ()).unwrap();
            changes.set(Kind::Controller, Path::new(CONTROL), "+io").unwrap();
            changes
        });
        let (first, last) = if first_ends_first { (one, other) } else { (other, one) };
        first.put_back().unwrap();
        assert_eq!(fake.get(CONTROL), "io cpu memory\n");
        last.put_back().unwrap();
        assert_eq!(fake.get(CONTROL), "cpu memory\n");
    }
}

#[test]
fn a_cgroup_within_others_gets_its_weight_through_all_of_them() {
    let fake = Fake::new("", "default 100\n");
    let dir = tempfile::tempdir().unwrap();
    let mut changes = begin(&fake, &dir.path().join("forebay")).unwrap();
    let control = format!("{SLICE}/cgroup.subtree_control");
    fake.put(Path::new(&control), "\n");
    let cgroup = Path::new(SLICE).join("pg");
    changes.set_weight(Path::new("/cg"), &cgroup, "8:0 1000").unwrap();
    let weight = format!("{SLICE}/pg/io.weight");
    assert_eq!(fake.get(&weight), "default 100\n8:0 1000\n");
    changes.put_back().unwrap();
    assert_eq!((fake.get(CONTROL).as_str(), fake.get(&control).as_str()), ("cpu memory\n", "\n"));
    assert!(!fake.files.borrow().contains_key(Path::new(&weight)));
}

#[test]
fn processes_that_come_and_go_are_forgotten() {
    let fake = Fake::new("", "default 100\n");
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("forebay");
    let mut changes = begin(&fake, &dir).unwrap();
    govern(&mut changes).unwrap();
    for pid in 1000..1400 {
        let stat = PathBuf::from(format!("/proc/{pid}/stat"));
        fake.put(&stat, fake.get("/proc/41/stat"));
        changes.move_process((pid, 777), Path::new("/cg/db"), Path::new(OURS)).unwrap();
        fake.files.borrow_mut().remove(&stat);
    }
    let state = std::fs::read_to_string(dir.join("sda.json")).unwrap();
    assert!(state.len() < 40 << 10, "{} bytes", state.len());
    assert!(state.contains("\"pid\": 41"));
}

#[test]
fn a_state_file_of_an_earlier_boot_is_dropped() {
    let fake = Fake::new("", "default 100\n");
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("forebay");
    govern(&mut begin(&fake, &dir).unwrap()).unwrap();
    fake.put(Path::new(BOOT), "boot 2\n");
    let before = fake.all();
    begin(&fake, &dir).unwrap();
    assert_eq!(fake.all(), before);
    assert!(!dir.join("sda.json").exists());
}

#[test]
fn an_unreadable_state_file_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("forebay");
    StateFile::lock(&dir, "sda").unwrap().write("{").unwrap();
    let said = begin(&Fake::new("", ""), &dir).err().unwrap().to_string();
    assert!(said.contains("restore its settings by hand"), "{said}");
    assert!(dir.join("sda.json").exists());
}
