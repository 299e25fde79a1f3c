//! The names of the classes of an I/O group, for reports about their requests.

use forebay_core::ClassId;

use crate::sys::lock::Lock;

/// The names of classes, by their places.
#[derive(Debug, Default)]
pub(super) struct ClassNames(Lock<Vec<Option<(ClassId, String)>>>);

impl ClassNames {
    /// Sets the name of a class, whose place may have belonged to another class.
    pub(super) fn set(&self, class: ClassId, name: &str) {
        let mut names = self.0.lock();
        let index = class.index();
        if names.len() <= index {
            names.resize_with(index + 1, || None);
        }
        if let Some(place) = names.get_mut(index) {
            *place = Some((class, name.to_owned()));
        }
    }

    /// All classes with their names. Empty while a name is being set, because the caller may hold a
    /// lock.
    pub(super) fn all(&self) -> Vec<(ClassId, String)> {
        let names = self.0.try_lock();
        names.map_or_else(Vec::new, |names| names.iter().flatten().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{DiskModel, GroupConfig, IoGroup, Policy};

    use super::*;

    #[test]
    fn a_class_in_a_reused_place_has_its_own_name() {
        let io = IoGroup::new(GroupConfig::new(DiskModel::unmeasured(), Policy::Unlimited));
        let names = ClassNames::default();
        let [one, two] = [(); 2].map(|()| io.add_class(None, 100).unwrap());
        names.set(two, "two");
        assert_eq!(names.all(), [(two, "two".into())]);
        names.set(one, "one");
        io.remove(one).unwrap();
        let next = io.add_class(None, 100).unwrap();
        names.set(next, "next");
        assert!(names.all().contains(&(next, "next".into())));
        assert_eq!(names.all().len(), if next.index() == one.index() { 2 } else { 3 });
    }
}
