// supports.cu - the supports of all pairs of items, tile by tile, over rows of bits. Contract:
// kernels/src/cuda/supports.
//
//   supports_rows      rows of bits, made of tid lists
//   supports_tensor    the frequent pairs of tiles, by products of bits on tensor cores
//   supports_integer   the same by population counts (the layout `bitmap`)
//
// A row has a bit a transaction. A tile has the pairs of 128 left and 128 right items; a block
// takes a tile. Stages of 64 bytes of each of its rows go through shared memory: while one is
// multiplied, the copies of two others go on. Sums stay in registers. When all stages are done,
// the block reserves places for all pairs of the tile that are frequent, or leaves the tile.
//
// Reads 32 B a pair of items and 1,024 B of rows a tile for each 8 transactions, most of them from
// the second-level cache; writes 12 B a frequent pair.
#include "output.cuh"
#include "units.cuh"

// Transactions of a list of tids: they have 16 bits.
constexpr u32 BLOCK = 1 << 16;
constexpr u32 CHUNK_WORDS = 4;
constexpr u32 CHUNK_BITS = 32 * CHUNK_WORDS;
constexpr u32 ROW_THREADS = 128;

// Items of each side of a tile. The same number: kernels/src/cuda/supports/tile.rs.
constexpr u32 TILE = 128;
// Chunks of 16 bytes of a row in a stage, and stages. A row has full stages:
// kernels/src/cuda/supports/rows.rs.
constexpr u32 STAGE_CHUNKS = 4;
constexpr u32 STAGES = 3;
constexpr u32 STAGE = 2 * TILE * STAGE_CHUNKS;

// Lists of the items, ascending by item and then by block of transactions. The same layout:
// kernels/src/cuda/supports/rows.rs.
struct TidLists {
    const u32* offsets;
    const u16* tids;
    u32 items;
    u32 transactions;
};

// Rows of bits, `stride` chunks each, of whole tiles of items. The same layout: rows.rs.
struct Rows {
    uint4* chunks;
    u32 stride;
    u32 len;
};

// Numbers of tiles of items, `left <= right`. The same layout: tile.rs.
struct Tile {
    u32 left, right;
};

// The same layout: kernels/src/supports/answer.rs.
struct Pair {
    u32 left, right, support;
};

// The same layout: kernels/src/cuda/supports/pairs.rs.
struct Tiles {
    Rows rows;
    const Tile* tiles;
    u32 tile_count;
    u32 least;
};

using PairOutput = Output<Pair, Tile>;

// Makes the part of a row that one list has, in shared memory. Rows without an item are zeros.
//
// Grid: any. Block: full warps. Shared: the bits of a block of transactions, 8 KiB. Barriers: 2 a
// list. Reads 2 B a tid, writes a bit a transaction.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    supports_rows(TidLists lists, Rows rows) {
    DYNAMIC_SHARED(uint4, part);
    u32* const words = reinterpret_cast<u32*>(part);
    constexpr u32 PART = BLOCK / CHUNK_BITS;
    const u32 parts = (rows.stride + PART - 1) / PART;
    const u32 blocks = (lists.transactions + BLOCK - 1) / BLOCK;
    for (u32 i = blockIdx.x; i < rows.len * parts; i += gridDim.x) {
        const u32 item = i / parts, block = i % parts;
        const u32 chunks = smaller(rows.stride - block * PART, PART);
        for (u32 at = threadIdx.x; at < chunks; at += blockDim.x) part[at] = {0, 0, 0, 0};
        __syncthreads();  // No bit is set.
        if (item < lists.items && block < blocks) {
            const u32 list = item * blocks + block, end = lists.offsets[list + 1];
            const u32 tids = smaller(lists.transactions - block * BLOCK, BLOCK);
            for (u32 at = lists.offsets[list] + threadIdx.x; at < end; at += blockDim.x) {
                const u32 tid = lists.tids[at];
                if (tid < tids) atomicOr(&words[tid / 32], 1u << tid % 32);
            }
        }
        __syncthreads();  // All bits are set.
        uint4* const row = rows.chunks + static_cast<u64>(item) * rows.stride + block * PART;
        // A thread reads the chunks that it clears next.
        for (u32 at = threadIdx.x; at < chunks; at += blockDim.x) row[at] = part[at];
    }
}

