// supports.cu - the supports of all pairs of items, tile by tile, over rows of bits. Contract:
// kernels/src/cuda/supports.
//
//   supports_rows        rows of bits, made of tid lists
//   supports_tensor      the frequent pairs of tiles, by products of bits on tensor cores
//   supports_warp_group  the same by warp groups, which read both sides from shared memory
//   supports_integer     the same by population counts (the layout `bitmap`)
//
// A row has a bit a transaction. A tile has the pairs of 128 left and 128 right items, of which a
// stage has 512 transactions (1,024 with warp groups); `supports.cuh` and `group_tiles.cuh` say how
// it goes through a block.
//
// Reads 2 x 128 rows a tile (3 x 128 two tiles with warp groups), most of them from the
// second-level cache; writes 12 B a frequent pair.
#include "group_tiles.cuh"

// Transactions of a list of tids: they have 16 bits.
constexpr u32 BLOCK = 1 << 16;
constexpr u32 CHUNK_BITS = 128;
constexpr u32 ROW_THREADS = 128;

// Lists of the items, ascending by item and then by block of transactions. The same layout:
// kernels/src/cuda/supports/rows.rs.
struct TidLists {
    const u32* offsets;
    const u16* tids;
    u32 items;
    u32 transactions;
};

// Rows of bits, `stride` chunks each: whole panels, of whole tiles of items. The panels of a tile
// follow each other, so that each is copied as a whole. The same layout:
// kernels/src/cuda/supports/rows.rs.
struct Rows {
    uint4* chunks;
    u32 stride;
    u32 len;

    __device__ const Rows& of(const Tile&) const { return *this; }
    __device__ u32 panels() const { return stride / PANEL_CHUNKS; }
    __device__ uint4* panel(u32 tile, u32 panel) const {
        return chunks + (static_cast<u64>(tile) * panels() + panel) * PANEL;
    }
    __device__ uint4* place(u32 item, u32 chunk) const {
        return panel(item / TILE_SIDE, chunk / PANEL_CHUNKS) +
               place_in_panel(item % TILE_SIDE, chunk % PANEL_CHUNKS);
    }
    __device__ u32 stages() const { return stride / STAGE_CHUNKS; }
    __device__ const uint4* at(u32 item, u32 stage, u32 chunk) const {
        return place(item, stage * STAGE_CHUNKS + chunk);
    }
    __device__ u32 support(const Pair& pair) const { return pair.support; }
    // Items that fill up a tile are in no transaction.
    __device__ bool reaches(const Pair& pair, u32 least) const { return pair.support >= least; }
};

// Makes the part of a row that one list has, in shared memory, of the rows from `first` on. Rows
// without an item are zeros.
//
// Grid: any. Block: full warps. Shared: the bits of a block of transactions, 8 KiB. Barriers: 2 a
// list. Reads 2 B a tid, writes a bit a transaction.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    supports_rows(TidLists lists, Rows rows, u32 first) {
    DYNAMIC_SHARED(uint4, part);
    u32* const words = reinterpret_cast<u32*>(part);
    constexpr u32 PART = BLOCK / CHUNK_BITS;
    const u32 parts = (rows.stride + PART - 1) / PART;
    const u32 blocks = (lists.transactions + BLOCK - 1) / BLOCK;
    for (u32 i = blockIdx.x; i < (rows.len - first) * parts; i += gridDim.x) {
        const u32 item = first + i / parts, block = i % parts;
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
        // A thread reads the chunks that it clears next.
        for (u32 at = threadIdx.x; at < chunks; at += blockDim.x) {
            *rows.place(item, block * PART + at) = part[at];
        }
    }
}

// Sums of a thread by tensor cores. A warp has 64 x 64 of the tile's sums, in products of 16 x 8.
struct TensorUnits {
    static constexpr u32 THREADS = 128;
    static constexpr u32 TILE = 128;
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

// The common bits of a pair of rows. There are four times as many units of logic as of population
// counts, so a carry-save adder makes one word of two before they are counted.
struct CommonBits {
    u32 twos;
    u32 ones;  // bits that were counted an odd number of times

    __device__ void add_words(u32 one, u32 other) {
        twos += __popc((ones & one) | (ones & other) | (one & other));
        ones ^= one ^ other;
    }
    __device__ void add(const uint4& left, const uint4& right) {
        add_words(left.x & right.x, left.y & right.y);
        add_words(left.z & right.z, left.w & right.w);
    }
    __device__ u32 sum() const { return 2 * twos + __popc(ones); }
};
using IntegerUnits = WordUnits<8, CommonBits>;

extern "C" __global__ void __launch_bounds__(TensorUnits::THREADS, 2)
    supports_tensor(Tiles<Rows> tiles, PairOutput output) {
    // The launcher asks no device for it that has no such units.
    if constexpr (BITS_ON_TENSOR_CORES) find_pairs<TensorUnits>(tiles, output);
}

// The first `paired` units have two tiles each.
extern "C" __global__ void __launch_bounds__(GroupUnits::THREADS + WARP, 1)
    supports_warp_group(Tiles<Rows> tiles, PairOutput output, u32 paired, UnitRange range) {
    if constexpr (BITS_ON_WARP_GROUPS) find_pairs_by_groups(tiles, paired, range, output);
}

extern "C" __global__ void __launch_bounds__(IntegerUnits::THREADS, 1)
    supports_integer(Tiles<Rows> tiles, PairOutput output) {
    find_pairs<IntegerUnits>(tiles, output);
}
