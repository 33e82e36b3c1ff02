// queries.cuh - conjunctive queries on a device: the order of their lists, and units of work.
// Contract: kernels/src/cuda/queries.
//
// A unit is 256 ids of the shortest list of a query that is not a bitmap, or 1,024 words where all
// lists are bitmaps; a warp takes it. The first unit of a query needs no description; the others
// are in a list that the warp of the query writes:
//
//   work     | query 0 | query 1 | .. | unit 0 | unit 1 | ..     the first units, then the list
//   a query  | first unit | units of the list, neighbours | tail: units without room in the list
#pragma once

#include "inverted.cuh"

constexpr u32 QUERY_THREADS = 256;
constexpr u32 QUERY_WARPS = QUERY_THREADS / WARP;

constexpr u32 UNIT_IDS = 256;
constexpr u32 UNIT_GROUPS = UNIT_IDS / WARP;
constexpr u32 UNIT_WORDS = 1024;
// Words of bits that a lane combines at once.
constexpr u32 LANE_WORDS = 8;

// The same layout: kernels/src/cuda/queries/buffers.rs.
struct Unit {
    u32 query;
    u32 begin;  // the first position or word
};

// Units of a query in the list. The same layout: kernels/src/cuda/queries/documents.rs.
struct Listed {
    u32 first;
    u32 count;
};

// The same layout: kernels/src/cuda/queries/buffers.rs.
struct Queries {
    Segment segment;
    const u32* offsets;  // of the terms of each query, and the end
    const u32* terms;
    u32* ordered;     // the terms of each query, the source first
    u64* unit_count;  // of all units after the first ones, also without room; zero at the start
    Unit* units;
    u32* found;  // of each query by its first unit and its tail, or by all of them
    u32 query_count;
    u32 unit_room;
};

// Lists of a query that a warp keeps in its memory; those after them are looked up again.
constexpr u32 KNOWN_LISTS = 8;

// The memory of a warp. The same size: kernels/src/cuda/queries/launch.rs.
struct WarpMemory {
    List lists[KNOWN_LISTS];
    u32 ids[UNIT_IDS];           // of a unit
    u32 hits[UNIT_GROUPS];       // a bit for each of them that is in all lists
    unsigned char alive[UNIT_IDS];  // positions of the ids that were in all lists so far
};

// A query with its lists in order, the same in all lanes of a warp.
struct Query {
    const u32* terms;
    u32 lists;
    List source;  // whose ids are searched in the others
    u32 len;      // positions of the source, or its words if all lists are bits
    u32 unit;     // positions of a unit

    const List* known;
    u32 known_count;

    // A query whose terms are ordered.
    __device__ Query(const Queries& queries, u32 query) : known(nullptr), known_count(0) {
        const u32 begin = queries.offsets[query];
        terms = queries.ordered + begin;
        lists = queries.offsets[query + 1] - begin;
        set_source(queries.segment, list_of(queries.segment, terms[0]));
    }

    // The same, with its first lists in the memory of a warp, all of whose lanes call it: each
    // looks up one, so that the loads do not wait for each other.
    __device__ Query(const Queries& queries, u32 query, WarpMemory& memory)
        : known(memory.lists) {
        const u32 begin = queries.offsets[query];
        terms = queries.ordered + begin;
        lists = queries.offsets[query + 1] - begin;
        known_count = smaller(lists, KNOWN_LISTS);
        __syncwarp();  // The lists of the last query are read, and the terms are in order.
        if (lane_of_warp() < known_count) {
            memory.lists[lane_of_warp()] = list_of(queries.segment, terms[lane_of_warp()]);
        }
        __syncwarp();  // Those of this one are there.
        set_source(queries.segment, memory.lists[0]);
    }

    __device__ void set_source(const Segment& segment, const List& list) {
        source = list;
        len = list.form == BITS ? bit_words(segment) : list.len;
        unit = list.form == BITS ? UNIT_WORDS : UNIT_IDS;
    }

    // A list by its place in the order.
    __device__ List list(const Segment& segment, u32 i) const {
        return i < known_count ? known[i] : list_of(segment, terms[i]);
    }

    // The end of the unit that begins at a position.
    __device__ u32 end(u32 begin) const { return begin + smaller(unit, len - begin); }

    // The units after the first one.
    __device__ u32 units() const { return (len - 1) / unit; }
};

// The key by which terms are ordered: bits last, then by length, then by position, so that no two
// keys are equal. `none` for positions past the end.
__device__ inline u64 key_of(const Segment& segment, const u32* terms, u32 position, u32 count) {
    if (position >= count) return ~0ull;
    const List list = list_of(segment, terms[position]);
    return static_cast<u64>(list.form == BITS) << 63 | static_cast<u64>(list.len) << 31 | position;
}

