//! The two inputs of a join.

/// Input of a join to which a set belongs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// The first input, or the only input of a self-join.
    #[default]
    Left,
    /// The second input.
    Right,
}

impl Side {
    /// 0 for the left side, 1 for the right side.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Left => 0,
            Self::Right => 1,
        }
    }
}
