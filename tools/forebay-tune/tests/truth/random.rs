//! Disks at random, by seed: kind, rates, buffer and how uneven they are.

use forebay_load::Rng;

use crate::disks::{Known, parse};

/// A disk at random, and by which part its speed differs from one moment to the next.
pub(crate) fn disk(seed: u64) -> (Known, f64) {
    let mut chance = Chance(Rng::new(seed, &[]));
    let (kind, spec, lasting) = match chance.0.below(10) {
        0 | 1 => ideal(&mut chance),
        2 => hdd(&mut chance),
        3 => raid(&mut chance),
        4 => volume(&mut chance),
        _ => flash(&mut chance),
    };
    let deviation = chance.between(0.005, 0.04);
    let name = format!("{seed}: {kind}, {:.1} % uneven", deviation * 100.0);
    let known = Known {
        spec: parse(&name, &spec),
        lasting: parse(&name, &lasting),
        shows: !kind.starts_with("volume"),
        fills: None,
        name,
    };
    (known, deviation)
}

struct Chance(Rng);

impl Chance {
    /// A value from `least` to `most`, all powers alike.
    fn between(&mut self, least: f64, most: f64) -> f64 {
        let part = self.0.below(1_000_000) as f64 / 1e6;
        least * (most / least).powf(part)
    }

    fn whole(&mut self, least: f64, most: f64) -> u64 {
        self.between(least, most) as u64
    }
}

type Texts = (String, String, String);

fn alone(kind: String, yaml: String) -> Texts {
    (kind, yaml.clone(), yaml)
}

fn ideal(chance: &mut Chance) -> Texts {
    let channels = chance.whole(1.0, 64.0);
    let [reads, writes] = [(); 2].map(|()| chance.whole(50.0, 2000.0));
    let mb = chance.whole(100.0, 4000.0);
    alone(
        format!("ideal, {channels} channels, {mb} MB/s"),
        format!(
            "kind: ideal\nchannels: {channels}\nread_latency: {reads}us\n\
             write_latency: {writes}us\nbandwidth: {mb}000000\n"
        ),
    )
}

fn hdd(chance: &mut Chance) -> Texts {
    let rpm = [5400, 7200, 10_000][chance.0.below(3) as usize];
    let (seek, mb) = (chance.whole(8.0, 20.0), chance.whole(80.0, 250.0));
    alone(
        format!("hdd, {rpm} rpm, {mb} MB/s"),
        format!(
            "kind: hdd\nrpm: {rpm}\nseek_min: 1ms\nseek_max: {seek}ms\nbandwidth: {mb}000000\n\
             queue: 32\n"
        ),
    )
}

fn raid(chance: &mut Chance) -> Texts {
    let member = ["samsung-850-pro", "samsung-970-pro", "hdd-7200rpm"][chance.0.below(3) as usize];
    let (count, chunk) = (2 + chance.0.below(7) as usize, 64 << chance.0.below(5));
    let members = vec![member; count].join(", ");
    alone(
        format!("RAID0 of {count} {member}, {chunk} kB"),
        format!("kind: raid0\nchunk: {chunk}kB\nmembers: [{members}]\n"),
    )
}

/// No volume on sale has bursts of more operations per second.
const BURST_MAX: u64 = 30_000;

fn volume(chance: &mut Chance) -> Texts {
    let (iops, mb) = (chance.whole(300.0, 12_000.0), chance.whole(100.0, 1000.0));
    let burst = (iops * (2 + chance.0.below(8))).min(BURST_MAX);
    let credits = (burst - iops) * chance.whole(10.0, 3000.0);
    let lasting = format!(
        "kind: cloud\niops: {iops}\nbandwidth: {mb}000000\nlatency: 500us\njitter: 100us\n"
    );
    let burst = format!("burst_iops: {burst}\nburst_credits: {credits}\n");
    (format!("volume, {iops} per s, {mb} MB/s"), format!("{lasting}{burst}"), lasting)
}

/// Its buffer is one that `quick` says it passes: of 16 GiB or what it writes in eight seconds, emptied at
/// two thirds of its rate at most.
fn flash(chance: &mut Chance) -> Texts {
    let mb = chance.whole(400.0, 7000.0);
    let kept_up = (mb as f64 * chance.between(0.05, 0.66)) as u64;
    let kept_up = if chance.0.below(3) == 0 { mb } else { kept_up };
    let buffer = chance.whole(4.0, (mb * 8).min(16_384) as f64);
    let [reads, writes] = [(); 2].map(|()| chance.whole(1200.0, 15_000.0));
    let of = |buffer: u64| {
        format!(
            "kind: flash\ncapacity: 512GB\nread_command: {reads}ns\nwrite_command: {writes}ns\n\
             bandwidth: {mb}000000\nread_latency: 20us\nwrite_latency: 5us\ndies: 64\npage: 32kB\n\
             page_read: 45us\nprogram_bandwidth: {kept_up}000000\nsuspend: 100us\n\
             write_buffer: {buffer}MB\n"
        )
    };
    (format!("flash, {kept_up} of {mb} MB/s behind {buffer} MiB"), of(buffer), of(4))
}
