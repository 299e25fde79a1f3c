//! The classes and groups of classes of a program.

use forebay_core::{
    BANDWIDTH_MAX, ClassError, ClassGroupId, ClassId, IOPS_MAX, IoGroup, Limits, SHARES_MAX,
};

/// Few enough that slots of removed classes and groups are used again often.
const CLASSES_MAX: usize = 12;
const GROUPS_MAX: usize = 6;

pub(super) struct Classes {
    pub(super) classes: Vec<ClassId>,
    groups: Vec<ClassGroupId>,
    /// A class that was removed.
    pub(super) removed: Option<ClassId>,
}

impl Classes {
    pub(super) fn new(group: &IoGroup) -> Self {
        let parent = group.add_class_group(None, 50).unwrap();
        let classes = [None, Some(parent), Some(parent)];
        let classes = classes.map(|parent| group.add_class(parent, 100).unwrap());
        Self { classes: classes.to_vec(), groups: vec![parent], removed: None }
    }

    /// The class for any number; sometimes the removed one.
    pub(super) fn pick(&self, pick: usize) -> Option<ClassId> {
        match self.removed {
            Some(removed) if pick % 16 == 15 => Some(removed),
            _ => of(&self.classes, pick),
        }
    }

    pub(super) fn is_removed(&self, class: ClassId) -> bool {
        self.removed == Some(class)
    }

    pub(super) fn add(&mut self, group: &IoGroup, parent: usize, shares: u32) {
        if self.classes.len() == CLASSES_MAX {
            return;
        }
        let class = group.add_class(self.parent(parent), shares);
        assert_eq!(class.is_ok(), (1..=SHARES_MAX).contains(&shares), "{class:?}");
        self.classes.extend(class);
    }

    /// Removes a class or group. `queued` says whether requests of a class wait on any shard.
    pub(super) fn remove(
        &mut self,
        group: &IoGroup,
        pick: usize,
        queued: impl Fn(ClassId) -> bool,
    ) {
        let Some(class) = self.pick(pick) else { return };
        let expected = match class {
            class if self.is_removed(class) => Err(ClassError::Unknown),
            class if queued(class) => Err(ClassError::InUse),
            _ => Ok(()),
        };
        assert_eq!(group.check_removable(class), expected);
        assert_eq!(group.remove(class), expected);
        if expected.is_ok() {
            self.classes.retain(|&other| other != class);
            self.removed = Some(class);
        }
    }

    pub(super) fn add_group(&mut self, group: &IoGroup, parent: usize, shares: u32) {
        if self.groups.len() == GROUPS_MAX {
            return;
        }
        match group.add_class_group(self.parent(parent), shares) {
            Ok(added) => self.groups.push(added),
            Err(ClassError::TooDeep) => {}
            Err(error) => assert_eq!(error, ClassError::Shares(shares)),
        }
    }

    pub(super) fn remove_group(&mut self, group: &IoGroup, pick: usize) {
        let Some(removed) = of(&self.groups, pick) else { return };
        if group.remove(removed).is_ok() {
            self.groups.retain(|&other| other != removed);
        }
    }

    pub(super) fn set_shares(&self, group: &IoGroup, pick: usize, shares: u32) {
        let Some(class) = self.pick(pick) else { return };
        let valid = (1..=SHARES_MAX).contains(&shares) && !self.is_removed(class);
        assert_eq!(group.set_shares(class, shares).is_ok(), valid);
        assert!(!valid || group.shares(class) == Ok(shares));
    }

    pub(super) fn set_group_shares(&self, group: &IoGroup, pick: usize, shares: u32) {
        let Some(changed) = of(&self.groups, pick) else { return };
        let valid = (1..=SHARES_MAX).contains(&shares);
        assert_eq!(group.set_shares(changed, shares).is_ok(), valid);
    }

    pub(super) fn set_limits(&self, group: &IoGroup, pick: usize, limits: &Limits) {
        let Some(class) = self.pick(pick) else { return };
        let valid = are_valid(limits) && !self.is_removed(class);
        assert_eq!(group.set_limits(class, limits).is_ok(), valid);
    }

    pub(super) fn set_group_limits(&self, group: &IoGroup, pick: usize, limits: &Limits) {
        let Some(changed) = of(&self.groups, pick) else { return };
        assert_eq!(group.set_limits(changed, limits).is_ok(), are_valid(limits));
    }

    /// Lifts all limits.
    pub(super) fn lift_limits(&self, group: &IoGroup) {
        let none = Limits::default();
        self.classes.iter().for_each(|&class| group.set_limits(class, &none).unwrap());
        self.groups.iter().for_each(|&of| group.set_limits(of, &none).unwrap());
    }

    /// Removes all classes and groups, which have no requests any more.
    pub(super) fn remove_all(&mut self, group: &IoGroup) {
        for class in self.classes.drain(..) {
            group.remove(class).unwrap();
        }
        // parents were made before their groups
        for of in self.groups.drain(..).rev() {
            group.remove(of).unwrap();
        }
    }

    fn parent(&self, pick: usize) -> Option<ClassGroupId> {
        if pick.is_multiple_of(3) { None } else { of(&self.groups, pick) }
    }
}

fn of<T: Copy>(all: &[T], pick: usize) -> Option<T> {
    all.get(pick.checked_rem(all.len())?).copied()
}

fn are_valid(limits: &Limits) -> bool {
    let valid = |limit: Option<u64>, max| limit.is_none_or(|limit| (1..=max).contains(&limit));
    valid(limits.operations_per_second, IOPS_MAX) && valid(limits.bytes_per_second, BANDWIDTH_MAX)
}
