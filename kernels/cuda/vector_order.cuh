// vector_order.cuh - the order of vectors of few dimensions, and the boxes over it. Contract:
// kernels/src/cuda/vectors/boxed.rs.
//
//   vectors_plan     widths of cells from a sample          1 block
//   vectors_keys     the number of each vector's cell       a thread a vector
//   vectors_count,   a stable sort by 8 bits of the key,    a block 4,096 keys, but
//   vectors_scan,    three times                            vectors_scan a block a digit
//   vectors_move
//   vectors_arrange  rows in order, boxes of 32 and 256     a block 256 rows
//   vectors_supers   boxes of 8,192                         a warp a box
//
// Cells are as wide as epsilon, in the widest dimensions first, while the key has room. They are
// numbered along a line that turns at its ends, so that neighbours in the order are neighbours in
// space. Any order gives the same pairs; boxes have the exact ends of their vectors.
#pragma once

#include "block_scan.cuh"
#include "units.cuh"
#include "vectors.cuh"

constexpr u32 DIMS_MAX = 16;
constexpr u32 KEY_BITS = 24;
constexpr u32 SAMPLE_THREADS = 512;
constexpr u32 SAMPLE = 4096;

constexpr u32 LEAF = 32;
constexpr u32 LEAVES = 8;   // of a group
constexpr u32 GROUPS = 32;  // of a super-group
constexpr u32 GROUP = LEAF * LEAVES;

constexpr float FLOAT_MAX = 3.402823466e38f;

// The cells of keys, by descending width of the dimensions. The same size:
// kernels/src/cuda/vectors/boxed.rs.
struct Plan {
    u32 used;
    u32 dims[DIMS_MAX];
    u32 cells[DIMS_MAX];
    float origins[DIMS_MAX], cells_per_unit[DIMS_MAX];
    float lows[DIMS_MAX], highs[DIMS_MAX];  // ends of the sample, zeros past its dimensions
};

__device__ inline float warp_min(float value) {
    for (u32 distance = WARP / 2; distance > 0; distance /= 2) {
        value = fminf(value, __shfl_xor_sync(FULL_WARP, value, distance));
    }
    return value;
}

__device__ inline float warp_max(float value) { return -warp_min(-value); }

// Divides the extents of a sample into cells. One thread.
__device__ inline void choose_cells(const float* lows, const float* highs, u32 dims, float epsilon,
                                    Plan& plan) {
    u32 used = 0;
    float product = 1;
    u32 taken = 0;
    for (u32 i = 0; i < dims; ++i) {
        u32 widest = 0;
        float width = -1;
        for (u32 d = 0; d < dims; ++d) {
            if (taken >> d & 1 || highs[d] - lows[d] <= width) continue;
            widest = d;
            width = highs[d] - lows[d];
        }
        taken |= 1u << widest;
        const float room = static_cast<float>(1u << KEY_BITS) / product;
        const float cells = floorf(fminf(fminf(width / epsilon + 1, room), 65536));
        // So is a width that is no number.
        if (!(cells >= 2)) break;
        plan.dims[used] = widest;
        plan.cells[used] = static_cast<u32>(cells);
        plan.origins[used] = lows[widest];
        plan.cells_per_unit[used] = fminf(1 / epsilon, cells / width);
        product *= cells;
        ++used;
    }
    plan.used = used;
}

// Grid: 1. Block: SAMPLE_THREADS. Shared: 2 DIMS_MAX numbers a warp. Barriers: 2.
__device__ inline void choose_plan(Vectors vectors, float epsilon, Plan* plan) {
    DYNAMIC_SHARED(float, ends);
    constexpr u32 WARPS = SAMPLE_THREADS / WARP;
    float *lows = ends, *highs = ends + WARPS * DIMS_MAX;
    const u32 step = (vectors.len + SAMPLE - 1) / SAMPLE;
    for (u32 d = 0; d < vectors.dims; ++d) {
        float low = FLOAT_MAX, high = -FLOAT_MAX;
        for (u32 i = threadIdx.x; i < SAMPLE && i * step < vectors.len; i += SAMPLE_THREADS) {
            const float value = vectors.rows[static_cast<u64>(i) * step * vectors.dims + d];
            low = fminf(low, value);
            high = fmaxf(high, value);
        }
        low = warp_min(low);
        high = warp_max(high);
        if (lane_of_warp() == 0) {
            lows[threadIdx.x / WARP * DIMS_MAX + d] = low;
            highs[threadIdx.x / WARP * DIMS_MAX + d] = high;
        }
    }
    __syncthreads();  // The ends of all warps are there.
    if (threadIdx.x < vectors.dims) {
        for (u32 warp = 1; warp < WARPS; ++warp) {
            const u32 at = warp * DIMS_MAX + threadIdx.x;
            lows[threadIdx.x] = fminf(lows[threadIdx.x], lows[at]);
            highs[threadIdx.x] = fmaxf(highs[threadIdx.x], highs[at]);
        }
    }
    __syncthreads();  // So are those of the sample.
    if (threadIdx.x < DIMS_MAX) {
        plan->lows[threadIdx.x] = threadIdx.x < vectors.dims ? lows[threadIdx.x] : 0;
        plan->highs[threadIdx.x] = threadIdx.x < vectors.dims ? highs[threadIdx.x] : 0;
    }
    if (threadIdx.x == 0) choose_cells(lows, highs, vectors.dims, epsilon, *plan);
}

