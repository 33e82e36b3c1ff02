//! The two inputs of a join.

/// Which of the two inputs of a join a set belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// The first input, or the only one of a self-join.
    #[default]
    Left,
    /// The second input.
    Right,
}

impl Side {
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Left => 0,
            Self::Right => 1,
        }
    }
}
