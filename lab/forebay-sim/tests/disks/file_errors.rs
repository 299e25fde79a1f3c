//! What is said about wrong disk files.

use forebay_config::Source;
use forebay_sim::spec::DiskSpec;

const IDEAL: &str = "kind: ideal\nchannels: 4\nread_latency: 1ms\nwrite_latency: 1ms\n\
                     bandwidth: 300000000\n";
const CLOUD: &str = "kind: cloud\nbandwidth: 100M\nlatency: 1ms\n";
const RAID0: &str = "kind: raid0\nmembers: [gp3, gp3]\n";
const FLASH: &str = "kind: flash\nread_command: 1us\nwrite_command: 1us\nbandwidth: 4G\n\
                     dies: 16\npage: 16kB\npage_read: 50us\nprogram_bandwidth: 1G\n";

fn error_message(text: &str) -> String {
    DiskSpec::parse(&Source::new("d.yaml", text)).expect_err("a wrong file").to_string()
}

/// Every file with one mistake, and what is said about it.
#[test]
fn errors_name_the_field_and_the_bound() {
    let files = [
        "channels: 4\n".to_owned(),
        "kind: idael\n".to_owned(),
        IDEAL.replace("channels: 4", "channels: 0"),
        IDEAL.replace("channels", "chanels"),
        IDEAL.replace("read_latency: 1ms", "read_latency: 0"),
        IDEAL.replace("read_latency: 1ms", "read_latency: 500"),
        IDEAL.replace("write_latency: 1ms", "write_latency: 2m"),
        IDEAL.replace("bandwidth: 300000000", "bandwidth: 0"),
        IDEAL.replace("bandwidth:", "read_bandwidth:"),
        format!("{IDEAL}sector: 520\n"),
        format!("{IDEAL}capacity: 1000\n"),
        format!("{IDEAL}faults: [{{kind: slow, percent: 0}}]\n"),
        format!("{IDEAL}faults: [{{kind: slow}}]\n"),
        format!("{IDEAL}faults: [{{kind: reorder, spread: 1ms, percent: 5}}]\n"),
        format!("{IDEAL}faults: [{{kind: hang, from: 2s, to: 1s}}]\n"),
        format!("{IDEAL}faults: [{{kind: hang, offset: 1MB}}]\n"),
        format!("{IDEAL}faults: [{{kind: error, offset: 64GB, length: 4kB}}]\n"),
        format!("{IDEAL}faults: [{{kind: broken}}]\n"),
        format!("{CLOUD}burst_credits: 5400000\nburst_iops: 3000\n"),
        format!("{CLOUD}iops: 300\nburst_iops: 3000\n"),
        format!("{CLOUD}iops: 300\nburst_credits: 3000\n"),
        format!("{CLOUD}iops: 300\nburst_iops: 300\nburst_credits: 1000\n"),
        format!("{RAID0}chunk: 1000\n"),
        format!("{RAID0}chunk: 4kB\nsector: 4096\ncapacity: 2000GB\n"),
        "kind: raid0\nchunk: 1MB\nmembers: [gp3]\n".to_owned(),
        "kind: raid0\nchunk: 1MB\nmembers: [gp3, gp33]\n".to_owned(),
        format!("{FLASH}write_buffer: 1MB\nphysical_sector: 3kB\n"),
        format!("{FLASH}write_buffer: 1MB\ncollect_every: 1GB\n"),
        FLASH.to_owned(),
        format!("{FLASH}write_buffer: 1MB\ndiscard_turns: 4\n"),
        format!("{FLASH}write_buffer: 1MB\ndiscard_batch: 0\n"),
        format!("{IDEAL}file_system: {{sync_period: 2h}}\n"),
        format!("{IDEAL}file_system: {{in_flight: 0}}\n"),
        format!("{IDEAL}file_system: {{discards: true}}\n"),
        "kind: hdd\nrpm: 0\nseek_min: 1ms\nseek_max: 18ms\nbandwidth: 100M\n".to_owned(),
        "kind: hdd\nrpm: 7200\nseek_min: 20ms\nseek_max: 18ms\nbandwidth: 100M\n".to_owned(),
    ];
    let said: Vec<String> = files.iter().map(|file| error_message(file)).collect();
    golden("disk_file_errors.txt", &(said.join("\n") + "\n"));
}

#[test]
fn an_unknown_name_lists_the_presets_and_the_nearest() {
    let error = DiskSpec::resolve("for-channels").unwrap_err().to_string();
    assert!(error.starts_with("for-channels: no such disk; did you mean `four-channels`?"));
    assert!(DiskSpec::presets().all(|name| error.contains(name)), "{error}");
    let error = DiskSpec::resolve("I4i.2").unwrap_err().to_string();
    assert!(error.starts_with("I4i.2: no such disk; did you mean `i4i.2xlarge`?"), "{error}");
    let error = DiskSpec::resolve("").unwrap_err().to_string();
    assert!(error.starts_with(": no such disk; name a .yaml"), "{error}");
    let error = DiskSpec::resolve("missing.yaml").unwrap_err().to_string();
    assert!(error.starts_with("missing.yaml: cannot be read"), "{error}");
}

#[test]
fn a_file_that_is_there_under_a_name_that_says_nothing_is_told_from_one_that_is_not() {
    for name in ["Cargo.toml", "src"] {
        let error = DiskSpec::resolve(name).unwrap_err().to_string();
        let says = "its name does not say what is in it; call a disk file .yaml or .yml";
        assert!(error.starts_with(&format!("{name}: {says}")), "{error}");
    }
}

#[test]
fn a_file_that_is_its_own_member_is_an_error() {
    let path = std::env::temp_dir().join(format!("forebay-self-{}.yaml", std::process::id()));
    let text = format!("kind: raid0\nchunk: 1MB\nmembers: [gp3, {}]\n", path.display());
    std::fs::write(&path, text).unwrap();
    let error = DiskSpec::resolve(&path.display().to_string()).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(error.contains("at most 3 deep"), "{error}");
}

/// Compares with a file of this folder; `UPDATE_SNAPSHOTS=1` writes it.
fn golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "if this is right, run once with UPDATE_SNAPSHOTS=1");
}