// Grid: any. Block: full warps. Barriers: none.
__device__ inline void make_keys(Vectors vectors, const Plan* plan, u32* keys) {
    for (u32 i = thread_of_grid(); i < vectors.len; i += threads_of_grid()) {
        const float* const row = vectors.rows + static_cast<u64>(i) * vectors.dims;
        u32 key = 0, turns = 0;
        for (u32 c = 0; c < plan->used; ++c) {
            const u32 cells = plan->cells[c];
            const float place = (row[plan->dims[c]] - plan->origins[c]) * plan->cells_per_unit[c];
            // Also of a place that is no number.
            u32 cell = static_cast<u32>(fminf(fmaxf(place, 0), static_cast<float>(cells - 1)));
            if (turns % 2 == 1) cell = cells - 1 - cell;
            turns += cell;
            key = key * cells + cell;
        }
        keys[i] = key;
    }
}

// Keys and the vectors that they are of; the same layout: boxed.rs, as above.
struct Sorted {
    u32* keys;
    u32* ids;
};

constexpr u32 DIGITS = 256;
constexpr u32 SORT_ROUNDS = 16;  // keys of a thread
constexpr u32 SORT_TILE = SCAN_THREADS * SORT_ROUNDS;

__device__ inline u32 digit_of(u32 key, u32 shift) { return key >> shift & (DIGITS - 1); }

// Numbers of keys by digit, of each tile: counts[digit][tile].
//
// Grid: tiles. Block: SCAN_THREADS. Shared: 1 KiB. Barriers: 2.
__device__ inline void count_digits(const u32* keys, u32 len, u32 shift, u32* counts) {
    DYNAMIC_SHARED(u32, digits);
    digits[threadIdx.x] = 0;
    __syncthreads();  // All counts are zero.
    const u32 first = blockIdx.x * SORT_TILE;
    const u32 end = first + smaller(len - first, SORT_TILE);
    for (u32 i = first + threadIdx.x; i < end; i += SCAN_THREADS) {
        atomicAdd(&digits[digit_of(keys[i], shift)], 1u);
    }
    __syncthreads();  // They are done.
    counts[threadIdx.x * gridDim.x + blockIdx.x] = digits[threadIdx.x];
}

