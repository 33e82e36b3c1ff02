// vector_loops.cuh - epsilon joins as published: nested loops, and the directory of quantiles.
// Contract: kernels/src/cuda/vectors. Source: Boehm, Noll, Plant, Zherdin, Index-supported
// Similarity Join on Graphics Processors, BTW 2009, figures 3 and 5.
//
// A thread has a left vector, and a block 64 of them; right vectors come by a tile in shared memory.
// The directory leads past the pages that no vector of the block can reach.
//
// Departures: a tile has several vectors, a self-join has each pair once, a float32 sum drops most
// pairs before the exact one, and a unit that finds no room for a match is left.
#pragma once

#include "vectors.cuh"

constexpr u32 LOOP_THREADS = 64;
constexpr u32 FANOUT = 16;
constexpr u32 PAGES = FANOUT * FANOUT * FANOUT;

// The levels of a directory: the extent of each part in the dimension of its level, and the first
// vector of each page. Parts without vectors have a low end above the high one. The same layout:
// kernels/src/cuda/vectors/directory.rs.
struct Directory {
    const float2* parts;  // FANOUT, then FANOUT * FANOUT, then PAGES
    const u32* pages;     // PAGES + 1
    const float2* bounds;  // of each 32 left vectors, in the three dimensions
};

// The left vector of a lane: in registers if it has at most DIMS dimensions.
template <u32 DIMS>
struct QueryVector {
    float values[DIMS];

    __device__ QueryVector(const float* row, u32 dims) {
#pragma unroll
        for (u32 d = 0; d < DIMS; ++d) values[d] = d < dims ? row[d] : 0;
    }
    __device__ float at(u32 d) const { return values[d]; }
    __device__ constexpr u32 dims(u32) const { return DIMS; }
};

template <>
struct QueryVector<0> {
    const float* row;

    __device__ QueryVector(const float* from, u32) : row(from) {}
    __device__ float at(u32 d) const { return row[d]; }
    __device__ u32 dims(u32 all) const { return all; }
};

// Copies right vectors to shared memory, filled up to `stride` numbers with zeros.
__device__ inline void copy_tile(const Vectors& right, u32 first, u32 count, u32 stride,
                                 float* tile) {
    __syncthreads();  // Nobody reads the tile before any more.
    for (u32 at = threadIdx.x; at < count * stride; at += LOOP_THREADS) {
        const u32 row = at / stride, d = at % stride;
        const u64 from = static_cast<u64>(first + row) * right.dims + d;
        tile[at] = d < right.dims ? right.rows[from] : 0;
    }
    __syncthreads();  // The tile is there.
}

// Joins the lanes' vectors, `left` the calling lane's place, with a tile. False if a match found no
// room.
template <u32 DIMS>
__device__ bool join_tile(const Vectors& from, const Vectors& right, const QueryVector<DIMS>& query,
                          u32 left, u32 first, u32 count, const float* tile, Matches& matches) {
    const Question& question = matches.question;
    const u32 dims = query.dims(right.dims);
    for (u32 i = 0; i < count; ++i) {
        const float* const row = tile + i * dims;
        float sum = 0;
#pragma unroll
        for (u32 d = 0; d < dims; ++d) sum = add_square(sum, query.at(d), row[d]);
        const bool is_pair = left < from.len && (!question.is_self || left < first + i);
        const bool passes = is_pair && sum <= question.bound;
        if (!__any_sync(FULL_WARP, passes)) continue;
        double square = 0;
        if (passes) {
#pragma unroll
            for (u32 d = 0; d < dims; ++d) square = add_square(square, query.at(d), row[d]);
        }
        const bool is_match = passes && square <= question.limit;
        const u32 id = is_match ? from.id(left) : 0, other = is_match ? right.id(first + i) : 0;
        if (!matches.take(is_match, id, other, square)) return false;
    }
    return true;
}

// The unit of each warp of a block: the two units from `2 * pair` on, or none.
__device__ inline JoinUnit unit_of_warp(const JoinUnits& units, u32 pair, u32 warp, bool& is_there) {
    const u32 at = 2 * pair + warp;
    is_there = at < units.count;
    return is_there ? units.units[at] : JoinUnit{0, ~0u, 0};
}

