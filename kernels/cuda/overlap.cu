// overlap.cu - verifies candidate pairs of token sets: the overlap of each pair, or REJECTED if it
// is below the required one. Contract and layout: kernels/src/overlap. Each kernel has two
// entry points: `_verify` writes the answer of every pair, `_count` adds up the pairs that are not
// rejected.
//
//   kernel            who answers a pair          after
//   thread_per_probe  one thread, all of a probe  Bellas, Gounaris 2018, §3.3.2, alternative A
//   block_per_probe   one thread of the block     alternative B: the probe in shared memory
//   block_per_pair    a block, pair after pair    alternative C: intersect path (§4.2.2), shared memory
//   lanes_N_per_pair  N lanes of a warp           ours
//   signed_N_per_pair the same, if signatures     ours
//                     do not rule it out
//
// The first three take an entry (a probe and its candidates) a thread or block, the others 32
// consecutive pairs a warp, of any entries. All stride over the grid, so any grid is right.
// Reads at most 4 (|probe| + |candidate|) B and 20 B a pair, writes 4 B (`_verify`) or 8 B a warp.
// The signed kernels read the signatures of a pair, and its tokens only if they let it pass.
#include "overlap.cuh"

constexpr u32 THREADS_MAX = 256;
constexpr u32 WARPS_MAX = THREADS_MAX / WARP;
static_assert(WARPS_MAX <= WARP && (WARPS_MAX & (WARPS_MAX - 1)) == 0, "folded in halves");
// Blocks a multiprocessor of 2,048 threads has to hold at least, so that waiting for memory is
// hidden by other warps. It also allows 40 registers: left alone, the assembler spills two to get
// by with 32.
constexpr u32 BLOCKS_MIN = 6;

// The same layout: `Entry` and `Start` of kernels/src/overlap/chunk.rs, and `PairsArgument` of
// kernels/src/cuda/overlap/pairs.rs.
struct Entry {
    u32 probe, begin, end;
};

struct Start {
    u32 probe, candidate, overlap;
};

struct Pairs {
    const u32* probe_offsets;
    const u32* probe_tokens;
    const u32* candidate_offsets;
    const u32* candidate_tokens;
    const Entry* entries;
    const u32* candidates;
    const u32* required;
    const Start* starts;  // or null: all pairs begin with their first tokens
    const u64* probe_signatures;      // of the kernels that read them: `words` a set
    const u64* candidate_signatures;
    u64* survivors;  // counts the pairs that they let pass
    u32 entry_count;
    u32 pair_count;
    u32 words;
};

__device__ inline Pair pair_at(const Pairs& pairs, u32 probe_set, u32 index) {
    const u32 candidate_set = pairs.candidates[index];
    Pair pair;
    pair.probe = pairs.probe_offsets[probe_set];
    pair.probe_len = pairs.probe_offsets[probe_set + 1] - pair.probe;
    pair.candidate = pairs.candidate_offsets[candidate_set];
    pair.candidate_len = pairs.candidate_offsets[candidate_set + 1] - pair.candidate;
    pair.required = pairs.required[index];
    pair.overlap = 0;
    if (pairs.starts) {
        const Start start = pairs.starts[index];
        pair.probe += start.probe;
        pair.probe_len -= start.probe;
        pair.candidate += start.candidate;
        pair.candidate_len -= start.candidate;
        pair.overlap = start.overlap;
    }
    return pair;
}

// Takes answers: writes each of them.
struct WriteOverlaps {
    static constexpr bool EXACT = true;
    u32* overlaps;

    __device__ void take(u32 pair, u32 overlap) { overlaps[pair] = overlap; }
    __device__ void finish() {}
};

// Takes answers: counts the pairs that are not rejected, in a register, then once a warp.
struct CountPairs {
    static constexpr bool EXACT = false;
    u64* count;
    u32 mine;

    __device__ void take(u32, u32 overlap) { mine += overlap != REJECTED; }
    __device__ void finish() {
        const u32 sum = warp_sum(mine);
        if (lane_of_warp() == 0 && sum > 0) atomicAdd(count, static_cast<u64>(sum));
    }
};

// Alternative A. Grid: any. Shared: none. Barriers: none.
template <class Sink>
__device__ void thread_per_probe(const Pairs& pairs, Sink sink) {
    for (u32 i = thread_of_grid(); i < pairs.entry_count; i += threads_of_grid()) {
        const Entry entry = pairs.entries[i];
        for (u32 index = entry.begin; index < entry.end; ++index) {
            const Pair pair = pair_at(pairs, entry.probe, index);
            const u32* probe = pairs.probe_tokens + pair.probe;
            const u32* candidate = pairs.candidate_tokens + pair.candidate;
            sink.take(index, merge<Sink::EXACT>(probe, candidate, pair));
        }
    }
    sink.finish();
}