// Turns the counts of a digit into sums of those before them; their sum goes to `totals`.
//
// Grid: DIGITS. Block: SCAN_THREADS. Shared: 4 KiB. Barriers: 9 each 256 tiles.
__device__ inline void scan_digits(u32* counts, u32 tiles, u32* totals) {
    DYNAMIC_SHARED(u32, rows);
    u32* const own = counts + blockIdx.x * tiles;
    u32 before = 0, turn = 0;
    for (u32 begin = 0; begin < tiles; begin += SCAN_THREADS, turn ^= 2 * SCAN_THREADS) {
        const u32 tile = begin + threadIdx.x;
        const u32 count = tile < tiles ? own[tile] : 0;
        u32 all;
        // Rows in turn: others may still read those of the last sums.
        const u32 sum = sum_up_to_thread(count, rows + turn, all);
        if (tile < tiles) own[tile] = before + sum - count;
        before += all;
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = before;
}

// The lanes whose value is the calling one's. All lanes call it.
__device__ inline u32 lanes_of_digit(u32 digit, bool is_there) {
    u32 lanes = __ballot_sync(FULL_WARP, is_there);
    for (u32 bit = 1; bit < DIGITS; bit *= 2) {
        const bool is_set = digit & bit;
        const u32 set = __ballot_sync(FULL_WARP, is_set);
        lanes &= is_set ? set : ~set;
    }
    return lanes;
}

// Moves keys, with their vectors, to the places of their digits; equal digits keep their order. The
// vectors of the first pass are numbered by their places. Keys go by way of shared memory, where
// keys of one digit lie together, so that neighbours of a warp are written together.
//
// Grid: tiles. Block: SCAN_THREADS. Shared: 2 KiB for a scan, 8 KiB of counts, 32 KiB of keys and
// vectors. Barriers: 21.
__device__ inline void move_keys(Sorted from, Sorted to, u32 len, u32 shift, const u32* counts,
                                 const u32* totals) {
    DYNAMIC_SHARED(u32, shared);
    const u32 warp = threadIdx.x / WARP, lane = lane_of_warp();
    u32* const of_warps = shared + 2 * SCAN_THREADS;
    uint2* const sorted = reinterpret_cast<uint2*>(of_warps + SCAN_THREADS / WARP * DIGITS);
    u32* const own = of_warps + warp * DIGITS;
    for (u32 i = lane; i < DIGITS; i += WARP) own[i] = 0;
    const u32 total = totals[threadIdx.x];
    u32 all;
    // Its barriers are also those after which the warp's counts are zero.
    const u32 digit_begin = sum_up_to_thread(total, shared, all) - total;
    // A warp has consecutive keys, by rounds of one a lane.
    const u32 tile = blockIdx.x * SORT_TILE, there = smaller(len - tile, SORT_TILE);
    const u32 first = warp * (WARP * SORT_ROUNDS) + lane;
    u32 keys[SORT_ROUNDS], ranks[SORT_ROUNDS];
#pragma unroll
    for (u32 round = 0; round < SORT_ROUNDS; ++round) {
        const u32 at = first + round * WARP;
        keys[round] = at < there ? from.keys[tile + at] : 0;
    }
#pragma unroll
    for (u32 round = 0; round < SORT_ROUNDS; ++round) {
        const bool is_there = first + round * WARP < there;
        const u32 digit = digit_of(keys[round], shift);
        const u32 same = lanes_of_digit(digit, is_there);
        const u32 before = is_there ? own[digit] : 0;
        ranks[round] = before + __popc(same & lanes_below());
        __syncwarp();  // The count is read.
        if (is_there && (same & lanes_below()) == 0) own[digit] = before + __popc(same);
        __syncwarp();  // It is written.
    }
    __syncthreads();  // The counts of all warps are there.
    u32 in_tile = 0;
    for (u32 i = 0; i < SCAN_THREADS / WARP; ++i) in_tile += of_warps[i * DIGITS + threadIdx.x];
    u32 place = sum_up_to_thread(in_tile, shared, all) - in_tile;
    const u32 target = digit_begin + counts[threadIdx.x * gridDim.x + blockIdx.x] - place;
    for (u32 i = 0; i < SCAN_THREADS / WARP; ++i) {
        const u32 count = of_warps[i * DIGITS + threadIdx.x];
        of_warps[i * DIGITS + threadIdx.x] = place;
        place += count;
    }
    __syncthreads();  // So are the places of warps, and the sums are read.
    shared[threadIdx.x] = target;
#pragma unroll
    for (u32 round = 0; round < SORT_ROUNDS; ++round) {
        const u32 at = first + round * WARP;
        if (at >= there) continue;
        const u32 id = from.ids ? from.ids[tile + at] : tile + at;
        sorted[own[digit_of(keys[round], shift)] + ranks[round]] = make_uint2(keys[round], id);
    }
    __syncthreads();  // The tile is sorted, and the targets of its digits are there.
    for (u32 at = threadIdx.x; at < there; at += SCAN_THREADS) {
        const uint2 one = sorted[at];
        const u32 to_place = shared[digit_of(one.x, shift)] + at;
        to.keys[to_place] = one.x;
        to.ids[to_place] = one.y;
    }
}

// The frame of halves: coordinates relative to the centre of a box, scaled by a power of two, and
// clamped to the box and `margin` around it. boxed.rs, as above, says why that loses no pair.
template <class Ends>
struct Frame {
    const Ends& box;  // with `lows` and `highs`
    float margin, scale;

    __device__ Frame(const Ends& around, u32 dims, float more)
        : box(around), margin(more), scale(0) {
        float widest = 0, farthest = 0;
        for (u32 d = 0; d < dims; ++d) {
            widest = fmaxf(widest, half_width(d));
            farthest = fmaxf(farthest, fabsf(centre(d)));
        }
        // The widest becomes 16 to 32, unless a centre would overflow.
        const u32 most = smaller(253, 380 - exponent(farthest));
        scale = __uint_as_float(smaller(most, 258 - exponent(widest)) << 23);
    }
    __device__ static u32 exponent(float value) { return __float_as_uint(value) >> 23 & 0xff; }
    __device__ float half_width(u32 d) const {
        return fminf(box.highs[d] / 2 - box.lows[d] / 2 + margin, FLOAT_MAX);
    }
    __device__ float centre(u32 d) const { return box.lows[d] / 2 + box.highs[d] / 2; }
    __device__ float shift(u32 d) const { return -centre(d) * scale; }
    // The clamps of dimensions `d` and `d + 1`.
    __device__ u32 clamps(u32 d) const {
        return to_halves(half_width(d) * scale, half_width(d + 1) * scale);
    }
};

// The halves of two coordinates in a frame.
__device__ inline u32 halves_in_frame(float first, float second, float scale, float first_shift,
                                      float second_shift, u32 clamps) {
    const u32 halves =
        to_halves(fmaf(first, scale, first_shift), fmaf(second, scale, second_shift));
    return clamp_halves(halves, clamps | 0x80008000, clamps);
}

__device__ inline float square_of_halves(u32 halves) {
    return low_half(halves) * low_half(halves) + high_half(halves) * high_half(halves);
}

// Rows in order, and boxes: [dimension][low, high][box]. The same layout: boxed.rs, as above.
struct Boxed {
    float* rows;  // of 8 or 16 numbers, whole groups of them
    uint2* halves;  // as lanes take them: [leaf][8 rows and step, by two][lane][two]
    const Plan* plan;
    u32* ids;
    float* leaf_boxes;
    float* group_boxes;
    float* super_boxes;
    u32 len, groups;

    __device__ u32 leaves() const { return groups * LEAVES; }
    __device__ u32 supers() const { return (groups + GROUPS - 1) / GROUPS; }
};

// Writes the rows of a leaf as the right side of products, in the frame of the sample, a row a
// lane: the norm, in two parts, follows the first eight coordinates. They go by way of `shared`,
// with room for the leaf, so that lanes write places one after the other.
template <u32 DIMS>
__device__ inline void write_halves(const float (&row)[DIMS], u32 leaf, const Boxed& boxed,
                                    uint2* shared) {
    constexpr u32 STEPS = DIMS / 8, CHUNKS = DIMS * LEAF / 4;  // of 16 bytes
    const Frame<Plan> frame(*boxed.plan, DIMS, 0);
    u32 words[DIMS / 2];
    float norm = 0;
#pragma unroll
    for (u32 d = 0; d < DIMS; d += 2) {
        words[d / 2] = halves_in_frame(row[d], row[d + 1], frame.scale, frame.shift(d),
                                       frame.shift(d + 1), frame.clamps(d));
        norm += square_of_halves(words[d / 2]);
    }
    const u32 high = to_halves(norm, 0);
    const u32 parts = to_halves(norm, norm - low_half(high));
    const u32 part = lane_of_warp() / 8, first_lane = lane_of_warp() % 8 * 4;
#pragma unroll
    for (u32 i = 0; i < DIMS / 2; ++i) {
        const u32 lane = first_lane + i % 4, step = i / 4;
        const u32 chunk = part * STEPS + step;
        shared[2 * (chunk / 2 * WARP + lane) + chunk % 2] =
            make_uint2(words[i], i == 0 ? parts : 0);
    }
    __syncwarp();  // The leaf is there.
    uint4* const to = reinterpret_cast<uint4*>(boxed.halves) + static_cast<u64>(leaf) * CHUNKS;
    const uint4* const from = reinterpret_cast<const uint4*>(shared);
    for (u32 i = lane_of_warp(); i < CHUNKS; i += WARP) to[i] = from[i];
}

// The least of each of COUNT numbers over the lanes of a warp: lane `l` gets the one at
// `l * COUNT / WARP`. COUNT is a power of two up to WARP. Lanes exchange halves of what they have.
template <u32 COUNT>
__device__ inline float least_of_lanes(float (&values)[COUNT]) {
    u32 distance = WARP / 2;
#pragma unroll
    for (u32 half = COUNT / 2; half > 0; half /= 2, distance /= 2) {
        const bool is_upper = lane_of_warp() & distance;
#pragma unroll
        for (u32 i = 0; i < half; ++i) {
            const float given = is_upper ? values[i] : values[i + half];
            const float kept = is_upper ? values[i + half] : values[i];
            values[i] = fminf(kept, __shfl_xor_sync(FULL_WARP, given, distance));
        }
    }
    for (; distance > 0; distance /= 2) {
        values[0] = fminf(values[0], __shfl_xor_sync(FULL_WARP, values[0], distance));
    }
    return values[0];
}

// Rows of DIMS numbers, 8 or 16; vectors of fewer dimensions are filled up with zeros.
//
// Grid: groups. Block: GROUP. Shared: 2 DIMS numbers a leaf, and its halves. Barriers: 1.
template <u32 DIMS>
__device__ void arrange(const Vectors& vectors, const Boxed& boxed) {
    DYNAMIC_SHARED(float, ends);
    const u32 at = blockIdx.x * GROUP + threadIdx.x, leaf = threadIdx.x / LEAF;
    const bool is_there = at < boxed.len;
    const float* const from =
        vectors.rows + static_cast<u64>(is_there ? boxed.ids[at] : 0) * vectors.dims;
    float4* const to = reinterpret_cast<float4*>(boxed.rows + static_cast<u64>(at) * DIMS);
    float row[DIMS];
#pragma unroll
    for (u32 d = 0; d < DIMS; d += 4) {
        float4 part = {0, 0, 0, 0};
        if (is_there && vectors.dims % 4 == 0 && d < vectors.dims) {
            part = *reinterpret_cast<const float4*>(from + d);
        } else if (is_there) {
            part.x = d < vectors.dims ? from[d] : 0;
            part.y = d + 1 < vectors.dims ? from[d + 1] : 0;
            part.z = d + 2 < vectors.dims ? from[d + 2] : 0;
            part.w = d + 3 < vectors.dims ? from[d + 3] : 0;
        }
        row[d] = part.x;
        row[d + 1] = part.y;
        row[d + 2] = part.z;
        row[d + 3] = part.w;
        to[d / 4] = part;
    }
    const u32 leaves = boxed.leaves(), number = at / LEAF;
    uint2* const halves = reinterpret_cast<uint2*>(ends + LEAVES * 2 * DIMS);
    write_halves<DIMS>(row, number, boxed, halves + leaf * (DIMS * LEAF / 2));
    // Of each dimension the low end, and the high one as a negative number.
    float own[2 * DIMS];
#pragma unroll
    for (u32 d = 0; d < DIMS; ++d) {
        own[2 * d] = is_there ? row[d] : FLOAT_MAX;
        own[2 * d + 1] = is_there ? -row[d] : FLOAT_MAX;
    }
    constexpr u32 LANES = WARP / (2 * DIMS);  // that have the same end
    const u32 of = lane_of_warp() / LANES;
    const float least = least_of_lanes(own);
    if (lane_of_warp() % LANES == 0) {
        boxed.leaf_boxes[of * leaves + number] = of % 2 ? -least : least;
        ends[leaf * 2 * DIMS + of] = least;
    }
    __syncthreads();  // The ends of all leaves are there.
    if (threadIdx.x < 2 * DIMS) {
        float end = ends[threadIdx.x];
        for (u32 i = 1; i < LEAVES; ++i) end = fminf(end, ends[i * 2 * DIMS + threadIdx.x]);
        boxed.group_boxes[threadIdx.x * boxed.groups + blockIdx.x] =
            threadIdx.x % 2 ? -end : end;
    }
}

// Boxes of groups of groups, `ends` of them: 2 for each dimension.
//
// Grid: any. Block: full warps. Barriers: none.
__device__ inline void box_supers(Boxed boxed, u32 ends) {
    const u32 warps = threads_of_grid() / WARP, supers = boxed.supers();
    for (u32 box = thread_of_grid() / WARP; box < supers; box += warps) {
        const u32 group = box * GROUPS + lane_of_warp();
        for (u32 end = 0; end < ends; ++end) {
            const float sign = end % 2 ? -1 : 1;
            const float own = group < boxed.groups
                                  ? sign * boxed.group_boxes[end * boxed.groups + group]
                                  : FLOAT_MAX;
            const float least = warp_min(own);
            if (lane_of_warp() == 0) boxed.super_boxes[end * supers + box] = sign * least;
        }
    }
}
