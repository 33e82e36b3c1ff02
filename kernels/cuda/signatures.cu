// signatures.cu - all pairs of sets, tile by tile: signatures drop most pairs, the overlap of the
// others is found, and pairs that have their required overlap are written or counted. Contract and
// layout: kernels/src/signatures. WORDS is the width of a signature in words of 64 bits.
//
//   signatures_sign_WORDS    the signatures of all sets; a thread a set
//   signatures_join_WORDS    the matches of tiles, and the tiles that are left for lack of room
//   signatures_count_WORDS   the number of matches
//
// A block takes a tile and keeps the signatures of its probes in shared memory. A warp takes a
// strip of 32 candidates, a lane each, and goes through the probes: two signatures differ in few
// enough bits, or the pair is dropped. Survivors go to the warp's queue by a ballot; 32 of a queue
// are verified at once, a lane each.
//
// Pairs/s are bounded by the population count, 16 words of 32 bits a clock and multiprocessor.
// Reads 8 WORDS B a candidate and tile, and the tokens of survivors; writes 12 B a match.
#include "output.cuh"
#include "overlap.cuh"
#include "signature.cuh"

constexpr u32 THREADS_MAX = 256;
// Blocks that a multiprocessor of 2,048 threads has to hold at least.
constexpr u32 BLOCKS_MIN = 4;
// Room of a warp's queue: fewer than a warp wait, and a probe adds at most a warp.
constexpr u32 QUEUE = 2 * WARP;

// The same layout: `Tile` of kernels/src/signatures/tile.rs and `Match` of call.rs beside it.
struct Tile {
    u32 probe_begin, probe_end, candidate_begin, candidate_end, resume, row;
};

struct Match {
    u32 probe, candidate, overlap;
};

// Sets with signatures in strips: [set / 32][word][set % 32], so that the lanes of a warp read
// neighbouring words. The same layout: kernels/src/cuda/signatures/signed.rs.
struct SignedSets {
    const u32* offsets;
    const u32* tokens;
    const u32* runs;
    const u64* signatures;
};

struct Tiles {
    SignedSets sets;
    const Tile* tiles;
    const u32* required;
    u32 tile_count;
    u32 probes_max;
};

// A match is written, or its strip left as a tile. Our own counter: the survivors that are settled.
using TileOutput = Output<Match, Tile>;
constexpr u32 SURVIVORS = OWN_COUNTERS;

template <u32 WORDS>
__device__ inline u64 word_of(const u64* signatures, u32 set, u32 word) {
    return signatures[(static_cast<u64>(set / WARP) * WORDS + word) * WARP + set % WARP];
}

// A strip of a tile, and the candidate of a lane.
template <u32 WORDS>
struct Strip {
    u32 begin, end;  // candidates of the tile
    u32 set;
    u32 first_token, len, required;
    int distance_max;  // -1: no pair can have the required overlap
    Signature<WORDS> signature;
};

template <u32 WORDS>
__device__ inline Strip<WORDS> strip_at(const Tiles& tiles, const Tile& tile, u32 number) {
    const SignedSets& sets = tiles.sets;
    Strip<WORDS> strip{};
    strip.set = number * WARP + lane_of_warp();
    strip.begin = number * WARP < tile.candidate_begin ? tile.candidate_begin : number * WARP;
    strip.end = smaller(tile.candidate_end - number * WARP, WARP) + number * WARP;
    strip.distance_max = -1;
    if (strip.set < strip.begin || strip.set >= strip.end) return strip;
    strip.first_token = sets.offsets[strip.set];
    strip.len = sets.offsets[strip.set + 1] - strip.first_token;
    strip.required = tiles.required[tile.row + sets.runs[strip.set]];
    const u32 probe_len = sets.offsets[tile.probe_begin + 1] - sets.offsets[tile.probe_begin];
    if (strip.required <= smaller(strip.len, probe_len)) {
        const u32 only_in_one = strip.len - strip.required + (probe_len - strip.required);
        strip.distance_max = static_cast<int>(smaller(only_in_one, 64 * WORDS));
    }
#pragma unroll
    for (u32 word = 0; word < WORDS; ++word) {
        strip.signature.words[word] = word_of<WORDS>(sets.signatures, strip.set, word);
    }
    return strip;
}

