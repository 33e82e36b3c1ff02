//! Connected components of pairs of numbers.

use std::ops::Range;

/// A forest of numbers, in which each tree is a component.
#[derive(Debug, Default)]
pub(super) struct Components {
    /// The parent of each number; a root is its own parent.
    parents: Vec<u32>,
}

impl Components {
    /// Bytes of memory per number.
    pub(super) const BYTES: usize = size_of::<u32>();

    /// How many numbers the forest has.
    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.parents.capacity() * Self::BYTES
    }

    /// Adds the numbers up to `len`, each as a component of its own.
    pub(super) fn grow(&mut self, len: usize) {
        let begin = self.parents.len();
        self.parents.extend(
            (begin..len)
                .map(|number| u32::try_from(number).expect("numbers of items have 32 bits")),
        );
    }

    /// Joins the components of two numbers.
    pub(super) fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        // The root with the smaller number becomes the root of both trees.
        self.parents[one.max(other) as usize] = one.min(other);
    }

    /// The root of the component of a number.
    fn root(&mut self, mut number: u32) -> u32 {
        loop {
            let parent = self.parents[number as usize];
            if parent == number {
                return number;
            }
            // Path halving: every second number of the path gets its grandparent as its parent.
            let grandparent = self.parents[parent as usize];
            self.parents[number as usize] = grandparent;
            number = grandparent;
        }
    }

    /// Bytes that [`Self::grouped`] takes per number, including `order`.
    pub(super) const GROUPED_BYTES: usize = 4 * size_of::<u32>();

    /// The numbers by components. `order` has all numbers. Components stand in the order of their
    /// first numbers in `order`, and the numbers of a component stand in the order of `order`, too.
    pub(super) fn grouped(mut self, order: &[u32]) -> Groups {
        let mut group_of_root = vec![u32::MAX; self.len()];
        let mut starts = vec![0_u32];
        for &number in order {
            let group = &mut group_of_root[self.root(number) as usize];
            if *group == u32::MAX {
                *group = u32::try_from(starts.len() - 1).expect("at most as many as numbers");
                starts.push(0);
            }
            starts[*group as usize + 1] += 1;
        }
        for group in 1..starts.len() {
            starts[group] += starts[group - 1];
        }
        let mut members = vec![0; order.len()];
        for &number in order {
            // The start of a group moves to the end of the group, which is the start of the next
            // group.
            let group = group_of_root[self.root(number) as usize] as usize;
            members[starts[group] as usize] = number;
            starts[group] += 1;
        }
        // Each start is now the end of its group, and the last end occurs twice.
        starts.pop();
        starts.insert(0, 0);
        Groups { members, starts }
    }
}

/// Numbers by components.
#[derive(Debug)]
pub(super) struct Groups {
    /// The members of all groups, one group after the other.
    members: Vec<u32>,
    /// The start of each group, and the end of the last group.
    starts: Vec<u32>,
}

impl Groups {
    /// Number of groups.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The places of the members of a group.
    pub(super) fn places(&self, group: usize) -> Range<usize> {
        self.starts[group] as usize..self.starts[group + 1] as usize
    }

    /// The members of all groups.
    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }
}
