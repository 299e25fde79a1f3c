//! The disk files that come with the program.

macro_rules! preset {
    ($name:literal) => {
        ($name, include_str!(concat!("../../presets/", $name, ".yaml")))
    };
}

/// Name and text of each, in alphabetical order.
const PRESETS: &[(&str, &str)] = &[preset!("four-channels")];

/// The text of the preset called `name`.
pub(super) fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|&(_, text)| text)
}

/// The names of all presets, in alphabetical order.
pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    PRESETS.iter().map(|&(name, _)| name)
}