// Alternative B. Grid: any. Shared: 4 B * tokens_max; a longer probe stays in global memory.
// Barriers: 2 a probe.
template <class Sink>
__device__ void block_per_probe(const Pairs& pairs, u32 tokens_max, Sink sink) {
    DYNAMIC_SHARED(u32, shared);
    for (u32 i = blockIdx.x; i < pairs.entry_count; i += gridDim.x) {
        const Entry entry = pairs.entries[i];
        const u32 first = pairs.probe_offsets[entry.probe];
        const u32 len = pairs.probe_offsets[entry.probe + 1] - first;
        // The same in all threads of the block, so all of them reach the barriers.
        const bool fits = len <= tokens_max;
        if (fits) {
            for (u32 at = threadIdx.x; at < len; at += blockDim.x) {
                shared[at] = pairs.probe_tokens[first + at];
            }
        }
        __syncthreads();  // The probe is there.
        for (u32 index = entry.begin + threadIdx.x; index < entry.end; index += blockDim.x) {
            const Pair pair = pair_at(pairs, entry.probe, index);
            const u32* candidate = pairs.candidate_tokens + pair.candidate;
            const u32* probe =
                fits ? shared + (pair.probe - first) : pairs.probe_tokens + pair.probe;
            sink.take(index, merge<Sink::EXACT>(probe, candidate, pair));
        }
        __syncthreads();  // Nobody needs it any more.
    }
    sink.finish();
}

