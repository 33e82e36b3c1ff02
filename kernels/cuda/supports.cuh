// supports.cuh - the frequent pairs of tiles of items, over any data that is compared word by word.
// Contract: kernels/src/cuda/supports.
//
// A tile has the pairs of as many left as right items; a block takes a tile. Stages of 64 bytes of
// each item go through shared memory: while one is compared, the copies of two others go on. Sums
// stay in registers. When all stages are done, the block reserves places for all frequent pairs of
// the tile, or leaves the tile. When one tile has been left, the later ones are left uncounted.
#pragma once

#include "output.cuh"
#include "units.cuh"

// Chunks of 16 bytes of an item in a stage, and stages.
constexpr u32 STAGE_CHUNKS = 4;
constexpr u32 STAGES = 3;

// Numbers of tiles of items, `left <= right`. The same layout: kernels/src/cuda/supports/tile.rs.
struct Tile {
    u32 left, right;
};

// The same layout: kernels/src/supports/answer.rs.
struct Pair {
    u32 left, right, support;
};

// Tiles of the items of a source, which gives for a tile
//
//   of(tile)             the data of the tile's items, with
//   stages()             their stages,
//   at(item, stage, i)   chunk `i` of a stage of an item,
//   support(pair)        the support of a pair whose sum has been put there, and
//   reaches(pair, least) whether the pair is written if its items are in order
//
// The same layout: kernels/src/cuda/supports/pairs.rs.
template <class Source>
struct Tiles {
    Source source;
    const Tile* tiles;
    u32 tile_count;
    u32 least;
};

using PairOutput = Output<Pair, Tile>;

// The place of a chunk in a stage, whose items are the left ones, then the right ones. Eight items
// have one of their chunks in different banks.
__device__ inline u32 place(u32 item, u32 chunk) {
    return item * STAGE_CHUNKS + (chunk ^ (item / 2 % STAGE_CHUNKS));
}

// Starts the copies of a stage.
template <class Units, class Data>
__device__ inline void copy_stage(const Data& data, const Tile& tile, u32 stage, uint4* to) {
    constexpr u32 ITEMS = Units::THREADS / STAGE_CHUNKS;
    const u32 first = threadIdx.x / STAGE_CHUNKS, chunk = threadIdx.x % STAGE_CHUNKS;
#pragma unroll
    for (u32 at = 0; at < 2 * Units::TILE; at += ITEMS) {
        const u32 begin = (at < Units::TILE ? tile.left : tile.right - 1) * Units::TILE + at;
        copy_async(to + place(first + at, chunk), data.at(begin + first, stage, chunk));
    }
}

// Compares all stages of a tile's items.
template <class Units, class Data>
__device__ void add_stages(const Data& data, const Tile& tile, uint4* stages, Units& units) {
    constexpr u32 STAGE = 2 * Units::TILE * STAGE_CHUNKS;
    const u32 count = data.stages();
#pragma unroll
    for (u32 stage = 0; stage < STAGES - 1; ++stage) {
        if (stage < count) copy_stage<Units>(data, tile, stage, stages + stage * STAGE);
        close_copies();
    }
    u32 from = 0, to = STAGES - 1;
#pragma unroll 1
    for (u32 stage = 0; stage < count; ++stage) {
        wait_for_copies<STAGES - 2>();
        // The stage is there for all, and nobody reads the one before it any more.
        __syncthreads();
        const u32 next = stage + STAGES - 1;
        if (next < count) copy_stage<Units>(data, tile, next, stages + to * STAGE);
        close_copies();
        units.add_stage(stages + from * STAGE);
        from = from == STAGES - 1 ? 0 : from + 1;
        to = to == STAGES - 1 ? 0 : to + 1;
    }
}

// Sums of a thread by the integer units, SIDE x SIDE of a tile of 16 SIDE items. A `Count` has the
// sum of one pair.
template <u32 SIDE, class Count>
struct WordUnits {
    static constexpr u32 THREADS = 256;
    static constexpr u32 TILE = 16 * SIDE;
    static constexpr u32 SUMS = SIDE * SIDE;
    Count counts[SIDE][SIDE];

    // Eight lanes of a warp read different items, the others the same ones.
    __device__ static u32 first_left() { return threadIdx.x / 64 * 4 + threadIdx.x % 32 / 8; }
    __device__ static u32 first_right() { return threadIdx.x / 32 % 2 * 8 + threadIdx.x % 8; }