// The place of a chunk in a stage, whose rows are the left ones, then the right ones. Eight rows
// have one of their chunks in different banks.
__device__ inline u32 place(u32 row, u32 chunk) {
    return row * STAGE_CHUNKS + (chunk ^ (row / 2 % STAGE_CHUNKS));
}

// Starts the copies of a stage.
template <u32 THREADS>
__device__ inline void copy_stage(const Rows& rows, const Tile& tile, u32 stage, uint4* to) {
    const u32 first = threadIdx.x / STAGE_CHUNKS, chunk = threadIdx.x % STAGE_CHUNKS;
    const uint4* const from = rows.chunks + stage * STAGE_CHUNKS + chunk;
#pragma unroll
    for (u32 row = 0; row < 2 * TILE; row += THREADS / STAGE_CHUNKS) {
        const u32 item = row < TILE ? tile.left * TILE + row : tile.right * TILE + row - TILE;
        copy_async(to + place(first + row, chunk),
                   from + static_cast<u64>(item + first) * rows.stride);
    }
}

// Sums of a thread by tensor cores. A warp has 64 x 64 of the tile's sums, in products of 16 x 8.
struct TensorUnits {
    static constexpr u32 THREADS = 128;
    static constexpr u32 SUMS = 128;
    u32 sums[4][8][4];

    __device__ static u32 warp_left() { return threadIdx.x / WARP % 2 * 64; }
    __device__ static u32 warp_right() { return threadIdx.x / WARP / 2 * 64; }

    __device__ void add_stage(const uint4* stage) {
        const u32 lane = lane_of_warp();
#pragma unroll
        for (u32 chunk = 0; chunk < STAGE_CHUNKS; chunk += 2) {
            u32 left[4][4], right[4][4];
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                const u32 row = warp_left() + 16 * i + lane % 16;
                load_matrices(left[i], stage + place(row, chunk + lane / 16));
            }
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                const u32 row = TILE + warp_right() + 16 * i + lane / 16 * 8 + lane % 8;
                load_matrices(right[i], stage + place(row, chunk + lane / 8 % 2));
            }
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
#pragma unroll
                for (u32 j = 0; j < 8; ++j) {
                    multiply_bits(sums[i][j], left[i], right[j / 2][j % 2 * 2],
                                  right[j / 2][j % 2 * 2 + 1]);
                }
            }
        }
    }
    // The sum at `i`, and its place in the tile.
    __device__ Pair sum(u32 i) const {
        const u32 row = i / 32, column = i / 4 % 8, part = i % 4;
        return {warp_left() + 16 * row + part / 2 * 8 + lane_of_warp() / 4,
                warp_right() + 8 * column + lane_of_warp() % 4 * 2 + part % 2,
                sums[row][column][part]};
    }
};

// Sums of a thread by the integer units, 8 x 8. There are four times as many units of logic as of
// population counts, so a carry-save adder makes one word of two before they are counted.
struct IntegerUnits {
    static constexpr u32 THREADS = 256;
    static constexpr u32 SUMS = 64;
    static constexpr u32 SIDE = 8;
    u32 twos[SIDE][SIDE];
    u32 ones[SIDE][SIDE];  // bits that were counted an odd number of times

    // Eight lanes of a warp read different rows, the others the same ones.
    __device__ static u32 first_left() { return threadIdx.x / 64 * 4 + threadIdx.x % 32 / 8; }
    __device__ static u32 first_right() { return threadIdx.x / 32 % 2 * 8 + threadIdx.x % 8; }

