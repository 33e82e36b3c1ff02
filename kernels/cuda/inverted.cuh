// inverted.cuh - the lists of a segment of an inverted index on a device: rows of the table, the
// search of an id, and ids by position. Layout and reasons: kernels/src/inverted/mod.rs.
#pragma once

#include "device.cuh"

// Words of the header and of a row of the table. The same: kernels/src/inverted/layout.rs.
constexpr u32 SEGMENT_HEADER = 16;
constexpr u32 SEGMENT_ROW = 4;
constexpr u32 WORD_BITS = 32;

// The same codes: kernels/src/inverted/layout.rs.
enum Form : u32 { INLINE, PLAIN, BUCKETS, BITS };

// The same layout: kernels/src/cuda/queries/index.rs.
struct Segment {
    const u32* words;
    u32 documents;
    u32 terms;
};

// The list of a term.
struct List {
    const u32* at;  // ids; the directory of buckets; words of bits
    u32 len;
    u32 form;
    u32 shift;    // of buckets: the logarithm of their width
    u32 entries;  // of buckets: words of the directory

    // The lower halves of the ids, by buckets.
    __device__ const u16* halves() const { return reinterpret_cast<const u16*>(at + entries); }
};

// The list of a term; an empty one for an unknown term.
__device__ inline List list_of(const Segment& segment, u32 term) {
    List list = {segment.words, 0, INLINE, 0, 0};
    if (term >= segment.terms) return list;
    const u32* const row = segment.words + SEGMENT_HEADER + static_cast<u64>(term) * SEGMENT_ROW;
    const uint4 words = *reinterpret_cast<const uint4*>(row);
    list.len = words.x;
    list.form = words.y & 0xff;
    list.shift = words.y >> 8 & 0xff;
    list.entries = ((segment.documents - 1) >> list.shift) + 2;
    const u64 place = words.z | static_cast<u64>(words.y >> 16) << 32;
    list.at = list.form == INLINE ? row + 2 : segment.words + place;
    return list;
}

// Words of a list of bits.
__device__ inline u32 bit_words(const Segment& segment) {
    return segment.documents / WORD_BITS + (segment.documents % WORD_BITS != 0);
}

// Whether `len` ascending ids from `begin` on hold one.
template <class Id>
__device__ inline bool is_among(const Id* ids, u32 begin, u32 len, Id id) {
    // The id is in `begin..begin + len`, if at all.
    while (len > 1) {
        const u32 half = len / 2;
        if (ids[begin + half] <= id) begin += half;
        len -= half;
    }
    return len == 1 && ids[begin] == id;
}

// Whether a list holds a document of the segment: one bit; a word of the directory and about four
// halves; or a binary search.
__device__ inline bool is_in(const List& list, u32 id) {
    if (list.form == BITS) return list.at[id / WORD_BITS] >> id % WORD_BITS & 1;
    if (list.form == BUCKETS) {
        const u32 bucket = id >> list.shift, begin = list.at[bucket];
        const u32 len = list.at[bucket + 1] - begin;
        return is_among(list.halves(), begin, len, static_cast<u16>(id));
    }
    return is_among(list.at, 0, list.len, id);
}

// The upper half of the id at a position of a list in buckets, known to be from `low` to `high`.
__device__ inline u32 upper_at(const List& list, u32 position, u32 low, u32 high) {
    while (low < high) {
        const u32 middle = high - (high - low) / 2;
        const bool is_later = list.at[middle << (16 - list.shift)] > position;
        low = is_later ? low : middle;
        high = is_later ? middle - 1 : high;
    }
    return low;
}

// The upper half of the id at a position of a list in buckets. The first 16 lanes of a warp have one
// position, the other 16 lanes another one; they test 16 buckets at once, so that few loads follow
// each other. All lanes of the warp call it.
__device__ inline u32 uppers_at(const List& list, u32 position, u32 last) {
    constexpr u32 TESTS = WARP / 2;
    u32 low = 0, high = last;
    while (__any_sync(FULL_WARP, low < high)) {
        const u32 step = (high - low) / TESTS + 1;
        const u32 upper = low + (lane_of_warp() % TESTS + 1) * step;
        const bool is_before = upper <= high && list.at[upper << (16 - list.shift)] <= position;
        const u32 before = __ballot_sync(FULL_WARP, is_before) >> (lane_of_warp() & TESTS);
        low += __popc(before & 0xffff) * step;
        high = smaller(high, low + step - 1);
    }
    return low;
}

// Ids of a list that is not one of bits, by position, in `begin..end`.
struct Ids {
    List list;
    u32 low, high;  // the upper halves of the first and the last of them

    // All lanes of a warp call it; the range is not empty.
    __device__ Ids(const Segment& segment, const List& list, u32 begin, u32 end)
        : list(list), low(0), high(0) {
        if (list.form != BUCKETS) return;
        const u32 position = lane_of_warp() < WARP / 2 ? begin : end - 1;
        const u32 upper = uppers_at(list, position, (segment.documents - 1) >> 16);
        low = __shfl_sync(FULL_WARP, upper, 0);
        high = __shfl_sync(FULL_WARP, upper, WARP - 1);
    }

    __device__ u32 operator[](u32 position) const {
        if (list.form != BUCKETS) return list.at[position];
        return upper_at(list, position, low, high) << 16 | list.halves()[position];
    }
};
