//! Whether the disk is rented, with a rate that is sold and not the disk's own.

use forebay_block::BlockDevice;

use crate::finding::Finding;
use crate::sources::CREDITS_2022;
use crate::subject::Subject;

/// What clouds call their volumes, and what they are.
const VOLUMES: [(&str, &str); 5] = [
    ("Amazon Elastic Block Store", "an EBS volume"),
    ("Google PersistentDisk", "a persistent disk of Google Cloud"),
    ("nvme_card-pd", "a persistent disk of Google Cloud"),
    ("Msft Virtual Disk", "a disk of Azure or Hyper-V"),
    ("DO Volume", "a volume of DigitalOcean"),
];

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let say = |disk: &BlockDevice| {
        let model = disk.model(subject.machine)?;
        let (_, volume) = VOLUMES.iter().find(|(name, _)| model.starts_with(name))?;
        Some(
            Finding::note(format!("{} is {volume}: its rates are what was bought", disk.disk))
                .why(
                    "with burst credits a short measurement shows more: 262 MB/s on a volume of \
                     128 MB/s",
                )
                .source(CREDITS_2022)
                .fix(format!(
                    "write down what was bought: forebay info --disk gp3 --mountpoint {} --format \
                     properties begins with a bare gp3 volume",
                    subject.mount_point()
                )),
        )
    };
    subject.disks().into_iter().filter_map(say).collect()
}
