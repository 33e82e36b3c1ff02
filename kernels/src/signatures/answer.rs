//! The answers of a call.

use super::call::Match;
use super::tile::Tile;

/// The matches of tiles, and the unfinished tiles. The room is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// The pairs that have their required overlap.
    pub matches: Vec<Match>,
    /// The parts of tiles that are not done, because there was no room for more matches.
    pub unfinished: Vec<Tile>,
    /// Pairs of the finished tiles that the signatures have let through.
    pub survivors: u64,
}

impl Joined {
    /// Drops everything and keeps the room.
    pub fn clear(&mut self) {
        self.matches.clear();
        self.unfinished.clear();
        self.survivors = 0;
    }

    /// The numbers of matches and survivors.
    #[must_use]
    pub fn counted(&self) -> Counted {
        Counted { matches: self.matches.len() as u64, survivors: self.survivors }
    }
}

/// The numbers of pairs of tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Pairs that have their required overlap.
    pub matches: u64,
    /// Pairs that the signatures have let through.
    pub survivors: u64,
}
