//! The assignment of threads to I/O threads. The I/O thread of a thread is pinned to the thread's
//! NUMA node.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::submitter::Submitter;

/// The I/O threads of an I/O group, by NUMA node.
#[derive(Debug)]
pub(super) struct Coordinators {
    /// The I/O threads of each node; none for a node of another I/O group.
    of_node: Box<[Vec<usize>]>,
    /// The CPUs of the nodes of each I/O thread.
    cpus: Box<[Vec<usize>]>,
}

impl Coordinators {
    /// Divides `count` I/O threads, at least 1, among the nodes for which `serves` is true. The
    /// numbers of two nodes differ by at most one. If there are fewer I/O threads than nodes, nodes
    /// share them. `node_of_cpu` has the node of each CPU.
    pub(super) fn new(node_of_cpu: &[usize], serves: impl Fn(usize) -> bool, count: usize) -> Self {
        let nodes = node_of_cpu.iter().max().map_or(1, |last| last + 1);
        let served: Vec<usize> = (0..nodes).filter(|node| serves(*node)).collect();
        let mut of_node = vec![Vec::new(); nodes];
        let mut cpus = vec![Vec::new(); count];
        for index in 0..served.len().max(count) {
            let Some(&node) = served.get(index % served.len().max(1)) else { break };
            let thread = index % count;
            of_node[node].push(thread);
            let of_this = (0..node_of_cpu.len()).filter(|cpu| node_of_cpu[*cpu] == node);
            cpus[thread].extend(of_this);
        }
        Self { of_node: of_node.into(), cpus: cpus.into() }
    }

    pub(super) fn count(&self) -> usize {
        self.cpus.len()
    }

    /// The number of the I/O thread for a submitting thread, which never changes.
    pub(super) fn of(&self, submitter: Submitter) -> usize {
        match self.of_node.get(submitter.node) {
            Some(threads) if !threads.is_empty() => {
                threads[(submitter.number_on_node % threads.len() as u64) as usize]
            }
            // The thread first submitted on a node of another I/O group.
            _ => (submitter.number % self.count() as u64) as usize,
        }
    }

    /// The CPUs to which an I/O thread is pinned.
    pub(super) fn cpus(&self, thread: usize) -> Vec<usize> {
        self.cpus.get(thread).cloned().unwrap_or_default()
    }
}

/// Pins the calling thread to those of these CPUs that it may use. It has no effect if there are
/// none.
pub(super) fn pin(cpus: &[usize]) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut wanted = CpuSet::new();
    let cpus = cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU);
    cpus.filter(|cpu| allowed.is_set(**cpu)).for_each(|cpu| wanted.set(*cpu));
    if wanted.count() > 0 && wanted.count() < allowed.count() {
        // A thread that cannot be pinned works on any CPU.
        let _ = sched_setaffinity(None, &wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::numa::recorded;

    fn nodes_of(node_of_cpu: &[usize]) -> usize {
        node_of_cpu.iter().max().map_or(1, |last| last + 1)
    }

    /// Threads that start on the nodes in turn.
    fn submitters(nodes: usize) -> Vec<Submitter> {
        let of = |number: u64| Submitter {
            number,
            node: (number % nodes as u64) as usize,
            number_on_node: number / nodes as u64,
        };
        (0..48).map(of).collect()
    }

    #[test]
    fn each_thread_has_an_io_thread_of_its_node_which_is_pinned_there() {
        for (machine, node_of_cpu) in recorded::machines() {
            let nodes = nodes_of(&node_of_cpu);
            for count in nodes..3 * nodes {
                let coordinators = Coordinators::new(&node_of_cpu, |_| true, count);
                let mut used = vec![0; count];
                for submitter in submitters(nodes) {
                    let thread = coordinators.of(submitter);
                    used[thread] += 1;
                    let cpus = coordinators.cpus(thread);
                    let here = |cpu: &usize| node_of_cpu[*cpu] == submitter.node;
                    assert_eq!(cpus.is_empty(), node_of_cpu.is_empty(), "{machine}, {count}");
                    assert!(cpus.iter().all(here), "{machine}, {count}");
                }
                // Each I/O thread of a node has as much work as the others there.
                assert!(used.iter().all(|used| *used >= 48 / count / 2), "{machine}: {used:?}");
            }
        }
    }

    #[test]
    fn nodes_share_an_io_thread_where_there_are_fewer() {
        for (machine, node_of_cpu) in recorded::machines() {
            let nodes = nodes_of(&node_of_cpu);
            let one = Coordinators::new(&node_of_cpu, |_| true, 1);
            assert!(submitters(nodes).into_iter().all(|submitter| one.of(submitter) == 0));
            assert_eq!(one.cpus(0).len(), node_of_cpu.len(), "{machine}");
        }
    }

    #[test]
    fn an_io_group_has_io_threads_on_its_own_nodes() {
        for (machine, node_of_cpu) in recorded::machines() {
            let nodes = nodes_of(&node_of_cpu);
            for group in 0..nodes {
                let of_group = Coordinators::new(&node_of_cpu, |node| node == group, 2);
                for thread in 0..2 {
                    let cpus = of_group.cpus(thread);
                    let here = |cpu: &usize| node_of_cpu[*cpu] == group;
                    assert_eq!(cpus.is_empty(), node_of_cpu.is_empty(), "{machine}");
                    assert!(cpus.iter().all(here), "{machine}");
                }
            }
        }
    }

    #[test]
    fn a_thread_is_pinned_within_what_it_may_use() {
        std::thread::spawn(|| {
            let before = sched_getaffinity(None).unwrap();
            pin(&[CpuSet::MAX_CPU - 1]);
            assert_eq!(sched_getaffinity(None).unwrap(), before);
            let first = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).unwrap();
            pin(&[first, CpuSet::MAX_CPU + 7]);
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        })
        .join()
        .unwrap();
    }
}
