// batmaps.cu - the supports of all pairs of items, tile by tile, over batmaps. Contract and proof
// of the counting: kernels/src/batmap, for `D` = 2. Launcher: kernels/src/cuda/supports/maps.rs.
//
//   batmaps_pairs   the frequent pairs of tiles
//
// Source: Amossen, Pagh, A New Data Layout for Set Intersection on GPUs, IPDPS 2011, section III-B:
// work groups of 16 x 16 threads copy slices of maps to shared memory and compare them there. Here
// a thread has 4 x 4 pairs, so that a slice is read from shared memory a quarter as often, and a
// tile 64 x 64; `supports.cuh` says how a tile goes through a block.
//
#include "supports.cuh"

constexpr u32 TABLES = 3;
// The flag of each slot of a word.
constexpr u32 FLAGS = 0x80808080;

// A map: its first block of 64 slots, the binary logarithm of the blocks of a table, and the
// number of its elements that are in no slot. The same layout: kernels/src/cuda/supports/maps.rs.
struct Map {
    u32 block, table_bits, failed;
};

// Maps of a tile's items.
struct MapsOfTile {
    const uint4* chunks;
    const Map* maps;
    u32 len;
    u32 table_bits;  // of the widest map

    __device__ u32 stages() const { return TABLES << table_bits; }
    // Tables one after the other, narrow ones over and over.
    __device__ const uint4* at(u32 item, u32 stage, u32 chunk) const {
        const Map map = maps[item];
        const u32 table = stage >> table_bits, block = stage & ((1 << map.table_bits) - 1);
        const u32 own = map.block + (table << map.table_bits) + block;
        return chunks + static_cast<u64>(own) * STAGE_CHUNKS + chunk;
    }
    // A pair of two narrow maps has been compared over and over.
    __device__ u32 support(const Pair& pair) const {
        const u32 left = maps[pair.left].table_bits, right = maps[pair.right].table_bits;
        return pair.support >> (table_bits - (left > right ? left : right));
    }
    // The host adds common elements that failed, at most as many as both maps have.
    __device__ bool reaches(const Pair& pair, u32 least) const {
        if (pair.right >= len) return false;
        const u32 failed = maps[pair.left].failed + maps[pair.right].failed;
        return pair.support + failed >= least;
    }
};

// Maps of whole tiles; maps without an item are empty. The same layout: maps.rs.
struct Maps {
    const uint4* chunks;
    const Map* maps;
    const u32* widest;  // of each tile of items, as `table_bits`
    u32 len;

    __device__ MapsOfTile of(const Tile& tile) const {
        const u32 left = widest[tile.left], right = widest[tile.right];
        return {chunks, maps, len, left > right ? left : right};
    }
};

// The common elements of a pair of maps: slots with equal codes, the lower seven bits, one of which
// has the flag, the upper bit. Operations for four slots: a pair takes two on the units for logic
// and two on the units for products; an item takes one more, which its pairs share.
struct CommonSlots {
    u32 flags;  // the sum of the flags, each 128

    __device__ void add_words(u32 left, u32 right) {
        // Blocks are one-dimensional, which the compiler does not know: so it multiplies.
        const u32 minus_one = 0 - blockDim.y;
        // The upper bit of each byte stays set if the codes are equal: no byte borrows.
        const u32 equal = multiply_add((left ^ right) & 0x7f7f7f7f, minus_one, FLAGS);
        // An item's flags are the same for all its pairs.
        const u32 flagged = and_either(equal, common_bits(left, FLAGS), common_bits(right, FLAGS));
        flags = add_bytes(flags, flagged);
    }
    __device__ void add(const uint4& left, const uint4& right) {
        add_words(left.x, right.x);
        add_words(left.y, right.y);
        add_words(left.z, right.z);
        add_words(left.w, right.w);
    }
    __device__ u32 sum() const { return flags / 128; }
};
using MapUnits = WordUnits<4, CommonSlots>;

extern "C" __global__ void __launch_bounds__(MapUnits::THREADS, 3)
    batmaps_pairs(Tiles<Maps> tiles, PairOutput output) {
    find_pairs<MapUnits>(tiles, output);
}