// Takes verified pairs, at most one a lane: writes the matches. The rest of a strip without room
// becomes a tile.
struct WriteMatches {
    static constexpr bool EXACT = true;
    TileOutput output;
    u32 survivors;  // settled ones; the same in all lanes

    // False when there was no room; the strip then ends.
    template <u32 WORDS>
    __device__ bool take(const Tile& tile, const Strip<WORDS>& strip, u32 len, const Match& match) {
        const u32 left = output.append(match.overlap != REJECTED, match);
        if (left == 0) {
            survivors += len;
            return true;
        }
        const u32 first = __ffs(left) - 1;
        survivors += first;
        if (lane_of_warp() == first) {
            output.leave_unfinished({match.probe, tile.probe_end, strip.begin, strip.end,
                                     match.candidate, tile.row});
        }
        return false;
    }
    __device__ void finish() {
        if (lane_of_warp() == 0 && survivors > 0) {
            atomicAdd(&output.counters[SURVIVORS], static_cast<u64>(survivors));
        }
    }
};

// Takes verified pairs: counts the matches.
struct CountMatches {
    static constexpr bool EXACT = false;
    u64* counters;
    u32 matches, survivors;  // the same in all lanes

    template <u32 WORDS>
    __device__ bool take(const Tile&, const Strip<WORDS>&, u32 len, const Match& match) {
        matches += __popc(__ballot_sync(FULL_WARP, match.overlap != REJECTED));
        survivors += len;
        return true;
    }
    __device__ void finish() {
        if (lane_of_warp() == 0 && survivors > 0) {
            atomicAdd(&counters[MATCHES], static_cast<u64>(matches));
            atomicAdd(&counters[SURVIVORS], static_cast<u64>(survivors));
        }
    }
};

// Verifies the first `len` pairs of the queue, a lane each.
template <u32 WORDS, class Sink>
__device__ bool verify(const Tiles& tiles, const Tile& tile, const Strip<WORDS>& strip,
                       const u32* queue, u32 len, Sink& sink) {
    // All lanes take part in the shuffles, with a pair or without.
    const bool has_pair = lane_of_warp() < len;
    const u32 entry = has_pair ? queue[lane_of_warp()] : 0;
    const u32 lane = entry % WARP;
    Match match{tile.probe_begin + entry / WARP, __shfl_sync(FULL_WARP, strip.set, lane), REJECTED};
    Pair pair{};
    pair.candidate = __shfl_sync(FULL_WARP, strip.first_token, lane);
    pair.candidate_len = __shfl_sync(FULL_WARP, strip.len, lane);
    pair.required = __shfl_sync(FULL_WARP, strip.required, lane);
    if (has_pair) {
        const SignedSets& sets = tiles.sets;
        pair.probe = sets.offsets[match.probe];
        pair.probe_len = sets.offsets[match.probe + 1] - pair.probe;
        match.overlap =
            merge<Sink::EXACT>(sets.tokens + pair.probe, sets.tokens + pair.candidate, pair);
    }
    return sink.take(tile, strip, len, match);
}

// Joins a strip with the probes of its tile. `queue` is the warp's.
template <u32 WORDS, class Sink>
__device__ void join_strip(const Tiles& tiles, const Tile& tile, const Strip<WORDS>& strip,
                           const u64* probes, u32* queue, Sink& sink) {
    // No size of the strip can be similar to that of the probes.
    if (!__any_sync(FULL_WARP, strip.distance_max >= 0)) return;
    u32 queued = 0;
    for (u32 probe = tile.probe_begin; probe < tile.probe_end; ++probe) {
        const u32 index = probe - tile.probe_begin;
        const u32 from = index == 0 ? tile.resume : 0;
        const int bits = static_cast<int>(distance<WORDS>(probes + index * WORDS, strip.signature));
        const bool passes = bits <= strip.distance_max && strip.set < probe && strip.set >= from;
        const u32 passed = __ballot_sync(FULL_WARP, passes);
        if (passed == 0) continue;
        // A place for each lane that passes, without an atomic: the lanes below it come first.
        if (passes) queue[queued + __popc(passed & lanes_below())] = index * WARP + lane_of_warp();
        queued += __popc(passed);
        if (queued < WARP) continue;
        __syncwarp();  // The queue is written.
        const bool goes_on = verify(tiles, tile, strip, queue, WARP, sink);
        // Read before the second barrier, written to the front after it.
        const u32 rest = queue[WARP + lane_of_warp()];
        __syncwarp();  // It is read.
        if (!goes_on) return;
        queued -= WARP;
        if (lane_of_warp() < queued) queue[lane_of_warp()] = rest;
    }
    __syncwarp();  // The queue is written.
    if (queued > 0) verify(tiles, tile, strip, queue, queued, sink);
    __syncwarp();  // It is read.
}

