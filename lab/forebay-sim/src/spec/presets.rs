//! The disk files that come with the program.

macro_rules! preset {
    ($name:literal) => {
        ($name, include_str!(concat!("../../presets/", $name, ".yaml")))
    };
}

/// Name and text of each, in alphabetical order.
const PRESETS: &[(&str, &str)] = &[
    preset!("azure-p30"),
    preset!("four-channels"),
    preset!("gcp-pd-SSD-2TB"),
    preset!("gp2"),
    preset!("gp3"),
    preset!("hdd-7200rpm"),
    preset!("hdd-toshiba-DT01ACA200"),
    preset!("i3.2xlarge"),
    preset!("i3en.3xlarge"),
    preset!("i4i.2xlarge"),
    preset!("nvme-2018"),
    preset!("nvme-2022"),
    preset!("nvme-2025"),
    preset!("raid0-4-nvme"),
    preset!("samsung-850-pro"),
    preset!("samsung-970-pro"),
];

/// The text of the preset called `name`.
pub(super) fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|&(_, text)| text)
}

/// The names of all presets, in alphabetical order.
pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    PRESETS.iter().map(|&(name, _)| name)
}
