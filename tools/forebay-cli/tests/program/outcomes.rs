//! `explore`: what becomes of what was measured, and which files it may write.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::loop_mount::{Lab, MIXED};
use crate::process::{Ended, run, run_and_at};

const PRESETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/forebay-sim/presets");

fn forebay() -> Command {
    Command::new(env!("CARGO_BIN_EXE_forebay"))
}

/// The disk of the lab with this many reads per second, which any disk does.
fn properties(lab: &Lab, read_iops: u32) -> PathBuf {
    let dir = lab.dir.path().display();
    let text = format!(
        "disks:\n  - mountpoint: \"{dir}\"\n    read_iops: {read_iops}\n    write_iops: 400\n    \
         read_bandwidth: 4000000\n    write_bandwidth: 4000000\n"
    );
    lab.file(&format!("{read_iops}.yaml"), &text)
}

/// `explore` on the directory of the lab, run in `here`, with few short loads and little data.
fn of_directory(lab: &Lab, here: &Path, arguments: &[&str]) -> Command {
    let mut command = forebay();
    command.current_dir(here).arg("explore").arg(lab.dir.path()).arg("--properties");
    command.arg(properties(lab, 400)).args(["--seconds", "40ms", "--data-size", "64MB"]);
    command.args(arguments);
    command
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_disk_that_meets_no_goal_is_saved_and_shown_with_a_goal_that_it_meets() {
    let (lab, here) = (Lab::new(), Lab::new());
    let ended = run(&mut of_directory(&lab, here.dir.path(), &["--goal", "p50=1us"]));
    ended.complains(3, &["explore.csv: what was measured", "p50=1us is below", "--goal p50="]);
    let said = on_one_line(&ended.stdout);
    for words in ["Regions of", "rejected", "The region above is for p50=", "the lightest load"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(names(here.dir.path()), ["explore.csv"]);
    // of a file, which is there already, the goal is what is wrong
    let hard_disk = format!("{PRESETS}/hdd-toshiba-DT01ACA200.csv");
    let ended = run(forebay().args(["explore", "--from", &hard_disk]));
    ended.complains(2, &["is below the latency of the idle disk", "--goal p95="]);
    assert!(ended.stdout.contains("The region above is for p95="), "{}", ended.stdout);
    let ended = run(forebay().args(["explore", "--json", "--from", &hard_disk]));
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["unmet"].as_array().unwrap().len(), 3);
    assert_eq!(report["fits"].as_array().unwrap().len(), 1);
}

#[test]
fn files_that_cannot_be_written_are_named_before_anything_is_measured() {
    let (lab, here) = (Lab::new(), Lab::new());
    let dir = here.dir.path().display().to_string();
    let refused = |ended: &Ended, words: &[&str]| {
        ended.complains(2, words);
        let said = ended.stderr.replace(&dir, "");
        assert!(!said.contains("measuring") && !said.contains(".tmp"), "{ended:?}");
    };
    let is_dir = ["cannot write", "it is a directory"];
    let nowhere = ["cannot write `/nowhere/x`: No such file"];
    for option in ["--save", "--report", "--svg"] {
        let of = |file: &str| run(&mut of_directory(&lab, here.dir.path(), &[option, file]));
        refused(&of(&dir), &is_dir);
        refused(&of("/nowhere/x"), &nowhere);
    }
    let missing = run(&mut of_directory(&lab, here.dir.path(), &["-o", "forebay.yaml"]));
    refused(&missing, &["run `forebay tune DIR`"]);
    let broken = here.dir.path().join("broken.yaml");
    fs::write(&broken, "disks: []").unwrap();
    let broken = broken.to_str().unwrap();
    refused(&run(&mut of_directory(&lab, here.dir.path(), &["-o", broken])), &["broken.yaml:1:"]);
    let jobs = here.file("jobs.yaml", MIXED);
    let sim = |page: &str| {
        run(forebay().args(["sim", "run", "--disk", "gp3", "--page", page]).arg(&jobs))
    };
    refused(&sim(&dir), &is_dir);
    refused(&sim("/nowhere/x"), &nowhere);
    fs::create_dir_all(here.dir.path().join("out/tune.html")).unwrap();
    let out = here.dir.path().join("out");
    refused(&run(forebay().args(["tune", "--simulate", "gp3", "--out"]).arg(&out)), &is_dir);
    // what is there is not touched
    let page = here.file("page.html", "old");
    let page = page.to_str().unwrap();
    of_directory(&lab, here.dir.path(), &["--report", page, "--save", "/nowhere/x"]);
    assert_eq!(fs::read_to_string(page).unwrap(), "old");
    assert_eq!(names(here.dir.path()), ["broken.yaml", "out"]);
    lab.assert_nothing_left();
}

#[test]
fn a_link_stays_one_and_what_is_no_file_is_written_into() {
    let here = Lab::new();
    let surface = format!("{PRESETS}/i3.2xlarge.csv");
    let explore = |save: &Path| {
        let goal = ["--goal", "p95=1ms", "--save"];
        let ended = run(forebay().args(["explore", "--from", &surface]).args(goal).arg(save));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    };
    let (file, link) = (here.file("file.csv", ""), here.dir.path().join("link.csv"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    explore(&link);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&file).unwrap().starts_with("write_bandwidth"));
    assert!(explore(Path::new("/dev/stdout")).starts_with("write_bandwidth"));
}

#[test]
fn an_earlier_surface_is_kept_next_to_the_new_one() {
    let (lab, here) = (Lab::new(), Lab::new());
    let path = here.dir.path().join("explore.csv");
    fs::write(&path, "of yesterday").unwrap();
    let ended = run(&mut of_directory(&lab, here.dir.path(), &["--goal", "p50=30s"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("explore.csv.old: the old explore.csv"), "{}", ended.stderr);
    assert_eq!(names(here.dir.path()), ["explore.csv", "explore.csv.old"]);
    let old = here.dir.path().join("explore.csv.old");
    assert_eq!(fs::read_to_string(old).unwrap(), "of yesterday");
    assert!(fs::read_to_string(&path).unwrap().starts_with("write_bandwidth"));
}

#[test]
fn a_measurement_is_not_resumed_with_other_rates_or_while_it_runs() {
    let (lab, here) = (Lab::new(), Lab::new());
    let options = ["--goal", "p50=30s", "--grid", "5"];
    let partial = here.dir.path().join("explore.csv.partial.json");
    let of = |more: &[&str]| of_directory(&lab, here.dir.path(), &[&options[..], more].concat());
    let ended = run_and_at(&mut of(&[]), "measuring", |child| {
        run(&mut of(&["--save", "other.csv"]))
            .complains(2, &["another `forebay explore` measures"]);
        let other = Lab::new();
        let mut same_file = of_directory(&other, here.dir.path(), &options);
        run(&mut same_file).complains(2, &["another `forebay explore` saves its loads next to"]);
        while !partial.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
    });
    ended.complains(130, &[" saved in `", "--resume"]);
    let other = properties(&lab, 500);
    let mut command = forebay();
    command.current_dir(here.dir.path()).arg("explore").arg(lab.dir.path()).arg("--properties");
    command.arg(other).args(["--seconds", "40ms", "--data-size", "64MB", "--resume"]).args(options);
    run(&mut command).complains(2, &["up to 400 reads/s", "--properties states 500 reads/s"]);
    let seconds = run(&mut of(&["--resume", "--seconds", "50ms"]));
    seconds.complains(2, &["with other options: --seconds was 0.04 and is 0.05"]);
    let ended = run(&mut of(&["--resume"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(names(here.dir.path()), ["explore.csv"]);
}

#[test]
fn a_region_that_is_no_use_is_said_to_be_and_is_not_written() {
    let lab = Lab::new();
    // latencies that have nothing to do with the load
    let mut surface = String::from("w_bw_Bps,r_iops,p50_ms,p95_ms\n");
    let mut random = 1_u64;
    for cell in 0..100 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let late = random >> 33 & 7 != 0;
        let (write, read) = (cell / 10 * 10_000_000, 100 + cell % 10 * 1000);
        surface += &format!("{write},{read},0.1,{}\n", if late { 5.0 } else { 0.5 });
    }
    let surface = lab.file("noise.csv", &surface).display().to_string();
    let yaml = properties(&lab, 400);
    let before = fs::read_to_string(&yaml).unwrap();
    let yaml = yaml.to_str().unwrap();
    let ended =
        run(forebay().args(["explore", "--from", &surface, "--goal", "p95=1ms", "-o", yaml]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("the region is unusable"), "{}", ended.stdout);
    assert!(ended.stderr.contains("not changed, because there is no region"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(yaml).unwrap(), before);
    let all = run(forebay().args(["explore", "--from", &surface, "--goal", "p95=1s"]));
    assert!(all.stdout.contains("every measured load keeps it"), "{}", all.stdout);
}

#[test]
fn a_file_that_cannot_hold_regions_is_refused_before_the_measurement() {
    let (lab, here) = (Lab::new(), Lab::new());
    let text = fs::read_to_string(properties(&lab, 400)).unwrap() + "io_properties: x.yaml\n";
    let file = lab.file("last.yaml", &text);
    let mut command = of_directory(&lab, here.dir.path(), &["--goal", "p50=30s", "-o"]);
    let ended = run(command.arg(file));
    ended.complains(2, &["last.yaml` is not a file of one disk"]);
    assert!(!ended.stderr.contains("measuring"), "{}", ended.stderr);
    here.assert_nothing_left();
}

/// As spreadsheets write text.
#[test]
fn a_surface_that_begins_with_a_byte_order_mark_is_read() {
    let lab = Lab::new();
    let text = fs::read_to_string(format!("{PRESETS}/i3.2xlarge.csv")).unwrap();
    let file = lab.file("marked.csv", &format!("\u{feff}{text}")).display().to_string();
    let ended = run(forebay().args(["explore", "--from", &file, "--goal", "p95=1ms"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let jobs = lab.file("jobs.yaml", MIXED);
    let times = ["--duration", "10ms", "--warmup", "0s", "--disk", &file];
    let ended = run(forebay().args(["sim", "run"]).args(times).arg(jobs));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

/// Root may write everywhere, so that what is forbidden is a place without files.
#[test]
fn no_message_names_a_file_that_is_nobodys() {
    let lab = Lab::new();
    let dir = lab.dir.path().join("gone");
    fs::create_dir(&dir).unwrap();
    let mut command = forebay();
    command.arg("explore").arg(&dir).args([
        "--seconds",
        "40ms",
        "--data-size",
        "64MB",
        "--properties",
    ]);
    let text = fs::read_to_string(properties(&lab, 400)).unwrap();
    command.arg(lab.file("gone.yaml", &text.replace("\"\n", "/gone\"\n")));
    let save = dir.join("explore.csv");
    let ended =
        run_and_at(command.args(["--goal", "p50=30s", "--save"]).arg(&save), "writing", |_| {
            while fs::remove_dir_all(&dir).is_err() {}
        });
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let said = ended.stderr.replace(&lab.dir.path().display().to_string(), "");
    assert!(said.contains("/gone"), "{said}");
    for part in [".tmp", ".forebay-bench-"] {
        assert!(!said.contains(part), "{said}");
    }
}

#[test]
fn a_forecast_without_a_simulated_disk_has_no_empty_columns_and_no_negative_zero() {
    let lab = Lab::new();
    let yaml = lab.file(
        "forebay.yaml",
        "disks:\n  - mountpoint: /mnt\n    read_iops: 411000\n    write_iops: 183000\n    \
         read_bandwidth: 2015000000\n    write_bandwidth: 808000000\n",
    );
    let yaml = yaml.to_str().unwrap();
    let surface = format!("{PRESETS}/i3.2xlarge.csv");
    let goal = ["--goal", "p95=1ms"];
    run(forebay().args(["explore", "--from", &surface, "-o", yaml]).args(goal));
    let ended = run(forebay().args(["explore", "--what-if", yaml, "--load", "a:1:reads=1000"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains(" 0 % writes"), "{}", ended.stdout);
    for part in ["-0", "simulated", "p95 in the disk"] {
        assert!(!ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
}

#[test]
fn a_target_below_the_idle_disk_is_said_not_to_be_held() {
    let lab = Lab::new();
    let backlogged = MIXED.replace("parallelism: 2", "parallelism: 32");
    let jobs = lab.file("jobs.yaml", &backlogged).display().to_string();
    let target = ["--latency-target", "disk:writes:p95=1us"];
    let times = ["--duration", "100ms", "--warmup", "0s", "--compare", "off"];
    let sim = ["sim", "run", &jobs, "--disk", "samsung-850-pro"];
    let ended = run(forebay().args(sim).args(times).args(target));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let said = on_one_line(&ended.stdout);
    for words in ["disk:writes:p95=1us (1.00us)", "cannot be kept, as it is below the latency"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let info = run(forebay().args(["info", "--disk", "samsung-850-pro"]).args(target));
    let said = on_one_line(&info.stdout);
    assert!(said.contains("disk:writes:p95=1us cannot be met"), "{said}");
}

#[test]
fn a_region_of_another_goal_than_was_asked_for_is_said_to_be_far() {
    let lab = Lab::new();
    let known = run(forebay().args(["info", "--disk", "i3.2xlarge", "--format", "properties"]));
    let yaml = lab.file("i3.yaml", &known.stdout);
    let yaml = yaml.to_str().unwrap();
    let surface = format!("{PRESETS}/i3.2xlarge.csv");
    run(forebay().args(["explore", "--from", &surface, "-o", yaml, "--goal", "p95=2ms"]));
    let info = |options: &[&str]| {
        let ended = run(forebay().args(["info", "--properties", yaml]).args(options));
        on_one_line(&ended.stdout)
    };
    let (near, far) = (info(&[]), info(&["--region-goal", "p95=0.5ms"]));
    assert!(near.contains("2.000 ms, the nearest to p95 of reads within 1.500 ms"), "{near}");
    assert!(far.contains("2.000 ms, which is far from p95 of reads within 0.500 ms"), "{far}");
    assert!(far.contains("Run `forebay explore DIR -o FILE`"), "{far}");
    let jobs = lab.file("jobs.yaml", MIXED).display().to_string();
    let run_it = ["sim", "run", &jobs, "--disk", "i3.2xlarge", "--properties", yaml];
    let options = ["--duration", "10ms", "--warmup", "0s", "--region-goal", "p95=0.5ms"];
    let text = run(forebay().args(run_it).args(options)).stdout;
    assert!(text.contains("which is far from p95 of reads within 0.500 ms"), "{text}");
}

#[test]
fn properties_without_a_seastar_key_are_written_too() {
    let known = run(forebay().args(["info", "--disk", "hdd-7200rpm", "--format", "properties"]));
    assert!(known.stdout.contains("seeks: true"), "{}", known.stdout);
    let known = run(forebay().args(["info", "--disk", "gp3", "--format", "properties"]));
    assert!(!known.stdout.contains("seeks"), "{}", known.stdout);
    let target = ["info", "--disk", "gp3", "--format", "properties", "--latency-target", "p95=2ms"];
    let known = run(forebay().args(target));
    assert!(known.stdout.contains("latency_target: p95=2ms"), "{}", known.stdout);
}