// Writes the terms of a query in the order of their keys, to be read after a barrier. Whether no
// list is empty, and there is one. All lanes of a warp call it.
__device__ inline bool order_terms(const Queries& queries, u32 query) {
    const u32 begin = queries.offsets[query], count = queries.offsets[query + 1] - begin;
    const u32* const terms = queries.terms + begin;
    bool is_empty = count == 0;
    for (u32 tile = 0; tile < count; tile += WARP) {
        const u32 position = tile + lane_of_warp();
        const u64 key = key_of(queries.segment, terms, position, count);
        u32 rank = 0;
        for (u32 other = 0; other < count; other += WARP) {
            const u64 keys = other == tile ? key
                                           : key_of(queries.segment, terms, other + lane_of_warp(),
                                                    count);
            const u32 end = smaller(WARP, count - other);
            for (u32 i = 0; i < end; ++i) rank += __shfl_sync(FULL_WARP, keys, i) < key;
        }
        if (position < count) queries.ordered[begin + rank] = terms[position];
        is_empty |= key >> 31 == 0;
    }
    return !__any_sync(FULL_WARP, is_empty);
}

// The number of ids of a unit that are in all lists, of which there are two at least; with HITS
// also their bits in the warp's memory.
//
// Only ids that were in all lists so far are searched in the next one: their positions are moved
// together, so that all lanes have one.
template <bool HITS>
__device__ inline u32 search_ids(const Segment& segment, const Query& query, u32 begin,
                                 WarpMemory& memory) {
    const u32 lane = lane_of_warp(), end = query.end(begin);
    const Ids ids(segment, query.source, begin, end);
    if (HITS && lane < UNIT_GROUPS) memory.hits[lane] = 0;
    for (u32 at = lane; at < end - begin; at += WARP) memory.ids[at] = ids[begin + at];
    u32 left = end - begin;
    for (u32 i = 1; i < query.lists && left; ++i) {
        const List list = query.list(segment, i);
        u32 kept = 0;
        __syncwarp();  // The ids, and the positions of the last list, are there.
        for (u32 group = 0; group < left; group += WARP) {
            const u32 at = group + lane;
            const u32 position = i > 1 ? memory.alive[at] : at;
            const bool is_hit = at < left && is_in(list, memory.ids[position]);
            const u32 hits = __ballot_sync(FULL_WARP, is_hit);
            __syncwarp();  // Positions of the group are read before others take their places.
            if (is_hit) memory.alive[kept + __popc(hits & lanes_below())] = position;
            kept += __popc(hits);
        }
        left = kept;
    }
    if (HITS) {
        __syncwarp();  // The last positions are there, and no bit is set.
        for (u32 at = lane; at < left; at += WARP) {
            const u32 position = memory.alive[at];
            atomicOr(&memory.hits[position / WARP], 1u << position % WARP);
        }
    }
    __syncwarp();  // The bits are there, and the memory may be used for the next unit.
    return left;
}

// The common words of all lists from `begin` on: of lane `l` the words `l`, `l + 32`, ..; zeros
// from `end` on.
__device__ inline void combine_words(const Segment& segment, const Query& query, u32 begin,
                                     u32 end, u32 (&words)[LANE_WORDS]) {
#pragma unroll
    for (u32 i = 0; i < LANE_WORDS; ++i) {
        words[i] = begin + i * WARP + lane_of_warp() < end ? ~0u : 0;
    }
    for (u32 list = 0; list < query.lists; ++list) {
        const u32* const bits = query.list(segment, list).at;
#pragma unroll
        for (u32 i = 0; i < LANE_WORDS; ++i) {
            const u32 at = begin + i * WARP + lane_of_warp();
            if (at < end) words[i] &= bits[at];
        }
    }
}

// The number of documents of a unit of words.
__device__ inline u32 count_words(const Segment& segment, const Query& query, u32 begin) {
    const u32 end = query.end(begin);
    u32 count = 0, words[LANE_WORDS];
    for (u32 at = begin; at < end; at += LANE_WORDS * WARP) {
        combine_words(segment, query, at, end, words);
#pragma unroll
        for (u32 i = 0; i < LANE_WORDS; ++i) count += __popc(words[i]);
    }
    return __shfl_sync(FULL_WARP, warp_sum(count), 0);
}

// The number of documents of a unit, in all lanes; with HITS also the bits of its ids.
template <bool HITS>
__device__ inline u32 search_unit(const Segment& segment, const Query& query, u32 begin,
                                  WarpMemory& memory) {
    if (query.source.form == BITS) return count_words(segment, query, begin);
    if (query.lists == 1) return query.end(begin) - begin;
    return search_ids<HITS>(segment, query, begin, memory);
}

// Writes the units of a query after its first one to the list, as far as they have room. All lanes
// of a warp call it.
__device__ inline Listed list_units(const Queries& queries, u32 query, const Query& own) {
    const u32 count = own.units();
    if (count == 0) return {0, 0};
    u64 first = 0;
    if (lane_of_warp() == 0) first = atomicAdd(queries.unit_count, static_cast<u64>(count));
    first = __shfl_sync(FULL_WARP, first, 0);
    if (first >= queries.unit_room) return {0, 0};
    const u32 begin = static_cast<u32>(first), listed = smaller(count, queries.unit_room - begin);
    for (u32 i = lane_of_warp(); i < listed; i += WARP) {
        queries.units[begin + i] = {query, (i + 1) * own.unit};
    }
    return {begin, listed};
}

// The number of units in the list.
__device__ inline u32 listed_units(const Queries& queries) {
    const u64 count = *queries.unit_count;
    return count < queries.unit_room ? static_cast<u32>(count) : queries.unit_room;
}
