//! A heap of classes by start tag, with the position of each class.

use alloc::vec::Vec;

use crate::class_tree::NodeId;
use crate::tag::is_after;

/// Encoding: The position of a node that is in no heap.
pub(crate) const NOWHERE: u16 = u16::MAX;

/// A binary heap with the smallest tag first; among equal tags, the node with the lowest number. The
/// caller keeps the positions, one for each node. So any class can leave in logarithmic time.
#[derive(Debug, Default)]
pub(crate) struct TagHeap {
    entries: Vec<(u64, NodeId)>,
}

impl TagHeap {
    pub(crate) fn first(&self) -> Option<(u64, NodeId)> {
        self.entries.first().copied()
    }

    /// All nodes in the heap, in no particular order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.entries.iter().map(|&(_, node)| node)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn insert(&mut self, positions: &mut [u16], node: NodeId, tag: u64) {
        self.entries.push((tag, node));
        self.rise(positions, self.entries.len() - 1);
    }

    pub(crate) fn remove(&mut self, positions: &mut [u16], node: NodeId) {
        let at = usize::from(core::mem::replace(&mut positions[usize::from(node)], NOWHERE));
        if at >= self.entries.len() {
            return;
        }
        debug_assert_eq!(self.entries[at].1, node, "a heap knows where its members are");
        self.entries.swap_remove(at);
        if at < self.entries.len() && (at == 0 || self.rise(positions, at) == at) {
            self.sink(positions, at);
        }
    }

    /// Raises the tag of the first entry to `tag`.
    pub(crate) fn raise_first(&mut self, positions: &mut [u16], tag: u64) {
        if let [first, others @ ..] = &mut self.entries[..] {
            first.0 = tag;
            if !others.is_empty() {
                self.sink(positions, 0);
            }
        }
    }

    /// Sets the tag of every entry to its present one, which may be lower.
    pub(crate) fn renew(&mut self, positions: &mut [u16], tag: impl Fn(NodeId) -> u64) {
        self.entries.iter_mut().for_each(|entry| entry.0 = tag(entry.1));
        for at in (0..self.entries.len() / 2).rev() {
            self.sink(positions, at);
        }
    }

    fn rise(&mut self, positions: &mut [u16], mut at: usize) -> usize {
        let entry = self.entries[at];
        while at > 0 {
            let above = (at - 1) / 2;
            if !precedes(entry, self.entries[above]) {
                break;
            }
            self.place(positions, at, self.entries[above]);
            at = above;
        }
        self.place(positions, at, entry);
        at
    }

    fn sink(&mut self, positions: &mut [u16], mut at: usize) {
        let entry = self.entries[at];
        loop {
            let left = 2 * at + 1;
            let Some(&left_entry) = self.entries.get(left) else { break };
            let below = match self.entries.get(left + 1) {
                Some(&right_entry) if precedes(right_entry, left_entry) => left + 1,
                _ => left,
            };
            if !precedes(self.entries[below], entry) {
                break;
            }
            self.place(positions, at, self.entries[below]);
            at = below;
        }
        self.place(positions, at, entry);
    }

    fn place(&mut self, positions: &mut [u16], at: usize, entry: (u64, NodeId)) {
        self.entries[at] = entry;
        positions[usize::from(entry.1)] = at as u16;
    }
}

fn precedes(one: (u64, NodeId), other: (u64, NodeId)) -> bool {
    if one.0 == other.0 { one.1 < other.1 } else { is_after(other.0, one.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_sorted_set(
            base in prop::sample::select(&[0, 1 << 63, u64::MAX - 25]),
            steps in prop::collection::vec((0u8..4, 0u16..40, 0u64..50), 0..300),
        ) {
            // the model's tags do not wrap, and the heap's do
            let wrapped = |tag: u64| base.wrapping_add(tag);
            let mut positions = alloc::vec![NOWHERE; 40];
            let mut heap = TagHeap::default();
            let mut model = BTreeSet::new();
            for (kind, node, tag) in steps {
                let present = model.iter().copied().find(|&(_, n)| n == node);
                match (kind, present) {
                    (0, None) => {
                        heap.insert(&mut positions, node, wrapped(tag));
                        model.insert((tag, node));
                    }
                    (1, Some(entry)) => {
                        heap.remove(&mut positions, node);
                        model.remove(&entry);
                    }
                    (2, _) => {
                        if let Some((old, first)) = model.pop_first() {
                            heap.raise_first(&mut positions, wrapped(old + tag));
                            model.insert((old + tag, first));
                        }
                    }
                    (3, _) => {
                        let renewed = |node: NodeId| (tag + 7 * u64::from(node)) % 50;
                        heap.renew(&mut positions, |node| wrapped(renewed(node)));
                        model = model.iter().map(|&(_, node)| (renewed(node), node)).collect();
                    }
                    _ => {}
                }
                let first = model.first().map(|&(tag, node)| (wrapped(tag), node));
                prop_assert_eq!(heap.first(), first);
                for (at, &(_, node)) in heap.entries.iter().enumerate() {
                    prop_assert_eq!(usize::from(positions[usize::from(node)]), at);
                }
            }
        }
    }
}
