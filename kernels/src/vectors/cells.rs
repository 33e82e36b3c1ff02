//! Cells of space with halos, which divide a join over workers.
//!
//! ```text
//!        │ cell 2                  a worker gets the vectors of its cell and of its halo:
//! cell 0 │┄┄┄┄┄┄┄┄┄┄┄ halo of 1    those that, at each split between them, are on the side of
//!        ├──────────────           the cell or within epsilon of the split
//!        │ cell 1
//! ```
//!
//! **No pair is lost.** Let `left` and `right` be a pair that joins, and `left` in a cell. If a
//! split `s` of dimension `d` is between them, `|right[d] - s| <= |right[d] - left[d]|`. Roundings
//! are monotone, so this also holds for the differences in float64 and their squares, and the
//! square for `d` is at most the computed sum of squares, which is at most the square of epsilon.
//! So `right` is within epsilon of the split, with the same arithmetic, and in the halo of the cell
//! of `left`. The worker of that cell has both, and is the only one that keeps the pair.

use super::epsilon::Epsilon;
use super::rows::Vectors;

/// Cells that divide a join over workers, by splits at the medians of a sample.
///
/// Each worker joins the [members](Self::members) of its cell, and keeps the pairs whose left
/// vector is [in its cell](Self::cell). In a join of two inputs, a left vector can go to its own
/// cell alone.
///
/// # Examples
///
/// ```
/// use trommel_kernels::vectors::{Epsilon, VectorCells, Vectors};
///
/// let sample = Vectors::new(&[0.0, 1.0, 2.0, 3.0], 1);
/// let cells = VectorCells::new(sample, Epsilon::new(0.5).unwrap(), 2);
/// let mut members = Vec::new();
/// cells.members(&[1.5], &mut members);
/// assert_eq!((cells.cell(&[1.5]), &members[..]), (1, &[0, 1][..]), "near the split");
/// cells.members(&[1.6], &mut members);
/// assert_eq!(members, [1]);
/// ```
#[derive(Clone, Debug)]
pub struct VectorCells {
    dims: usize,
    epsilon: Epsilon,
    /// The first node is the root; the left child of a split follows the split.
    nodes: Vec<Node>,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
enum Node {
    /// Values above `at` are in the right child.
    Split {
        dim: usize,
        at: f32,
        right: usize,
    },
    Cell(u32),
}

impl VectorCells {
    /// Maximum number of cells.
    pub const CELLS_MAX: usize = 1 << 16;

    /// `cells` cells with about as many vectors of `sample` each, for a join by `epsilon`.
    ///
    /// # Panics
    ///
    /// If there are no cells, or more than [`Self::CELLS_MAX`].
    #[must_use]
    pub fn new(sample: Vectors<'_>, epsilon: Epsilon, cells: usize) -> Self {
        let most = Self::CELLS_MAX;
        assert!((1..=most).contains(&cells), "{cells} cells of 1 to {most}");
        let mut made = Self { dims: sample.dims(), epsilon, nodes: Vec::new(), len: 0 };
        let mut rows: Vec<&[f32]> = sample.values().chunks_exact(sample.dims()).collect();
        made.grow(&mut rows, cells);
        made
    }

    /// Adds the nodes over `cells` cells with these rows.
    fn grow(&mut self, rows: &mut [&[f32]], cells: usize) {
        if cells == 1 {
            self.nodes.push(Node::Cell(self.len));
            self.len += 1;
            return;
        }
        let lower = cells / 2;
        let rank = rows.len() * lower / cells;
        let (mut dim, mut at) = (0, 0.0);
        if rank > 0 {
            dim = widest(self.dims, rows);
            let order = |left: &&[f32], right: &&[f32]| left[dim].total_cmp(&right[dim]);
            at = rows.select_nth_unstable_by(rank - 1, order).1[dim];
        }
        let (left, right) = rows.split_at_mut(rank);
        let split = self.nodes.len();
        self.nodes.push(Node::Split { dim, at, right: 0 });
        self.grow(left, lower);
        let right_node = self.nodes.len();
        self.nodes[split] = Node::Split { dim, at, right: right_node };
        self.grow(right, cells - lower);
    }

