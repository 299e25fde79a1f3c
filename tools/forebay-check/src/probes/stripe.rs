//! Whether the filesystem knows the chunks of the array below it.

use forebay_block::{BlockDevice, Stripe};

use crate::finding::Finding;
use crate::sources::WRITING_2025;
use crate::subject::Subject;

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let Some(device) = &subject.device else { return Vec::new() };
    let arrays = device.all().into_iter();
    let arrays = arrays.filter_map(|array| Some((array, array.stripe(subject.machine)?)));
    arrays.map(|(array, stripe)| compare(subject, device, array, stripe)).collect()
}

fn compare(
    subject: &Subject<'_>,
    device: &BlockDevice,
    array: &BlockDevice,
    stripe: Stripe,
) -> Finding {
    let Stripe { chunk, disks } = stripe;
    let said = format!("{} has chunks of {} KiB over {disks} disks", array.name, chunk >> 10);
    let width = chunk * disks;
    let Some(known) = StripeLayout::of(subject) else {
        return Finding::unknown(format!("{said}; {} does not say what it knows", subject.kind()));
    };
    let fits = match known {
        StripeLayout::Xfs { unit, width: known } => unit == chunk && known == width,
        StripeLayout::Ext { width: known, .. } => known == width,
    };
    if fits {
        return Finding::fine(format!("{said}, and {} knows", subject.kind()));
    }
    Finding::warning(format!("{said}, and {}", known.describe(subject.kind())))
        .why(
            "a request that crosses a chunk is cut in two: the parts took 161 and 5249 us on an \
             array of four NVMe disks, whole requests 52",
        )
        .source(WRITING_2025)
        .fix(match known {
            StripeLayout::Xfs { .. } => format!(
                "sudo mkfs.xfs -f -b size=4096 -d su={},sw={disks} {}   # this erases it: copy \
                 the data away first",
                chunk,
                device.path()
            ),
            StripeLayout::Ext { block, .. } => format!(
                "sudo tune2fs -E stride={},stripe_width={} {}",
                chunk / block,
                width / block,
                device.path()
            ),
        })
}

/// How a filesystem lays files out, in bytes; 0 for no stripes.
enum StripeLayout {
    Xfs { unit: u64, width: u64 },
    Ext { width: u64, block: u64 },
}

impl StripeLayout {
    fn of(subject: &Subject<'_>) -> Option<Self> {
        let mount = subject.mount.as_ref()?;
        let number = |option| mount.number(option).unwrap_or(0);
        match mount.kind.as_str() {
            // in sectors of 512 bytes
            "xfs" => Some(Self::Xfs { unit: number("sunit") * 512, width: number("swidth") * 512 }),
            "ext4" => {
                let block = subject.environment.space.as_ref().ok()?.block;
                Some(Self::Ext { width: number("stripe") * block, block: block.max(1) })
            }
            _ => None,
        }
    }

    fn describe(&self, kind: &str) -> String {
        match *self {
            Self::Xfs { unit: 0, .. } | Self::Ext { width: 0, .. } => {
                format!("{kind} knows of no stripes")
            }
            Self::Xfs { unit, width } => {
                format!("{kind} counts on {} KiB in stripes of {} KiB", unit >> 10, width >> 10)
            }
            Self::Ext { width, .. } => format!("{kind} counts on stripes of {} KiB", width >> 10),
        }
    }
}