    __device__ static void add(u32& twos, u32& ones, u32 one, u32 other) {
        twos += __popc((ones & one) | (ones & other) | (one & other));
        ones ^= one ^ other;
    }
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
                for (u32 i = 0; i < SIDE; ++i) {
                    add(twos[i][j], ones[i][j], left[i].x & right.x, left[i].y & right.y);
                    add(twos[i][j], ones[i][j], left[i].z & right.z, left[i].w & right.w);
                }
            }
        }
    }
    __device__ Pair sum(u32 i) const {
        const u32 row = i / SIDE, column = i % SIDE;
        return {first_left() + 16 * row, first_right() + 16 * column,
                2 * twos[row][column] + __popc(ones[row][column])};
    }
};

// Adds up all stages of a tile's rows.
template <class Units>
__device__ void add_rows(const Rows& rows, const Tile& tile, uint4* stages, Units& units) {
    const u32 count = rows.stride / STAGE_CHUNKS;
#pragma unroll
    for (u32 stage = 0; stage < STAGES - 1; ++stage) {
        if (stage < count) copy_stage<Units::THREADS>(rows, tile, stage, stages + stage * STAGE);
        close_copies();
    }
    u32 from = 0, to = STAGES - 1;
#pragma unroll 1
    for (u32 stage = 0; stage < count; ++stage) {
        wait_for_copies<STAGES - 2>();
        // The stage is there for all, and nobody reads the one before it any more.
        __syncthreads();
        const u32 next = stage + STAGES - 1;
        if (next < count) copy_stage<Units::THREADS>(rows, tile, next, stages + to * STAGE);
        close_copies();
        units.add_stage(stages + from * STAGE);
        from = from == STAGES - 1 ? 0 : from + 1;
        to = to == STAGES - 1 ? 0 : to + 1;
    }
}

// Whether the pair of items at a sum is frequent. A tile on the diagonal has each pair twice.
// Items that are not there are in no transaction.
__device__ inline bool is_frequent(const Tiles& tiles, const Tile& tile, const Pair& sum) {
    return sum.support >= tiles.least && (tile.left != tile.right || sum.left < sum.right);
}

// Writes the frequent pairs of a tile, or leaves it. `counts` is shared memory of the block; all
// threads call it, and no thread needs the stages any more.
template <class Units>
__device__ void write_pairs(const Tiles& tiles, const Tile& tile, const Units& units, u32 found,
                            u64* counts, const PairOutput& output) {
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
        Pair pair = units.sum(i);
        const bool is_match = is_frequent(tiles, tile, pair);
        const u32 matched = __ballot_sync(FULL_WARP, is_match);
        pair.left += tile.left * TILE;
        pair.right += tile.right * TILE;
        if (is_match) output.matches[at + __popc(matched & lanes_below())] = pair;
        at += __popc(matched);
    }
}

// Grid: any. Block: as the units have it. Shared: the stages, 48 KiB. Barriers: 1 a stage, 1 a
// tile, and 3 a tile with frequent pairs.
template <class Units>
__device__ void find_pairs(const Tiles& tiles, const PairOutput& output) {
    DYNAMIC_SHARED(uint4, stages);
    for (u32 i = blockIdx.x; i < tiles.tile_count; i += gridDim.x) {
        const Tile tile = tiles.tiles[i];
        Units units{};
        add_rows(tiles.rows, tile, stages, units);
        u32 found = 0;
#pragma unroll
        for (u32 sum = 0; sum < Units::SUMS; ++sum) {
            found += is_frequent(tiles, tile, units.sum(sum));
        }
        // Also the end of all reads of the stages.
        if (!__syncthreads_or(found)) continue;
        write_pairs(tiles, tile, units, found, reinterpret_cast<u64*>(stages), output);
        __syncthreads();  // The counts have been read.
    }
}

extern "C" __global__ void __launch_bounds__(TensorUnits::THREADS, 2)
    supports_tensor(Tiles tiles, PairOutput output) {
    // The launcher asks no device for it that has no such units.
    if constexpr (BITS_ON_TENSOR_CORES) find_pairs<TensorUnits>(tiles, output);
}

extern "C" __global__ void __launch_bounds__(IntegerUnits::THREADS, 1)
    supports_integer(Tiles tiles, PairOutput output) {
    find_pairs<IntegerUnits>(tiles, output);
}