// Grid: any. Block: full warps. Shared: 8 WORDS B a probe of the largest tile, and the queues:
// 256 B a warp. Barriers: 2 a tile.
template <u32 WORDS, class Sink>
__device__ void join_tiles(const Tiles& tiles, Sink sink) {
    DYNAMIC_SHARED(u64, shared);
    const u32 warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    u32* queue = reinterpret_cast<u32*>(shared + tiles.probes_max * WORDS) + warp * QUEUE;
    for (u32 i = blockIdx.x; i < tiles.tile_count; i += gridDim.x) {
        const Tile tile = tiles.tiles[i];
        const u32 words = (tile.probe_end - tile.probe_begin) * WORDS;
        for (u32 at = threadIdx.x; at < words; at += blockDim.x) {
            const u32 probe = tile.probe_begin + at / WORDS;
            shared[at] = word_of<WORDS>(tiles.sets.signatures, probe, at % WORDS);
        }
        __syncthreads();  // The probes are there.
        const u32 strip_end = (tile.candidate_end + WARP - 1) / WARP;
        for (u32 number = tile.candidate_begin / WARP + warp; number < strip_end; number += warps) {
            join_strip(tiles, tile, strip_at<WORDS>(tiles, tile, number), shared, queue, sink);
        }
        __syncthreads();  // Nobody needs them any more.
    }
    sink.finish();
}

// Grid: any. Shared: none. Barriers: none.
template <u32 WORDS>
__device__ void sign_sets(const u32* offsets, const u32* tokens, u32 set_count, u64* signatures) {
    for (u32 set = thread_of_grid(); set < set_count; set += threads_of_grid()) {
        const u32 first = offsets[set];
        const Signature<WORDS> signature = sign<WORDS>(tokens + first, offsets[set + 1] - first);
        u64* const strip = signatures + static_cast<u64>(set / WARP) * WORDS * WARP;
#pragma unroll
        for (u32 word = 0; word < WORDS; ++word) {
            strip[word * WARP + set % WARP] = signature.words[word];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX)
    signatures_sign_1(const u32* offsets, const u32* tokens, u32 set_count, u64* signatures) {
    sign_sets<1>(offsets, tokens, set_count, signatures);
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    signatures_join_1(Tiles tiles, TileOutput output) {
    join_tiles<1>(tiles, WriteMatches{output, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    signatures_count_1(Tiles tiles, TileOutput output) {
    join_tiles<1>(tiles, CountMatches{output.counters, 0, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX)
    signatures_sign_2(const u32* offsets, const u32* tokens, u32 set_count, u64* signatures) {
    sign_sets<2>(offsets, tokens, set_count, signatures);
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    signatures_join_2(Tiles tiles, TileOutput output) {
    join_tiles<2>(tiles, WriteMatches{output, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    signatures_count_2(Tiles tiles, TileOutput output) {
    join_tiles<2>(tiles, CountMatches{output.counters, 0, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX)
    signatures_sign_4(const u32* offsets, const u32* tokens, u32 set_count, u64* signatures) {
    sign_sets<4>(offsets, tokens, set_count, signatures);
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    signatures_join_4(Tiles tiles, TileOutput output) {
    join_tiles<4>(tiles, WriteMatches{output, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    signatures_count_4(Tiles tiles, TileOutput output) {
    join_tiles<4>(tiles, CountMatches{output.counters, 0, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX)
    signatures_sign_8(const u32* offsets, const u32* tokens, u32 set_count, u64* signatures) {
    sign_sets<8>(offsets, tokens, set_count, signatures);
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    signatures_join_8(Tiles tiles, TileOutput output) {
    join_tiles<8>(tiles, WriteMatches{output, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    signatures_count_8(Tiles tiles, TileOutput output) {
    join_tiles<8>(tiles, CountMatches{output.counters, 0, 0});
}
