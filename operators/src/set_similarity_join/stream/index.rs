//! Which sets have a token in their prefix, by token, as they come and go.
//!
//! ```text
//! lists      (begin len room) (begin len room) (0 0 0) (begin len room) ..    by slot of the token
//! postings   | a b c . | d | e f | . . . . | g h i j k . . . |        rooms of 1, 2, 4, 8, ..
//! ```
//!
//! A list lies in a room, and moves to one twice as large when that is full. The room that it has
//! left, or that of a list that is empty, is kept for another list. Postings of a list are in the
//! order in which their sets came, so that those which leave the window are the first ones.

use trommel_kernels::arrivals::Posting;

/// The postings of a token.
#[derive(Debug, Clone, Copy, Default)]
struct PostingList {
    begin: u32,
    len: u32,
    /// How many there is room for: a power of two, or none.
    room: u32,
}

/// Sizes of rooms.
const CLASSES: usize = 32;

/// When there is room for so many times as many postings as there are, it is time to make the
/// index anew.
const WASTE: usize = 4;

/// With less room than this many times that, it is not.
const ROOM_MIN: usize = 16;

/// The most postings, and rooms for them, that there can be.
pub(super) const POSTINGS_MAX: usize = if cfg!(test) { 1 << 19 } else { u32::MAX as usize };

/// The index of all sets that are remembered.
#[derive(Debug, Default)]
pub(super) struct StreamIndex {
    /// By slot.
    lists: Vec<PostingList>,
    postings: Vec<Posting>,
    /// How many of the postings are in lists.
    used: usize,
    /// By the binary logarithm of their size: rooms that are free.
    rooms: [Vec<u32>; CLASSES],
    postings_max: usize,
}

impl StreamIndex {
    /// All postings, in which lists are ranges.
    pub(super) fn postings(&self) -> &[Posting] {
        &self.postings
    }

    /// Where a list begins.
    #[inline]
    pub(super) fn begin(&self, slot: u32) -> u32 {
        self.lists[slot as usize].begin
    }

    /// Has a list for each of so many slots from now on, and so many bytes for postings at most.
    pub(super) fn widen(&mut self, slots: usize, bytes_max: usize) {
        if slots > self.lists.capacity() {
            self.lists.reserve_exact(slots - self.lists.len() + slots / 4);
        }
        self.lists.resize(slots.max(self.lists.len()), PostingList::default());
        self.postings_max = (bytes_max / size_of::<Posting>()).min(POSTINGS_MAX);
    }

    /// Whether it is not memory that there may be no room for another posting.
    pub(super) fn may_be_largest(&self) -> bool {
        self.postings_max == POSTINGS_MAX
    }

    /// Adds a posting to a list; returns how many it had before, or none if there is no room.
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

    /// Moves a list that is full to a larger room.
    fn grow(&mut self, PostingList { begin, len, room }: PostingList) -> Option<PostingList> {
        let larger = if room == 0 { 1 } else { 2 * room };
        let to = self.room(larger)?;
        self.postings.copy_within(begin as usize..(begin + len) as usize, to as usize);
        self.free(begin, room);
        Some(PostingList { begin: to, len, room: larger })
    }

    /// A free room, or a new one.
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
            // By a half, not twice as many; and others need what is left, too.
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

    /// Drops the first postings of a list, as far as their sets are forgotten.
    pub(super) fn forget(&mut self, slot: u32, is_forgotten: impl Fn(u32) -> bool) {
        let PostingList { begin, len, room } = self.lists[slot as usize];
        let (first, end) = (begin as usize, (begin + len) as usize);
        let of_list = self.postings[first..end].iter();
        let dropped = of_list.take_while(|posting| is_forgotten(posting.set)).count();
        if dropped == 0 {
            return;
        }
        self.used -= dropped;
        if dropped == end - first {
            self.free(begin, room);
            self.lists[slot as usize] = PostingList::default();
        } else {
            self.postings.copy_within(first + dropped..end, first);
            self.lists[slot as usize].len -= u32::try_from(dropped).expect("a part of a list");
        }
    }

    /// Whether most of the room is empty.
    pub(super) fn is_wasteful(&self) -> bool {
        self.postings.len() > WASTE * self.used.max(ROOM_MIN)
    }

    /// Drops all lists.
    pub(super) fn clear(&mut self) {
        self.lists.clear();
        self.postings.clear();
        self.used = 0;
        self.rooms.iter_mut().for_each(Vec::clear);
    }

    /// Gives back memory, if there is much more than is needed.
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

    /// Bytes of the postings, and of the room for them.
    pub(super) fn bytes_of_postings(&self) -> usize {
        size_of::<Posting>() * self.postings.capacity()
    }

    /// Bytes that lists for so many slots take more.
    pub(super) fn growth(&self, slots: usize) -> usize {
        let is_room = slots <= self.lists.capacity();
        if is_room { 0 } else { size_of::<PostingList>() * (slots + slots / 4) }
    }
}
