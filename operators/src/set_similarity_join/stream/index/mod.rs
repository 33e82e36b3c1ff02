//! Index of a stream: per token, the sets in the window whose prefix has it.
//!
//! ```text
//! lists      (begin len room) (begin len room) (0 0 0) (begin len room) ..    by slot of the token
//! postings   | a b c . | d | e f | . . . . | g h i j k . . . |        rooms of 1, 2, 4, 8, ..
//! ```
//!
//! A posting list is in a *room*, whose number of places is a power of two. A list moves to a room
//! of twice the size when its room is full. The old room of the list, and the room of a list that
//! has become empty, are kept for other lists. The postings of a list are in the order of arrival,
//! so the postings that leave the window are at its front.

pub(crate) mod newest_first;
pub(crate) mod slot_table;

use std::ops::Range;

use trommel_kernels::prefetch;
use trommel_kernels::stream_postings::Posting;

/// The posting list of a token.
#[derive(Debug, Clone, Copy, Default)]
struct PostingList {
    begin: u32,
    len: u32,
    /// Number of places of the room: a power of two, or 0.
    room: u32,
}

/// Number of room sizes.
const CLASSES: usize = 32;

/// The index is rebuilt when the index has more than `WASTE` places for each posting in use, and
/// more than `WASTE * POSTINGS_MIN` places in all.
const WASTE: usize = 4;
const POSTINGS_MIN: usize = 16;

/// Maximum number of postings that are moved one by one: most lists are short, and a call of
/// `copy_within` costs more for these.
const MOVED_SINGLY: usize = 8;

/// Posting lists of all sets in the window.
#[derive(Debug)]
pub(super) struct StreamIndex {
    /// For each slot: the list of its token.
    lists: Vec<PostingList>,
    postings: Vec<Posting>,
    /// Number of postings that are in lists.
    used: usize,
    /// Free rooms, by the binary logarithm of their size.
    rooms: [Vec<u32>; CLASSES],
    /// Maximum length of `postings` by the numbers, and maximum length by the numbers and the
    /// memory.
    limit: usize,
    postings_max: usize,
}

