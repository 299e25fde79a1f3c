//! Simulated disks with noise, and what they lose.

use forebay_load::Rng;

/// A kind of disk, and the changes of its file that take a tenth from it.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) yaml: &'static str,
    pub(crate) losses: &'static [Loss],
}

/// A key with its value before and after, and the figure that shows the loss.
pub(crate) struct Loss {
    pub(crate) figure: &'static str,
    pub(crate) keys: [&'static str; 2],
}

const fn loss(figure: &'static str, before: &'static str, after: &'static str) -> Loss {
    Loss { figure, keys: [before, after] }
}

pub(crate) const KINDS: [Kind; 5] = [
    Kind {
        name: "ideal",
        yaml: "kind: ideal\nchannels: 4\nread_latency: 500us\nwrite_latency: 250us\n\
               bandwidth: 300000000\n",
        losses: &[
            loss("random reads", "read_latency: 500us", "read_latency: 556us"),
            loss("random writes", "write_latency: 250us", "write_latency: 278us"),
            loss("read bandwidth", "bandwidth: 300000000", "bandwidth: 270000000"),
            loss("write bandwidth", "bandwidth: 300000000", "bandwidth: 270000000"),
        ],
    },
    Kind {
        name: "flash",
        yaml: "kind: flash\nread_command: 50us\nwrite_command: 60us\nbandwidth: 500000000\n\
               read_latency: 20us\nread_jitter: 200us\nwrite_latency: 10us\ndies: 32\npage: 16kB\n\
               page_read: 60us\nprogram_bandwidth: 300000000\nsuspend: 50us\nwrite_buffer: 4MB\n",
        losses: &[
            loss("random reads", "read_command: 50us", "read_command: 55600ns"),
            loss("random writes", "write_command: 60us", "write_command: 66700ns"),
            loss("read bandwidth", "bandwidth: 500000000", "bandwidth: 450000000"),
            loss("write bandwidth", "program_bandwidth: 300000000", "program_bandwidth: 270000000"),
        ],
    },
    Kind {
        name: "flash behind 256 MB",
        yaml: "kind: flash\nread_command: 50us\nwrite_command: 30us\nbandwidth: 500000000\n\
               read_latency: 20us\nwrite_latency: 10us\ndies: 32\npage: 16kB\npage_read: 60us\n\
               program_bandwidth: 60000000\nsuspend: 50us\nwrite_buffer: 256MB\n",
        losses: &[loss(
            "write bandwidth",
            "program_bandwidth: 60000000",
            "program_bandwidth: 54000000",
        )],
    },
    Kind {
        name: "cloud",
        yaml: "kind: cloud\niops: 3000\nbandwidth: 131072000\nlatency: 353us\njitter: 120us\n",
        losses: &[
            loss("random reads", "iops: 3000", "iops: 2700"),
            loss("random writes", "iops: 3000", "iops: 2700"),
            loss("read bandwidth", "bandwidth: 131072000", "bandwidth: 118000000"),
            loss("write bandwidth", "bandwidth: 131072000", "bandwidth: 118000000"),
        ],
    },
    Kind {
        name: "hard disk",
        yaml: "kind: hdd\nrpm: 7200\nseek_min: 1ms\nseek_max: 18ms\nbandwidth: 182000000\n\
               queue: 32\n",
        losses: &[
            loss("read bandwidth", "bandwidth: 182000000", "bandwidth: 164000000"),
            loss("write bandwidth", "bandwidth: 182000000", "bandwidth: 164000000"),
        ],
    },
];

/// How uneven a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noise {
    /// As its parameters say.
    None,
    /// Its speed is 2 % up or down in each 0.8 s, and it stands still for 20 to 60 ms every second
    /// or so.
    Uneven,
    /// The same by 4 %.
    VeryUneven,
    /// By 2 %, half of it over some eight seconds.
    Wanders,
}

pub(crate) const NOISES: [Noise; 4] =
    [Noise::None, Noise::Uneven, Noise::VeryUneven, Noise::Wanders];

/// The middle of a wandering speed, in percent of what the file says.
const MIDDLE: f64 = 80.0;
const STEP_MS: u64 = 800;
/// A disk file has 100 faults at most, which last longer than most quick measurements.
const STEPS: u64 = 60;
const HANGS: usize = 38;

impl Noise {
    /// The lines of a disk file that make a disk so uneven, by `seed`.
    pub(crate) fn faults(self, seed: u64) -> String {
        let (deviation, slow_part) = match self {
            Self::None => return String::new(),
            Self::Uneven => (1.6, 0.0_f64),
            Self::VeryUneven => (3.2, 0.0),
            Self::Wanders => (1.6, 0.5),
        };
        let mut chance = Rng::new(seed, &[17]);
        let mut normal = || {
            let sum: u64 = (0..12).map(|_| chance.below(1_000_000)).sum();
            sum as f64 / 1e6 - 6.0
        };
        let (mut slow, mut hangs, mut lines) = (0.0, 0, String::from("faults:\n"));
        for from in (0..STEPS).map(|step| step * STEP_MS) {
            slow = slow * 0.9 + normal() * (1.0 - 0.9 * 0.9_f64).sqrt();
            let off = slow * slow_part.sqrt() + normal() * (1.0 - slow_part).sqrt();
            let speed = MIDDLE + deviation * off;
            let (to, percent) = (from + STEP_MS, speed.round().clamp(30.0, 99.0));
            lines += &format!("- {{kind: slow, from: {from}ms, to: {to}ms, percent: {percent}}}\n");
            if normal() > -0.2 && hangs < HANGS {
                hangs += 1;
                let (from, len) = (from + 100, 40.0 + 6.0 * normal());
                let to = from + len.clamp(20.0, 60.0) as u64;
                lines += &format!("- {{kind: hang, from: {from}ms, to: {to}ms}}\n");
            }
        }
        let from = STEPS * STEP_MS;
        lines += &format!("- {{kind: slow, from: {from}ms, percent: {MIDDLE}}}\n");
        lines
    }
}
