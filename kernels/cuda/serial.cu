// serial.cu - numbers of documents of conjunctive queries by the plain algorithm of the paper, for
// comparison: one query after the other, all blocks on two lists at a time. Contract:
// kernels/src/cuda/queries/serial.rs.
//
//   serial_begin     the order of the lists of a query
//   serial_search    for each id of the shorter list, whether it is in the longer one
//   serial_scan      the place of each block of ids
//   serial_compact   the ids that are in both lists, one after the other
//
// A thread takes an id, as in the paper. Lists are plain ids. Reads 4 B an id and, for each of
// them, the words of a binary search; writes 4 B an id that is searched and 4 B one that is found.
#include "block_scan.cuh"
#include "queries.cuh"

constexpr u32 TILE = SCAN_THREADS;

// The ids that are left. The same layout: kernels/src/cuda/queries/serial.rs.
struct Serial {
    const u32* from;  // ids after the last step, from the second one on
    u32* to;          // ids after this step
    u32* sums;        // of each id: hits of its tile up to it
    u32* tiles;       // of each tile of ids: its hits, then those before it
    u32* lefts;       // number of ids before each step, and after the last one
};

// The list of a query at a place in the order.
__device__ inline List ordered_list(const Queries& queries, u32 query, u32 place) {
    return list_of(queries.segment, queries.ordered[queries.offsets[query] + place]);
}

// The ids before a step.
__device__ inline const u32* ids_before(const Queries& queries, const Serial& serial, u32 query,
                                        u32 step) {
    return step == 1 ? ordered_list(queries, query, 0).at : serial.from;
}

// Grid: 1. Block: 32. Shared: none. Barriers of warps only: 1.
extern "C" __global__ void __launch_bounds__(WARP)
    serial_begin(Queries queries, Serial serial, u32 query) {
    const bool has_ids = order_terms(queries, query);
    __syncwarp();  // The terms are in order.
    if (lane_of_warp() > 0) return;
    const u32 len = has_ids ? ordered_list(queries, query, 0).len : 0;
    serial.lefts[0] = len;
    queries.found[query] = len;
}

// Grid: any. Block: 256. Shared: two sums a thread. Barriers: 10 a tile.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    serial_search(Queries queries, Serial serial, u32 query, u32 step) {
    DYNAMIC_SHARED(u32, shared);
    const u32 left = serial.lefts[step - 1];
    if (left == 0) return;
    const u32* const ids = ids_before(queries, serial, query, step);
    const List list = ordered_list(queries, query, step);
    for (u64 begin = static_cast<u64>(blockIdx.x) * TILE; begin < left;
         begin += static_cast<u64>(gridDim.x) * TILE) {
        const u64 at = begin + threadIdx.x;
        const bool is_hit = at < left && is_in(list, ids[at]);
        u32 all;
        const u32 sum = sum_up_to_thread(is_hit, shared, all);
        if (at < left) serial.sums[at] = sum;
        if (threadIdx.x == 0) serial.tiles[begin / TILE] = all;
        __syncthreads();  // All sums are read.
    }
}

// Grid: 1. Block: 256. Shared: two sums a thread. Barriers: 10 for each 256 tiles.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    serial_scan(Queries queries, Serial serial, u32 query, u32 step) {
    DYNAMIC_SHARED(u32, shared);
    const u32 left = serial.lefts[step - 1];
    const u32 tiles = left / TILE + (left % TILE != 0);
    u32 before = 0;
    for (u32 begin = 0; begin < tiles; begin += SCAN_THREADS) {
        const u32 tile = begin + threadIdx.x;
        const u32 own = tile < tiles ? serial.tiles[tile] : 0;
        u32 all;
        const u32 sum = sum_up_to_thread(own, shared, all);
        if (tile < tiles) serial.tiles[tile] = before + sum - own;
        before += all;
        __syncthreads();  // All sums are read.
    }
    if (threadIdx.x > 0) return;
    serial.lefts[step] = before;
    queries.found[query] = before;
}

// Grid: any. Block: 256. Shared: none. Barriers: none.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    serial_compact(Queries queries, Serial serial, u32 query, u32 step) {
    const u32 left = serial.lefts[step - 1];
    if (left == 0) return;
    const u32* const ids = ids_before(queries, serial, query, step);
    for (u64 at = thread_of_grid(); at < left; at += threads_of_grid()) {
        const u32 before = at % TILE ? serial.sums[at - 1] : 0;
        if (serial.sums[at] > before) serial.to[serial.tiles[at / TILE] + before] = ids[at];
    }
}
