//! The classes of a run as the checks know them.

/// A class of the job file.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) shares: Shares,
    pub(super) parent: Option<usize>,
    pub(super) is_capped: bool,
}

/// The shares of a class or a group, and the bounds of what they have been: what somebody got at
/// the price of earlier shares is paid for at that price.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    pub(super) now: u32,
    pub(super) least: u32,
    pub(super) most: u32,
}

impl Shares {
    pub(super) fn new(now: u32) -> Self {
        Self { now, least: now, most: now }
    }

    pub(super) fn change(&mut self, now: u32) {
        *self = Self { now, least: self.least.min(now), most: self.most.max(now) };
    }
}

/// The least part of the disk that each class is due while all of them have work.
pub(super) fn fractions(classes: &[Class], parents: &[Shares]) -> Vec<f64> {
    let loose = classes.iter().filter(|class| class.parent.is_none()).map(|class| class.shares);
    let top: f64 = loose.chain(parents.iter().copied()).map(|shares| f64::from(shares.most)).sum();
    let fraction = |class: &Class| {
        let siblings = classes.iter().filter(|other| other.parent == class.parent);
        let own = f64::from(class.shares.least);
        match class.parent.and_then(|parent| parents.get(parent)) {
            None => own / top,
            Some(parent) => {
                let inside: f64 = siblings.map(|sibling| f64::from(sibling.shares.most)).sum();
                f64::from(parent.least) / top * own / inside
            }
        }
    };
    classes.iter().map(fraction).collect()
}