    __device__ void add_stage(const uint4* stage) {
#pragma unroll 1
        for (u32 chunk = 0; chunk < STAGE_CHUNKS; ++chunk) {
            uint4 left[SIDE];
#pragma unroll
            for (u32 i = 0; i < SIDE; ++i) left[i] = stage[place(first_left() + 16 * i, chunk)];
#pragma unroll
            for (u32 j = 0; j < SIDE; ++j) {
                const uint4 right = stage[place(TILE + first_right() + 16 * j, chunk)];
#pragma unroll
                for (u32 i = 0; i < SIDE; ++i) counts[i][j].add(left[i], right);
            }
        }
    }
    // The sum at `i`, and its place in the tile.
    __device__ Pair sum(u32 i) const {
        return {first_left() + 16 * (i / SIDE), first_right() + 16 * (i % SIDE),
                counts[i / SIDE][i % SIDE].sum()};
    }
};

// The pair of items at a sum, with its support.
template <class Units, class Data>
__device__ inline Pair pair_at(const Units& units, const Data& data, const Tile& tile, u32 i) {
    Pair pair = units.sum(i);
    pair.left += tile.left * Units::TILE;
    pair.right += tile.right * Units::TILE;
    pair.support = data.support(pair);
    return pair;
}

// A tile on the diagonal has each pair twice, and items with themselves.
template <class Data>
__device__ inline bool is_frequent(const Data& data, const Pair& pair, u32 least) {
    return pair.left < pair.right && data.reaches(pair, least);
}

// Writes the frequent pairs of a tile, `found` of this thread, or leaves the tile. `counts` is
// shared memory of the block; all threads call it, and no thread needs the stages any more.
template <class Units, class Data>
__device__ void write_pairs(const Units& units, const Data& data, const Tile& tile, u32 least,
                            u32 found, u64* counts, const PairOutput& output) {
    constexpr u32 WARPS = Units::THREADS / WARP;
    const u32 warp = threadIdx.x / WARP, of_warp = warp_sum(found);
    if (lane_of_warp() == 0) counts[warp] = of_warp;
    __syncthreads();  // The counts of all warps are there.
    if (threadIdx.x == 0) {
        u64 all = 0;
        for (u32 i = 0; i < WARPS; ++i) all += counts[i];
        counts[WARPS] = output.reserve(static_cast<u32>(all));
        if (counts[WARPS] == NO_ROOM) output.leave_unfinished(tile);
    }
    __syncthreads();  // So is their place.
    u64 at = counts[WARPS];
    if (at == NO_ROOM) return;
    for (u32 i = 0; i < warp; ++i) at += counts[i];
#pragma unroll
    for (u32 i = 0; i < Units::SUMS; ++i) {
        const Pair pair = pair_at(units, data, tile, i);
        const bool is_match = is_frequent(data, pair, least);
        const u32 matched = __ballot_sync(FULL_WARP, is_match);
        if (is_match) output.matches[at + __popc(matched & lanes_below())] = pair;
        at += __popc(matched);
    }
}

// Grid: any. Block: as the units have it. Shared: the stages, 3 x 2 x 64 B an item of a side.
// Barriers: 1 a stage, 2 a tile, and 2 more with frequent pairs.
template <class Units, class Source>
__device__ void find_pairs(const Tiles<Source>& tiles, const PairOutput& output) {
    DYNAMIC_SHARED(uint4, stages);
    for (u32 i = blockIdx.x; i < tiles.tile_count; i += gridDim.x) {
        const Tile tile = tiles.tiles[i];
        // Also the end of all reads of the counts of the tile before.
        if (__syncthreads_or(threadIdx.x == 0 && output.is_closed())) {
            if (threadIdx.x == 0) output.leave_unfinished(tile);
            continue;
        }
        const auto data = tiles.source.of(tile);
        Units units{};
        add_stages(data, tile, stages, units);
        u32 found = 0;
#pragma unroll
        for (u32 sum = 0; sum < Units::SUMS; ++sum) {
            found += is_frequent(data, pair_at(units, data, tile, sum), tiles.least);
        }
        // Also the end of all reads of the stages.
        if (!__syncthreads_or(found)) continue;
        u64* const counts = reinterpret_cast<u64*>(stages);
        write_pairs(units, data, tile, tiles.least, found, counts, output);
    }
}