impl StreamIndex {
    /// An empty index that never has more than `limit` postings, free places included.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            lists: Vec::new(),
            postings: Vec::new(),
            used: 0,
            rooms: [const { Vec::new() }; CLASSES],
            limit,
            postings_max: 0,
        }
    }

    /// All postings; a list is a range of the postings.
    pub(super) fn postings(&self) -> &[Posting] {
        &self.postings
    }

    /// Start of the list of `slot` among all postings.
    #[inline]
    pub(super) fn begin(&self, slot: u32) -> u32 {
        self.lists[slot as usize].begin
    }

    /// Prefetches the list of `slot`, without its postings.
    #[inline]
    pub(super) fn prefetch_list(&self, slot: u32) {
        prefetch(&self.lists, slot as usize);
    }

    /// Prefetches the oldest posting of `slot`.
    #[inline]
    pub(super) fn prefetch_first(&self, slot: u32) {
        prefetch(&self.postings, self.begin(slot) as usize);
    }

    /// Prefetches the end of the list of `slot`: the place of the next posting, or the last posting
    /// if the list is full and will move.
    #[inline]
    pub(super) fn prefetch_end(&self, slot: u32) {
        let PostingList { begin, len, room } = self.lists[slot as usize];
        let end = (begin + len).saturating_sub(u32::from(len == room));
        prefetch(&self.postings, end as usize);
    }

    /// Makes a list for each of `slots` slots, and limits the postings to `bytes_max` bytes.
    pub(super) fn widen(&mut self, slots: usize, bytes_max: usize) {
        if slots > self.lists.capacity() {
            self.lists.reserve_exact(slots - self.lists.len() + slots / 4);
        }
        self.lists.resize(slots.max(self.lists.len()), PostingList::default());
        self.postings_max = (bytes_max / size_of::<Posting>()).min(self.limit);
    }

    /// The maximum number of postings, if this number limits the index before the memory does.
    pub(super) fn binding_limit(&self) -> Option<usize> {
        (self.postings_max == self.limit).then_some(self.limit)
    }

    /// Appends a posting to the list of `slot`; returns the length of the list before, or `None`
    /// if there is no room.
    #[inline]
    pub(super) fn push(&mut self, slot: u32, posting: Posting) -> Option<u32> {
        let mut list = self.lists[slot as usize];
        if list.len == list.room {
            list = self.grow(list)?;
        }
        self.postings[(list.begin + list.len) as usize] = posting;
        self.used += 1;
        list.len += 1;
        self.lists[slot as usize] = list;
        Some(list.len - 1)
    }

    /// Moves a full list to a room twice as large.
    fn grow(&mut self, PostingList { begin, len, room }: PostingList) -> Option<PostingList> {
        let larger = if room == 0 { 1 } else { 2 * room };
        let to = self.room(larger)?;
        self.shift(begin as usize..(begin + len) as usize, to as usize);
        self.free(begin, room);
        Some(PostingList { begin: to, len, room: larger })
    }

    /// Copies the postings `from` to the places from `to` on. `to` is not a later place of `from`,
    /// so an ascending copy overwrites no posting that is still to be copied.
    #[inline]
    fn shift(&mut self, from: Range<usize>, to: usize) {
        if from.len() > MOVED_SINGLY {
            self.postings.copy_within(from, to);
            return;
        }
        for (to, from) in (to..).zip(from) {
            self.postings[to] = self.postings[from];
        }
    }

    /// Start of a room of `size` places: a free room, or a new room at the end.
    fn room(&mut self, size: u32) -> Option<u32> {
        if let Some(room) = self.rooms[size.trailing_zeros() as usize].pop() {
            return Some(room);
        }
        let (begin, size) = (self.postings.len(), size as usize);
        let left = self.postings_max.checked_sub(begin)?;
        if left < size {
            return None;
        }
        if self.postings.capacity() - begin < size {
            // The vector grows by a half, not to twice the size, because panes and tokens share the
            // budget.
            self.postings.reserve_exact(size.max(begin.min(left) / 2));
        }
        self.postings.resize(begin + size, Posting::default());
        Some(u32::try_from(begin).expect("fewer than 2^32 postings"))
    }

    fn free(&mut self, begin: u32, room: u32) {
        if room > 0 {
            self.rooms[room.trailing_zeros() as usize].push(begin);
        }
    }

    /// Drops the postings at the front of the list of `slot` whose set `is_forgotten`.
    pub(super) fn forget(&mut self, slot: u32, is_forgotten: impl Fn(u32) -> bool) {
        let PostingList { begin, len, room } = self.lists[slot as usize];
        let (first, end) = (begin as usize, (begin + len) as usize);
        let of_list = self.postings[first..end].iter();
        let dropped = of_list.take_while(|posting| is_forgotten(posting.set)).count();
        // The first set of an expired pane drops the postings of all sets of that pane from this
        // list; the calls for the later sets find no such posting.
        if dropped == 0 {
            return;
        }
        self.used -= dropped;
        if dropped == end - first {
            self.free(begin, room);
            self.lists[slot as usize] = PostingList::default();
        } else {
            self.shift(first + dropped..end, first);
            self.lists[slot as usize].len -= u32::try_from(dropped).expect("a part of a list");
        }
    }

    /// Whether most places hold no posting, so that rebuilding the index saves memory.
    pub(super) fn is_wasteful(&self) -> bool {
        self.postings.len() > WASTE * self.used.max(POSTINGS_MIN)
    }

    /// Drops all lists.
    pub(super) fn clear(&mut self) {
        self.lists.clear();
        self.postings.clear();
        self.used = 0;
        self.rooms.iter_mut().for_each(Vec::clear);
    }

    /// Frees memory, if much more is allocated than needed.
    pub(super) fn shrink(&mut self) {
        let len = self.postings.len();
        if self.postings.capacity() > len + len / 2 {
            self.postings.shrink_to(len + len / 4);
        }
        self.lists.shrink_to(self.lists.len() + self.lists.len() / 4);
    }

    pub(super) fn bytes(&self) -> usize {
        let rooms: usize = self.rooms.iter().map(Vec::capacity).sum();
        let of_lists = size_of::<PostingList>() * self.lists.capacity();
        of_lists + self.bytes_of_postings() + size_of::<u32>() * rooms
    }

    /// Bytes allocated for postings.
    pub(super) fn bytes_of_postings(&self) -> usize {
        size_of::<Posting>() * self.postings.capacity()
    }

    /// Bytes that lists for `slots` slots need in addition.
    pub(super) fn growth(&self, slots: usize) -> usize {
        let is_room = slots <= self.lists.capacity();
        if is_room { 0 } else { size_of::<PostingList>() * (slots + slots / 4) }
    }
}