// The number of the first `steps` steps of a merge of `left` and `right` that lie in `left`, if the
// left one of two equal tokens goes first: a binary search on the cross diagonal of merge path.
__device__ inline u32 on_diagonal(const u32* left, u32 left_len, const u32* right, u32 right_len,
                                  u32 steps) {
    u32 low = steps > right_len ? steps - right_len : 0;
    u32 high = smaller(steps, left_len);
    while (low < high) {
        const u32 middle = (low + high) / 2;
        if (left[middle] <= right[steps - 1 - middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// The calling thread's share of the tokens that two tiles have in common: of all steps of the merge
// as many as any other thread's. A right token that equals the left one before it is common, and
// its step belongs to one thread, so that shares add up.
__device__ inline u32 share_of_common(const u32* left, u32 left_len, const u32* right,
                                      u32 right_len) {
    const u32 steps = left_len + right_len;
    const u32 each = (steps + blockDim.x - 1) / blockDim.x;
    const u32 begin = smaller(threadIdx.x * each, steps);
    const u32 end = smaller(begin + each, steps);
    u32 at = on_diagonal(left, left_len, right, right_len, begin);
    u32 with = begin - at;
    u32 common = 0;
    for (u32 step = begin; step < end; ++step) {
        if (with == right_len || (at < left_len && left[at] <= right[with])) {
            ++at;
        } else {
            common += at > 0 && left[at - 1] == right[with];
            ++with;
        }
    }
    return common;
}

// The sum over the threads of a block of full warps, in every thread. `sums` has a word a warp,
// which must not be in use before the caller's next barrier.
__device__ inline u32 block_sum(u32 value, u32* sums) {
    const u32 sum = warp_sum(value);
    if (lane_of_warp() == 0) sums[threadIdx.x / WARP] = sum;
    __syncthreads();  // All warps have written their sums; all threads are done with the tiles.
    // A word a lane. A loop over the words would be unrolled and its loads joined to pairs, the
    // last of which reads a word past `sums` when their number is odd: memcheck refuses that,
    // though nobody uses the word.
    const u32 warp = lane_of_warp() % WARPS_MAX;
    u32 total = warp < blockDim.x / WARP ? sums[warp] : 0;
    for (u32 distance = WARPS_MAX / 2; distance > 0; distance /= 2) {
        total += __shfl_xor_sync(FULL_WARP, total, distance);
    }
    return total;
}

// Tiles of both sets in shared memory.
struct Tiles {
    u32 tokens_max;  // of each
    u32* probe;
    u32* candidate;
    u32* sums;  // a word a warp

    __device__ Tiles(u32* shared, u32 tokens_max)
        : tokens_max(tokens_max),
          probe(shared),
          candidate(shared + tokens_max),
          sums(shared + 2 * tokens_max) {}
};

__device__ inline void load_tile(u32* tile, const u32* tokens, u32 len) {
    for (u32 at = threadIdx.x; at < len; at += blockDim.x) tile[at] = tokens[at];
}

// Answers one pair, in every thread of the block. `resident`: where the pair begins in the probe's
// tile, if that holds the whole probe; else null.
template <bool EXACT>
__device__ inline u32 intersect_path(const Pairs& pairs, const Pair& pair, const Tiles& tiles,
                                     const u32* resident) {
    u32 at = 0, with = 0, overlap = pair.overlap;
    while (true) {
        const u32 probe_left = pair.probe_len - at, candidate_left = pair.candidate_len - with;
        const Progress now = progress<EXACT>(pair.required, overlap, probe_left, candidate_left);
        if (now.is_done) return now.is_lost ? REJECTED : overlap;
        const u32 left_len = resident ? probe_left : smaller(probe_left, tiles.tokens_max);
        const u32 right_len = smaller(candidate_left, tiles.tokens_max);
        if (!resident) load_tile(tiles.probe, pairs.probe_tokens + pair.probe + at, left_len);
        load_tile(tiles.candidate, pairs.candidate_tokens + pair.candidate + with, right_len);
        __syncthreads();  // The tiles are there; all threads have read the sums of the last ones.
        const u32* left = resident ? resident + at : tiles.probe;
        const u32 left_last = left[left_len - 1], right_last = tiles.candidate[right_len - 1];
        const u32 share = share_of_common(left, left_len, tiles.candidate, right_len);
        overlap += block_sum(share, tiles.sums);
        if (left_last <= right_last) at += left_len;
        if (right_last <= left_last) with += right_len;
    }
}

// Alternative C. Grid: any. Block: full warps. Shared: 8 B * tokens_max + 4 B a warp. Barriers: 2 a
// tile of a pair; the second of them also stands between the last use of a probe and the next one.
template <class Sink>
__device__ void block_per_pair(const Pairs& pairs, u32 tokens_max, Sink sink) {
    DYNAMIC_SHARED(u32, shared);
    const Tiles tiles(shared, tokens_max);
    for (u32 i = blockIdx.x; i < pairs.entry_count; i += gridDim.x) {
        const Entry entry = pairs.entries[i];
        const u32 first = pairs.probe_offsets[entry.probe];
        const u32 len = pairs.probe_offsets[entry.probe + 1] - first;
        const bool fits = len <= tokens_max;
        if (fits) load_tile(tiles.probe, pairs.probe_tokens + first, len);
        for (u32 index = entry.begin; index < entry.end; ++index) {
            const Pair pair = pair_at(pairs, entry.probe, index);
            const u32* resident = fits ? tiles.probe + (pair.probe - first) : nullptr;
            const u32 overlap = intersect_path<Sink::EXACT>(pairs, pair, tiles, resident);
            if (threadIdx.x == 0) sink.take(index, overlap);
        }
    }
    sink.finish();
}

// The probe of a pair: that of the first entry that ends after it.
__device__ inline u32 probe_of(const Pairs& pairs, u32 index) {
    u32 low = 0, high = pairs.entry_count - 1;
    while (low < high) {
        const u32 middle = (low + high) / 2;
        if (pairs.entries[middle].end > index) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return pairs.entries[low].probe;
}

// The pair that a lane of the group holds, in all its lanes.
template <u32 LANES>
__device__ inline Pair broadcast(const Pair& pair, u32 lane) {
    return {__shfl_sync(FULL_WARP, pair.probe, lane, LANES),
            __shfl_sync(FULL_WARP, pair.candidate, lane, LANES),
            __shfl_sync(FULL_WARP, pair.probe_len, lane, LANES),
            __shfl_sync(FULL_WARP, pair.candidate_len, lane, LANES),
            __shfl_sync(FULL_WARP, pair.required, lane, LANES),
            __shfl_sync(FULL_WARP, pair.overlap, lane, LANES)};
}

// Whether a lane of the group has `token`; the lanes hold ascending tokens, and from lane `len` on
// the greatest number. A binary search through the lanes.
template <u32 LANES>
__device__ inline bool is_among(u32 token, u32 lanes_token, u32 len) {
    u32 at = 0;
    for (u32 step = LANES / 2; step > 0; step /= 2) {
        const u32 before = __shfl_sync(FULL_WARP, lanes_token, at + step - 1, LANES);
        if (before < token) at += step;
    }
    return __shfl_sync(FULL_WARP, lanes_token, at, LANES) == token && at < len;
}

// Answers a pair of each group, in all lanes of the group. Groups go on until all of the warp are
// done, because they share its instructions.
template <u32 LANES, bool EXACT>
__device__ inline u32 intersect_lanes(const Pairs& pairs, const Pair& pair) {
    const u32 lane = lane_of_warp() % LANES;
    const u32 group = LANES == WARP ? FULL_WARP : ((1u << (LANES % WARP)) - 1)
                                                      << (lane_of_warp() - lane);
    u32 at = 0, with = 0, overlap = pair.overlap;
    while (true) {
        const u32 probe_left = pair.probe_len - at, candidate_left = pair.candidate_len - with;
        const Progress now = progress<EXACT>(pair.required, overlap, probe_left, candidate_left);
        if (__all_sync(FULL_WARP, now.is_done)) return now.is_lost ? REJECTED : overlap;
        const u32 left_len = smaller(probe_left, LANES), right_len = smaller(candidate_left, LANES);
        const bool has_left = lane < left_len, has_right = lane < right_len;
        const u32 left = has_left ? pairs.probe_tokens[pair.probe + at + lane] : ~0u;
        const u32 right =
            has_right ? pairs.candidate_tokens[pair.candidate + with + lane] : ~0u;
        const bool is_common = is_among<LANES>(left, right, right_len) && has_left;
        const u32 common = __popc(__ballot_sync(FULL_WARP, is_common) & group);
        const u32 left_last = __shfl_sync(FULL_WARP, left, left_len - 1, LANES);
        const u32 right_last = __shfl_sync(FULL_WARP, right, right_len - 1, LANES);
        // A group that is done takes part in the shuffles of the others and changes nothing.
        if (now.is_done) continue;
        overlap += common;
        if (left_last <= right_last) at += left_len;
        if (right_last <= left_last) with += right_len;
    }
}

// Answers the pairs of all lanes that have one: each group the pairs of its lanes, one after the
// other, reading LANES tokens of a set at a time.
template <u32 LANES, class Sink>
__device__ inline void answer_lanes(const Pairs& pairs, const Pair& own, u32 index, bool has_pair,
                                    Sink& sink) {
    u32 answer = REJECTED;
    for (u32 turn = 0; turn < LANES; ++turn) {
        const Pair pair = broadcast<LANES>(own, turn);
        const u32 overlap = intersect_lanes<LANES, Sink::EXACT>(pairs, pair);
        if (turn == lane_of_warp() % LANES) answer = overlap;
    }
    if (has_pair) sink.take(index, answer);
}

// Ours. Grid: any. Block: full warps. Shared: none. Barriers: none. Each lane reads the description
// of a pair of its own, so that these reads are coalesced.
template <u32 LANES, class Sink>
__device__ void lanes_per_pair(const Pairs& pairs, Sink sink) {
    const u32 lane = lane_of_warp();
    for (u32 first = thread_of_grid() - lane; first < pairs.pair_count; first += threads_of_grid()) {
        const u32 index = first + lane;
        const bool has_pair = index < pairs.pair_count;
        const Pair own = has_pair ? pair_at(pairs, probe_of(pairs, index), index) : Pair{};
        answer_lanes<LANES>(pairs, own, index, has_pair, sink);
    }
    sink.finish();
}

// Whether the signatures of a pair allow its required overlap. Each bit in which they differ needs
// a token that only one of the sets has, of which there are |probe| + |candidate| - 2 overlap.
__device__ inline bool may_suffice(const Pairs& pairs, u32 probe_set, u32 index) {
    const u32 candidate_set = pairs.candidates[index];
    const u32 probe_len =
        pairs.probe_offsets[probe_set + 1] - pairs.probe_offsets[probe_set];
    const u32 candidate_len =
        pairs.candidate_offsets[candidate_set + 1] - pairs.candidate_offsets[candidate_set];
    const u64 sizes = static_cast<u64>(probe_len) + candidate_len;
    const u64* left = pairs.probe_signatures + static_cast<u64>(probe_set) * pairs.words;
    const u64* right = pairs.candidate_signatures + static_cast<u64>(candidate_set) * pairs.words;
    u64 needed = 2ull * pairs.required[index];
    for (u32 word = 0; word < pairs.words && needed <= sizes; ++word) {
        needed += __popcll(left[word] ^ right[word]);
    }
    return needed <= sizes;
}

// A pair and its probe in the queue of a warp. Fewer than a warp wait, and a warp more may come.
constexpr u32 QUEUE = 2 * WARP;
struct Queued {
    u32 index, probe;
};

// Ours. Grid: any. Block: full warps. Shared: 8 B * QUEUE a warp. Barriers: 2 of the warp for 32
// survivors. The signatures of 32 pairs are tested, a lane each; the survivors go to the
// warp's queue by a ballot, and when 32 wait they are answered as by `lanes_per_pair`: all lanes
// have work, even if few survive.
template <u32 LANES, class Sink>
__device__ void signed_per_pair(const Pairs& pairs, Sink sink) {
    DYNAMIC_SHARED(Queued, queues);
    Queued* const queue = queues + threadIdx.x / WARP * QUEUE;
    const u32 lane = lane_of_warp();
    u32 queued = 0, survivors = 0;
    bool is_end = false;
    for (u32 first = thread_of_grid() - lane; !is_end; first += threads_of_grid()) {
        is_end = first >= pairs.pair_count;
        const u32 index = first + lane;
        const bool has_pair = !is_end && index < pairs.pair_count;
        const u32 probe = has_pair ? probe_of(pairs, index) : 0;
        const bool survives = has_pair && may_suffice(pairs, probe, index);
        if (has_pair && !survives) sink.take(index, REJECTED);
        const u32 passed = __ballot_sync(FULL_WARP, survives);
        if (survives) queue[queued + __popc(passed & lanes_below())] = {index, probe};
        queued += __popc(passed);
        const u32 taken = is_end ? queued : queued < WARP ? 0 : WARP;
        if (taken == 0) continue;
        queued -= taken;
        survivors += taken;
        __syncwarp();  // The queue is written.
        const bool has_own = lane < taken;
        const Queued own = has_own ? queue[queued + lane] : Queued{};
        __syncwarp();  // It is read.
        const Pair pair = has_own ? pair_at(pairs, own.probe, own.index) : Pair{};
        answer_lanes<LANES>(pairs, pair, own.index, has_own, sink);
    }
    if (lane == 0 && survivors > 0) atomicAdd(pairs.survivors, static_cast<u64>(survivors));
    sink.finish();
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX)
    overlap_thread_per_probe_verify(Pairs pairs, u32* overlaps) {
    thread_per_probe(pairs, WriteOverlaps{overlaps});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX)
    overlap_thread_per_probe_count(Pairs pairs, u64* count) {
    thread_per_probe(pairs, CountPairs{count, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX)
    overlap_block_per_probe_verify(Pairs pairs, u32* overlaps, u32 tokens_max) {
    block_per_probe(pairs, tokens_max, WriteOverlaps{overlaps});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX)
    overlap_block_per_probe_count(Pairs pairs, u64* count, u32 tokens_max) {
    block_per_probe(pairs, tokens_max, CountPairs{count, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_block_per_pair_verify(Pairs pairs, u32* overlaps, u32 tokens_max) {
    block_per_pair(pairs, tokens_max, WriteOverlaps{overlaps});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_block_per_pair_count(Pairs pairs, u64* count, u32 tokens_max) {
    block_per_pair(pairs, tokens_max, CountPairs{count, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_lanes_8_per_pair_verify(Pairs pairs, u32* overlaps) {
    lanes_per_pair<8>(pairs, WriteOverlaps{overlaps});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_lanes_8_per_pair_count(Pairs pairs, u64* count) {
    lanes_per_pair<8>(pairs, CountPairs{count, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_lanes_16_per_pair_verify(Pairs pairs, u32* overlaps) {
    lanes_per_pair<16>(pairs, WriteOverlaps{overlaps});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_lanes_16_per_pair_count(Pairs pairs, u64* count) {
    lanes_per_pair<16>(pairs, CountPairs{count, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_lanes_32_per_pair_verify(Pairs pairs, u32* overlaps) {
    lanes_per_pair<32>(pairs, WriteOverlaps{overlaps});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_lanes_32_per_pair_count(Pairs pairs, u64* count) {
    lanes_per_pair<32>(pairs, CountPairs{count, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_signed_8_per_pair_verify(Pairs pairs, u32* overlaps) {
    signed_per_pair<8>(pairs, WriteOverlaps{overlaps});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_signed_8_per_pair_count(Pairs pairs, u64* count) {
    signed_per_pair<8>(pairs, CountPairs{count, 0});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_signed_32_per_pair_verify(Pairs pairs, u32* overlaps) {
    signed_per_pair<32>(pairs, WriteOverlaps{overlaps});
}

extern "C" __global__ void __launch_bounds__(THREADS_MAX, BLOCKS_MIN)
    overlap_signed_32_per_pair_count(Pairs pairs, u64* count) {
    signed_per_pair<32>(pairs, CountPairs{count, 0});
}
