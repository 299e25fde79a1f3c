//! Many directories, and too few descriptors.

use std::fs::{self, File};
use std::iter;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use forebay::{DeleterOptions, Deletion, DeletionState};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::fixture::{Bed, MIB};

/// Set in the process that has few descriptors.
const IN_CHILD: &str = "FOREBAY_TEST_FEW_DESCRIPTORS";

/// A limit is of the whole process, so this one test has a process of its own.
#[test]
fn without_descriptors_a_file_fails_or_waits_and_none_is_lost() {
    if std::env::var_os(IN_CHILD).is_none() {
        let name =
            concat!(module_path!(), "::without_descriptors_a_file_fails_or_waits_and_none_is_lost");
        let name = name.split_once("::").unwrap().1;
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", name, "--nocapture"]).env(IN_CHILD, "1").output();
        let child = child.unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let bed = Bed::new();
    let all = getrlimit(Resource::Nofile);
    let (mut failed, mut waited) = (0, 0);
    for room in 0..12 {
        let paths = files_in_directories(&bed, room);
        let deleter = bed.deleter();
        setrlimit(Resource::Nofile, Rlimit { current: Some(256), ..all }).unwrap();
        let mut taken: Vec<File> = iter::from_fn(|| File::open("/dev/null").ok()).collect();
        taken.truncate(taken.len() - room);
        let deletions = deleter.delete_all(&paths);
        let begin = Instant::now();
        let is_ended = |deletion: &Deletion| deletion.progress().state == DeletionState::Ended;
        while !deletions.iter().all(is_ended) && begin.elapsed() < Duration::from_millis(200) {
            std::thread::sleep(Duration::from_millis(1));
        }
        waited += deletions.iter().filter(|deletion| !is_ended(deletion)).count();
        setrlimit(Resource::Nofile, all).unwrap();
        drop(taken);
        for (path, deletion) in paths.iter().zip(deletions) {
            match deletion.wait() {
                Ok(_) => assert!(!path.exists(), "{room}"),
                Err(error) => {
                    assert_eq!(error.errno(), Some(libc::EMFILE), "{room}: {error}");
                    assert_eq!(fs::read(path).unwrap(), vec![7; 2 * MIB as usize], "{room}");
                    failed += 1;
                    deleter.delete(path).wait().unwrap();
                }
            }
        }
        deleter.drain().wait().unwrap();
    }
    assert!(failed > 0, "there were enough descriptors");
    println!("{failed} failed, {waited} waited for descriptors");
    let left = bed.names().into_iter().flat_map(|dir| fs::read_dir(bed.path(&dir)).unwrap());
    assert_eq!(left.count(), 0);
}

fn files_in_directories(bed: &Bed, round: usize) -> Vec<PathBuf> {
    (0..9)
        .map(|n| {
            fs::create_dir_all(bed.path(&format!("{}", n / 3))).unwrap();
            bed.file(&format!("{}/{round}-{n}", n / 3), 2 * MIB)
        })
        .collect()
}

/// Each 64 directories a delete stood still for a second, as no more are open at a time.
#[test]
fn a_batch_of_many_directories_does_not_stand_still() {
    let bed = Bed::new();
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return eprintln!("skipped") };
    let paths: Vec<PathBuf> = (0..2560).map(|n| dir.path().join(format!("{n}/file"))).collect();
    for path in &paths {
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let begin = Instant::now();
    bed.deleter().delete_all(&paths).iter().for_each(|deletion| _ = deletion.wait().unwrap());
    let took = begin.elapsed();
    // 40 seconds before
    assert!(took < Duration::from_secs(20), "it took {took:?}");
}

/// It failed for want of descriptors, of which there were enough.
#[test]
fn one_trash_is_for_files_of_as_many_directories_as_are_open() {
    let bed = Bed::new();
    let home = bed.path("home");
    fs::create_dir(&home).unwrap();
    let options = DeleterOptions::new().always_in_steps(true).trash_in(home);
    let deleter = bed.deleter_with(options);
    let paths: Vec<PathBuf> = (0..200)
        .map(|n| {
            fs::create_dir(bed.path(&n.to_string())).unwrap();
            bed.file(&format!("{n}/file"), if n % 64 == 63 { 8192 } else { 0 })
        })
        .collect();
    for deletion in deleter.delete_all(&paths) {
        deletion.wait().unwrap();
    }
    assert!(paths.iter().all(|path| !path.exists()));
}
