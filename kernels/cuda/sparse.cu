// sparse.cu - the supports of all pairs of items, row by row, over transactions. Contract:
// kernels/src/cuda/supports.
//
//   sparse_rows   the frequent pairs of strips: of one right item with a range of left items
//
// A block has a counter in shared memory for each left item of a strip. It takes the pieces of
// transactions that precede the right item, adds 1 for each item in them, and compares. So the work
// is the sum of the supports, not the number of pairs times the transactions. A few lanes take a
// piece. The rest of a long transaction is a tail, which the whole block takes.
//
// Reads 8 B a piece of the right item and 4 B an item in it for each strip; writes 12 B a frequent
// pair. One atomic addition in shared memory for an item in a piece.
#include "output.cuh"

constexpr u32 SPARSE_THREADS = 256;
constexpr u32 SPARSE_WARPS = SPARSE_THREADS / WARP;

// Items of a transaction, `begin..end` of all. The same layout:
// kernels/src/cuda/supports/sparse_rows.rs.
struct Piece {
    u32 begin, end;
};

// The same layout: kernels/src/cuda/supports/strip.rs.
struct Strip {
    u32 right, begin, end;
};

// The same layout: kernels/src/supports/answer.rs.
struct Pair {
    u32 left, right, support;
};

// Pieces by right item. The same layout: kernels/src/cuda/supports/sparse_rows.rs.
struct PieceLists {
    const u32* offsets;
    const Piece* pieces;
};

// Short pieces and tails. The same layout: kernels/src/cuda/supports/sparse_rows.rs.
struct SparseRows {
    PieceLists pieces;
    PieceLists tails;
    const u32* items;
};

// The same layout: kernels/src/cuda/supports/row_pairs.rs.
struct Strips {
    SparseRows rows;
    const Strip* strips;
    u32 strip_count;
    u32 least;
    u32 lanes;  // of a short piece, a power of 2 up to a warp
};

using StripOutput = Output<Pair, Strip>;

// Counts the items of all pieces of a strip's right item, `lanes` threads a piece.
__device__ inline void count_pieces(const Strip& strip, const PieceLists& lists, const u32* items,
                                    u32 lanes, u32* counters) {
    const u32 width = strip.end - strip.begin, lane = threadIdx.x % lanes;
    const u32 end = lists.offsets[strip.right + 1];
    u32 at = lists.offsets[strip.right] + threadIdx.x / lanes;
    for (; at < end; at += SPARSE_THREADS / lanes) {
        const Piece piece = lists.pieces[at];
        for (u32 i = piece.begin + lane; i < piece.end; i += lanes) {
            // Items before the strip wrap around.
            const u32 left = items[i] - strip.begin;
            if (left < width) atomicAdd(&counters[left], 1u);
        }
    }
}

// Writes the frequent pairs of a strip, `found` of this thread, or leaves the strip. All threads
// call it.
__device__ inline void write_strip(const Strips& strips, const Strip& strip, const u32* counters,
                                   u32 found, u64* counts, const StripOutput& output) {
    const u32 width = strip.end - strip.begin, warp = threadIdx.x / WARP;
    const u32 of_warp = warp_sum(found);
    if (lane_of_warp() == 0) counts[warp] = of_warp;
    __syncthreads();  // The counts of all warps are there.
    if (threadIdx.x == 0) {
        u64 all = 0;
        for (u32 i = 0; i < SPARSE_WARPS; ++i) all += counts[i];
        counts[SPARSE_WARPS] = output.reserve(static_cast<u32>(all));
        if (counts[SPARSE_WARPS] == NO_ROOM) output.leave_unfinished(strip);
    }
    __syncthreads();  // So is their place.
    u64 at = counts[SPARSE_WARPS];
    if (at == NO_ROOM) return;
    for (u32 i = 0; i < warp; ++i) at += counts[i];
    for (u32 first = warp * WARP; first < width; first += SPARSE_THREADS) {
        const u32 left = first + lane_of_warp();
        const u32 support = left < width ? counters[left] : 0;
        const bool is_match = support >= strips.least;
        const u32 matched = __ballot_sync(FULL_WARP, is_match);
        if (is_match) {
            const u64 place = at + __popc(matched & lanes_below());
            output.matches[place] = {strip.begin + left, strip.right, support};
        }
        at += __popc(matched);
    }
}

// Grid: any. Block: 256. Shared: a counter for each left item of the widest strip, after 9 places.
// Barriers: 3 a strip, and 2 more with frequent pairs.
extern "C" __global__ void __launch_bounds__(SPARSE_THREADS)
    sparse_rows(Strips strips, StripOutput output) {
    DYNAMIC_SHARED(u64, counts);
    u32* const counters = reinterpret_cast<u32*>(counts + SPARSE_WARPS + 1);
    for (u32 i = blockIdx.x; i < strips.strip_count; i += gridDim.x) {
        const Strip strip = strips.strips[i];
        const u32 width = strip.end - strip.begin;
        for (u32 at = threadIdx.x; at < width; at += SPARSE_THREADS) counters[at] = 0;
        // The counters are zero.
        if (__syncthreads_or(threadIdx.x == 0 && output.is_closed())) {
            if (threadIdx.x == 0) output.leave_unfinished(strip);
            continue;
        }
        const SparseRows& rows = strips.rows;
        count_pieces(strip, rows.pieces, rows.items, strips.lanes, counters);
        count_pieces(strip, rows.tails, rows.items, SPARSE_THREADS, counters);
        __syncthreads();  // All items are counted.
        u32 found = 0;
        for (u32 at = threadIdx.x; at < width; at += SPARSE_THREADS) {
            found += counters[at] >= strips.least;
        }
        // A thread clears the counters that it has read here.
        if (!__syncthreads_or(found)) continue;
        // In there, too; the counts are not written again before the next strip's barriers.
        write_strip(strips, strip, counters, found, counts, output);
    }
}