// Grid: any. Block: 64. Shared: a tile of `tile_len` right vectors of `dims` numbers, DIMS if there
// are fewer. Barriers: 2 a tile. `at` of a unit: the first right vector, the start of a tile.
template <u32 DIMS>
__device__ void join_nested(const Vectors& left, const Vectors& right, const Question& question,
                            const JoinUnits& units, const NearOutput& output, u32 tile_len) {
    DYNAMIC_SHARED(float, tile);
    Matches matches(output, question);
    const u32 stride = DIMS ? DIMS : right.dims;
    for (u32 pair = blockIdx.x; 2 * pair < units.count; pair += gridDim.x) {
        bool is_open, is_other;
        const u32 warp = threadIdx.x / WARP;
        const JoinUnit unit = unit_of_warp(units, pair, warp, is_open);
        const JoinUnit other = unit_of_warp(units, pair, warp ^ 1, is_other);
        is_open = is_open && matches.begin(unit);
        const u32 place = unit.left * WARP + lane_of_warp();
        const u32 row = place < left.len ? place : 0;
        const QueryVector<DIMS> query(left.rows + static_cast<u64>(row) * left.dims, left.dims);
        for (u32 first = smaller(unit.at, other.at); first < right.len; first += tile_len) {
            const u32 count = smaller(right.len - first, tile_len);
            copy_tile(right, first, count, stride, tile);
            if (!is_open || first < unit.at) continue;
            if (first > unit.at) matches.pass(first);
            is_open = join_tile<DIMS>(left, right, query, place, first, count, tile, matches);
        }
    }
    matches.flush();
}

// Whether a warp's vectors can reach a part, in the dimension of its level.
__device__ inline bool reaches(const float2& bounds, const float2& part, float reach) {
    return part.x <= part.y && part.x - bounds.y <= reach && bounds.x - part.y <= reach;
}

// Grid, block, shared and barriers as above. `at` of a unit: the first page.
template <u32 DIMS>
__device__ void join_pages(const Vectors& left, const Vectors& right, const Directory& directory,
                           const Question& question, const JoinUnits& units,
                           const NearOutput& output, u32 tile_len) {
    DYNAMIC_SHARED(float, tile);
    Matches matches(output, question);
    const u32 stride = DIMS ? DIMS : right.dims;
    const u32 warp = threadIdx.x / WARP;
    for (u32 pair = blockIdx.x; 2 * pair < units.count; pair += gridDim.x) {
        bool is_open, is_other;
        const JoinUnit unit = unit_of_warp(units, pair, warp, is_open);
        const JoinUnit other = unit_of_warp(units, pair, warp ^ 1, is_other);
        const bool is_there = is_open;
        is_open = is_open && matches.begin(unit);
        const u32 place = unit.left * WARP + lane_of_warp();
        const u32 row = place < left.len ? place : 0;
        const QueryVector<DIMS> query(left.rows + static_cast<u64>(row) * left.dims, left.dims);
        // Whether the part at a level is near one of the warps, so that both go the same way.
        const auto is_near = [&](u32 level, u32 part) {
            const float2 extent = directory.parts[part];
            const float2* const bounds = directory.bounds + level;
            return (is_there && reaches(bounds[unit.left * 3], extent, question.reach)) ||
                   (is_other && reaches(bounds[other.left * 3], extent, question.reach));
        };
        for (u32 page = smaller(unit.at, other.at); page < PAGES; ++page) {
            // Subtrees that are out of reach are passed as a whole.
            const u32 x = page / (FANOUT * FANOUT), y = page / FANOUT;
            if (!is_near(0, x)) {
                page = (x + 1) * FANOUT * FANOUT - 1;
                continue;
            }
            if (!is_near(1, FANOUT + y)) {
                page = (y + 1) * FANOUT - 1;
                continue;
            }
            if (!is_near(2, FANOUT + FANOUT * FANOUT + page)) continue;
            const u32 end = directory.pages[page + 1];
            if (page > unit.at && is_open) matches.pass(page);
            for (u32 first = directory.pages[page]; first < end; first += tile_len) {
                const u32 count = smaller(end - first, tile_len);
                copy_tile(right, first, count, stride, tile);
                if (!is_open || page < unit.at) continue;
                is_open = join_tile<DIMS>(left, right, query, place, first, count, tile, matches);
            }
        }
    }
    matches.flush();
}
