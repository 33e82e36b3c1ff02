//! The two inputs of a join.

/// Input of a join that a set comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// The first input, or the only one of a self-join.
    #[default]
    Left,
    /// The second input.
    Right,
}

impl Side {
    /// 0 for the left side, 1 for the right one.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Left => 0,
            Self::Right => 1,
        }
    }
}