    /// Number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no cells: never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The cell of a vector.
    ///
    /// # Panics
    ///
    /// If the vector has too few coordinates.
    #[must_use]
    pub fn cell(&self, vector: &[f32]) -> u32 {
        let mut node = 0;
        loop {
            match self.nodes[node] {
                Node::Cell(cell) => return cell,
                Node::Split { dim, at, right } => {
                    node = if vector[dim] > at { right } else { node + 1 };
                }
            }
        }
    }

    /// Writes the cells to which a vector goes into `cells`: its own cell, and all cells in whose
    /// halo the vector is, in ascending order.
    ///
    /// # Panics
    ///
    /// If the vector has too few coordinates.
    pub fn members(&self, vector: &[f32], cells: &mut Vec<u32>) {
        cells.clear();
        self.visit(0, vector, cells);
    }

    fn visit(&self, node: usize, vector: &[f32], cells: &mut Vec<u32>) {
        match self.nodes[node] {
            Node::Cell(cell) => cells.push(cell),
            Node::Split { dim, at, right } => {
                let gap = f64::from(vector[dim]) - f64::from(at);
                let is_near = gap * gap <= self.epsilon.square();
                if is_near || gap <= 0.0 {
                    self.visit(node + 1, vector, cells);
                }
                if is_near || gap > 0.0 {
                    self.visit(right, vector, cells);
                }
            }
        }
    }
}

/// The dimension in which rows extend farthest.
fn widest(dims: usize, rows: &[&[f32]]) -> usize {
    let side = |dim: usize| {
        let values = || rows.iter().map(|row| f64::from(row[dim]));
        values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min)
    };
    (0..dims).max_by(|&left, &right| side(left).total_cmp(&side(right))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::square;

    /// Points on a grid whose steps are epsilon, slightly more or slightly less, at several scales.
    #[test]
    fn partners_are_members_of_the_cell() {
        for (scale, dims, cells) in [(1.0_f32, 1, 5), (3e38, 2, 4), (1e-44, 3, 7), (0.1, 2, 1)] {
            let step = |at: usize| (at % 11) as f32 * 0.09 * scale;
            let mut values: Vec<f32> =
                (0..120 * dims).map(|at| step(at * at + at / 7) * 0.99).collect();
            values.iter_mut().step_by(5).for_each(|value| *value = value.next_up());
            let vectors = Vectors::new(&values, dims);
            let pair = square(vectors.row(0), vectors.row(1)).sqrt();
            for epsilon in [0.0, pair, f64::from(scale) * 0.09, f64::from(scale) * 0.0891] {
                let epsilon = Epsilon::new(epsilon).unwrap();
                let divided = VectorCells::new(vectors, epsilon, cells);
                assert_eq!(divided.len(), cells);
                let mut members = Vec::new();
                for right in 0..vectors.len() {
                    divided.members(vectors.row(right), &mut members);
                    assert!(members.is_sorted() && members.len() <= cells);
                    assert!(members.contains(&divided.cell(vectors.row(right))));
                    for left in 0..vectors.len() {
                        let joins =
                            square(vectors.row(left), vectors.row(right)) <= epsilon.square();
                        let cell = divided.cell(vectors.row(left));
                        assert!(!joins || members.contains(&cell), "{left} and {right}");
                    }
                }
            }
        }
    }

    #[test]
    fn cells_have_about_as_many_vectors() {
        let values: Vec<f32> = (0..1000).map(|at| (at * 7919 % 1000) as f32).collect();
        let epsilon = Epsilon::new(1.0).unwrap();
        let cells = VectorCells::new(Vectors::new(&values, 1), epsilon, 3);
        let mut counts = [0; 3];
        values.iter().for_each(|&value| counts[cells.cell(&[value]) as usize] += 1);
        assert!(counts.iter().all(|count| (300..370).contains(count)), "{counts:?}");
        let none = VectorCells::new(Vectors::new(&[], 2), epsilon, 4);
        assert!(!none.is_empty() && none.cell(&[0.0, 0.0]) < 4);
    }
}
