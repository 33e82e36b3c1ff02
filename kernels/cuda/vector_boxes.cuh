// vector_boxes.cuh - the epsilon join of few dimensions: boxes of 8,192, 256 and 32 vectors, then
// 32 x 32 distances at once. Contract, and the proof of the filter: kernels/src/cuda/vectors/boxed.rs.
//
//   super-groups   a lane each       |  a warp has OWN leaves of left vectors, and goes from the top
//     groups       a lane each       |  of the right tree down to the leaves that are near one of
//       leaves     a lane each       |  its own
//         rows     a product of 32 x 32 by tensor cores, or a row a lane
//           queue  32 candidates are decided at once, in float64
//
// Each step fills a list in the shared memory of the warp by ballots, so that the order of candidates
// is the same each time. Warps do not wait for each other.
//
// A distance is one product of rows of halves: coordinates relative to the warp's own box and
// clamped to its neighbourhood, and their squares; norms of left rows, less the threshold, are the
// sums to begin with, so that the sign of a sum says "maybe".
#pragma once

#include "units.cuh"
#include "vector_order.cuh"

constexpr u32 BOX_WARPS = 4;
constexpr u32 QUEUE = 2 * WARP;
// Matches after which a warp empties its lists, so that a unit can go on from there.
constexpr u32 MATCHES_MIN = 256;

template <u32 DIMS>
struct Box {
    float low[DIMS], high[DIMS];
};

// Shared memory of a warp. The same size: kernels/src/cuda/vectors/launch.rs.
template <u32 DIMS, u32 OWN>
struct alignas(16) BoxShared {
    Box<DIMS> own[OWN];
    Box<DIMS> whole;
    uint2 queue[QUEUE];
    u32 leaves[2 * WARP];  // right leaf, then a bit for each own leaf that is near
    u32 groups[WARP];
};

// The square of the distance of two boxes, the second one `at` in an array of `count`.
template <u32 DIMS>
__device__ inline float gap(const Box<DIMS>& own, const float* boxes, u32 count, u32 at) {
    float sum = 0;
#pragma unroll 4
    for (u32 d = 0; d < DIMS; ++d) {
        const float low = boxes[2 * d * count + at], high = boxes[(2 * d + 1) * count + at];
        const float apart = fmaxf(fmaxf(low - own.high[d], own.low[d] - high), 0);
        sum = fmaf(apart, apart, sum);
    }
    return sum;
}

// The place of a sum of a lane in 32 x 32: sums of 16 x 8, four by four of the same rows.
__device__ inline u32 row_of_sum(u32 i) {
    return i / 16 * 16 + i / 2 % 2 * 8 + lane_of_warp() / 4;
}
__device__ inline u32 column_of_sum(u32 i) {
    return i / 4 % 4 * 8 + lane_of_warp() % 4 * 2 + i % 2;
}

// The filter by tensor cores. STEPS: rows have 8 STEPS dimensions, and a lane two of each 8.
template <u32 STEPS, u32 OWN>
struct HalfFilter {
    static constexpr u32 ROW = 8 * STEPS;
    u32 left[OWN][2][2 * STEPS];  // -2 times the coordinates of two rows, for each half of a leaf
    float begin[OWN][2][2];       // norms of those rows, less the threshold
    float scale, shifts[2 * STEPS];
    u32 clamps[STEPS];
    float2 loaded[4][STEPS];
    u32 right[4][STEPS], squares[4][STEPS];

    // The coordinates of two dimensions, relative to the own box.
    __device__ u32 halves(u32 step, float first, float second) const {
        const u32 most = clamps[step];
        const u32 values = to_halves(fmaf(first, scale, shifts[2 * step]),
                                     fmaf(second, scale, shifts[2 * step + 1]));
        return clamp_halves(values, most | 0x80008000, most);
    }
    __device__ static u32 exponent(float value) { return __float_as_uint(value) >> 23 & 0xff; }

    // Chooses origin, scale and clamps; returns the threshold of a square.
    template <u32 DIMS>
    __device__ float choose_scale(const Box<DIMS>& whole, float reach) {
        float widest = 0, farthest = 0;
#pragma unroll
        for (u32 d = 0; d < DIMS; ++d) {
            widest = fmaxf(widest, half_width(whole, d, reach));
            farthest = fmaxf(farthest, fabsf(centre(whole, d)));
        }
        // The widest becomes 64 to 128, unless the centres would overflow.
        const u32 most = smaller(253, 380 - exponent(farthest));
        scale = __uint_as_float(smaller(most, 260 - exponent(widest)) << 23);
        float squares = 0, moved = 0;
        const u32 pair = lane_of_warp() % 4 * 2;
#pragma unroll
        for (u32 d = 0; d < ROW; d += 2) {
            const u32 halves = to_halves(d < DIMS ? half_width(whole, d, reach) * scale : 0,
                                         d + 1 < DIMS ? half_width(whole, d + 1, reach) * scale : 0);
            if (d % 8 == pair) {
                clamps[d / 8] = halves;
                shifts[d / 8 * 2] = d < DIMS ? -centre(whole, d) * scale : 0;
                shifts[d / 8 * 2 + 1] = d + 1 < DIMS ? -centre(whole, d + 1) * scale : 0;
            }
            add_bound(low_half(halves), squares, moved);
            add_bound(high_half(halves), squares, moved);
        }
        const float apart = reach * scale * (1 + 0x1p-20f) + 2 * sqrtf(moved) * (1 + 0x1p-20f);
        return apart * apart * (1 + 0x1p-14f) + squares * (0x1p-11f + 0x1p-14f) + ROW * 0x1p-24f;
    }
    template <u32 DIMS>
    __device__ static float half_width(const Box<DIMS>& box, u32 d, float reach) {
        return fminf(box.high[d] / 2 - box.low[d] / 2 + 1.5f * reach, FLOAT_MAX);
    }
    template <u32 DIMS>
    __device__ static float centre(const Box<DIMS>& box, u32 d) {
        return box.low[d] / 2 + box.high[d] / 2;
    }
    __device__ static void add_bound(float most, float& squares, float& moved) {
        const float step = most * (0x1p-11f + 0x1p-22f) + 0x1p-24f;
        squares += most * most;
        moved += step * step;
    }

    template <u32 DIMS>
    __device__ void start(const float* rows, u32 first, const Box<DIMS>& whole, float reach) {
        const float threshold = choose_scale(whole, reach);
        const u32 lane = lane_of_warp();
#pragma unroll
        for (u32 i = 0; i < 4 * OWN; ++i) {
            const u32 row = first + i * 8 + lane / 4;
            float norm = 0;
#pragma unroll
            for (u32 step = 0; step < STEPS; ++step) {
                const float2 pair = pair_of(rows, row, step);
                const u32 values = halves(step, pair.x, pair.y);
                norm += low_half(values) * low_half(values) + high_half(values) * high_half(values);
                left[i / 4][i / 2 % 2][2 * step + i % 2] = multiply_halves(values, 0xc000c000);
            }
            norm += __shfl_xor_sync(FULL_WARP, norm, 1);
            norm += __shfl_xor_sync(FULL_WARP, norm, 2);
            begin[i / 4][i / 2 % 2][i % 2] = norm - threshold;
        }
    }
    __device__ static float2 pair_of(const float* rows, u32 row, u32 step) {
        const float* const from = rows + static_cast<u64>(row) * ROW + 8 * step;
        return *reinterpret_cast<const float2*>(from + lane_of_warp() % 4 * 2);
    }
    // Begins to load a right leaf; the loads go on during the next products.
    __device__ void load(const float* rows, u32 leaf) {
#pragma unroll
        for (u32 part = 0; part < 4; ++part) {
#pragma unroll
            for (u32 step = 0; step < STEPS; ++step) {
                const u32 row = leaf * LEAF + part * 8 + lane_of_warp() / 4;
                loaded[part][step] = pair_of(rows, row, step);
            }
        }
    }
    // Takes the leaf that has been loaded.
    __device__ void take() {
#pragma unroll
        for (u32 part = 0; part < 4; ++part) {
#pragma unroll
            for (u32 step = 0; step < STEPS; ++step) {
                const float2 pair = loaded[part][step];
                right[part][step] = halves(step, pair.x, pair.y);
                squares[part][step] = multiply_halves(right[part][step], right[part][step]);
            }
        }
    }
    // The sums of the lane, a bit each, whose pairs may be near: of an own leaf and the right one.
    template <u32 INDEX>
    __device__ u32 maybe(const float*, u32) const {
        u32 bits = 0;
        // By halves of the own leaf: more sums at a time would leave fewer registers to others.
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
            float sums[4][4];
            u32 any = 0;
#pragma unroll
            for (u32 part = 0; part < 4; ++part) {
                multiply<INDEX>(half, part, sums[part]);
#pragma unroll
                for (u32 i = 0; i < 4; ++i) any |= __float_as_uint(sums[part][i]);
            }
            if (!__any_sync(FULL_WARP, any >> 31)) continue;
#pragma unroll
            for (u32 i = 0; i < 16; ++i) {
                bits |= __float_as_uint(sums[i / 4][i % 4]) >> 31 << (16 * half + i);
            }
        }
        return bits;
    }
    template <u32 INDEX>
    __device__ void multiply(u32 half, u32 part, float (&sums)[4]) const {
        constexpr u32 ONES = 0x3c003c00;
#pragma unroll
        for (u32 step = 0; step < STEPS; ++step) {
            const u32 rows[4] = {left[INDEX][half][2 * step], left[INDEX][half][2 * step + 1], ONES,
                                 ONES};
            if (step == 0) {
                multiply_rows(sums, begin[INDEX][half], rows, right[part][0], squares[part][0]);
            } else {
                add_rows(sums, rows, right[part][step], squares[part][step]);
            }
        }
    }
    __device__ static u32 row(u32 bit) { return row_of_sum(bit); }
    __device__ static u32 column(u32 bit) { return column_of_sum(bit); }
};

// The filter in float32: a lane has a row of each own leaf.
template <u32 STEPS, u32 OWN>
struct FloatFilter {
    static constexpr u32 ROW = 8 * STEPS;
    float left[OWN][ROW];
    float bound;
    u32 leaf, next;

    template <u32 DIMS>
    __device__ void start(const float* rows, u32 first, const Box<DIMS>&, float) {
#pragma unroll
        for (u32 i = 0; i < OWN; ++i) {
            const float* const row =
                rows + (static_cast<u64>(first) + i * LEAF + lane_of_warp()) * ROW;
#pragma unroll
            for (u32 d = 0; d < ROW; ++d) left[i][d] = row[d];
        }
    }
    __device__ void load(const float*, u32 to) { next = to; }
    __device__ void take() { leaf = next; }
    template <u32 INDEX>
    __device__ u32 maybe(const float* rows, float most) const {
        u32 bits = 0;
        for (u32 i = 0; i < LEAF; ++i) {
            const float4* const row =
                reinterpret_cast<const float4*>(rows + (static_cast<u64>(leaf) * LEAF + i) * ROW);
            float sum = 0;
#pragma unroll
            for (u32 d = 0; d < ROW; d += 4) {
                const float4 part = row[d / 4];
                sum = add_square(sum, left[INDEX][d], part.x);
                sum = add_square(sum, left[INDEX][d + 1], part.y);
                sum = add_square(sum, left[INDEX][d + 2], part.z);
                sum = add_square(sum, left[INDEX][d + 3], part.w);
            }
            bits |= static_cast<u32>(sum <= most) << i;
        }
        return bits;
    }
    __device__ static u32 row(u32) { return lane_of_warp(); }
    __device__ static u32 column(u32 bit) { return bit; }
};

// The join of the own leaves of a warp.
template <u32 DIMS, u32 OWN, class Filter>
struct BoxJoin {
    static constexpr u32 ROW = Filter::ROW;
    const Boxed& left;
    const Boxed& right;
    BoxShared<DIMS, OWN>& shared;
    Matches& matches;
    Filter filter;
    u32 first;  // own leaf
    u32 leaves, queued;

    __device__ BoxJoin(const Boxed& of_left, const Boxed& of_right, BoxShared<DIMS, OWN>& of_warp,
                       Matches& to)
        : left(of_left), right(of_right), shared(of_warp), matches(to), leaves(0), queued(0) {}

    __device__ const Question& question() const { return matches.question; }

    // Puts the own boxes and rows in place.
    __device__ void start() {
        first = matches.unit.left * OWN;
        leaves = queued = 0;
        __syncwarp();  // Nobody reads the boxes of the unit before any more.
        for (u32 i = lane_of_warp(); i < DIMS; i += WARP) {
            float low = FLOAT_MAX, high = -FLOAT_MAX;
            for (u32 own = 0; own < OWN; ++own) {
                const float* const boxes = left.leaf_boxes + first + own;
                shared.own[own].low[i] = boxes[2 * i * left.leaves()];
                shared.own[own].high[i] = boxes[(2 * i + 1) * left.leaves()];
                low = fminf(low, shared.own[own].low[i]);
                high = fmaxf(high, shared.own[own].high[i]);
            }
            shared.whole.low[i] = low;
            shared.whole.high[i] = high;
        }
        __syncwarp();  // The boxes are there.
        filter.start(left.rows, first * LEAF, shared.whole, question().reach);
    }

    // Decides the first `len` candidates of the queue, a lane each.
    __device__ bool decide(u32 len) {
        const bool is_there = lane_of_warp() < len;
        const uint2 pair = is_there ? shared.queue[lane_of_warp()] : make_uint2(0, 0);
        const float4* const x =
            reinterpret_cast<const float4*>(left.rows + static_cast<u64>(pair.x) * ROW);
        const float4* const y =
            reinterpret_cast<const float4*>(right.rows + static_cast<u64>(pair.y) * ROW);
        double square = 0;
        // Zeros that fill a row up change no sum.
#pragma unroll
        for (u32 d = 0; d < ROW / 4; ++d) {
            const float4 of_left = x[d], of_right = y[d];
            square = add_square(square, of_left.x, of_right.x);
            square = add_square(square, of_left.y, of_right.y);
            square = add_square(square, of_left.z, of_right.z);
            square = add_square(square, of_left.w, of_right.w);
        }
        const bool is_match = is_there && square <= question().limit;
        const u32 id = is_match ? left.ids[pair.x] : 0, other = is_match ? right.ids[pair.y] : 0;
        return matches.take(is_match, id, other, square);
    }

    // Queues the next candidate of each lane that has one: a bit of one of the own leaves.
    __device__ void queue_candidates(u32 (&bits)[OWN], u32 leaf) {
        u32 own = 0, of_own = bits[0];
#pragma unroll
        for (u32 i = 1; i < OWN; ++i) {
            if (of_own == 0) {
                own = i;
                of_own = bits[i];
            }
        }
        const u32 bit = of_own ? __ffs(of_own) - 1 : 0;
        const u32 row = (first + own) * LEAF + Filter::row(bit);
        const u32 column = leaf * LEAF + Filter::column(bit);
        const bool is_pair = of_own && row < left.len && column < right.len &&
                             (!question().is_self || row < column);
#pragma unroll
        for (u32 i = 0; i < OWN; ++i) {
            if (i == own) bits[i] &= bits[i] - 1;
        }
        const u32 added = __ballot_sync(FULL_WARP, is_pair);
        if (is_pair) shared.queue[queued + __popc(added & lanes_below())] = make_uint2(row, column);
        queued += __popc(added);
    }

    // Decides the candidates at the front of the queue, at most a warp.
    __device__ bool decide_front() {
        __syncwarp();  // The queue is written.
        const u32 len = smaller(queued, WARP);
        if (!decide(len)) return false;
        const uint2 rest = shared.queue[WARP + lane_of_warp()];
        __syncwarp();  // It is read.
        queued -= len;
        if (lane_of_warp() < queued) shared.queue[lane_of_warp()] = rest;
        return true;
    }

    template <u32 INDEX>
    __device__ void filter_from(u32 entry, u32 (&bits)[OWN]) const {
        if constexpr (INDEX < OWN) {
            bits[INDEX] = 0;
            if (entry >> INDEX & 1) {
                bits[INDEX] = filter.template maybe<INDEX>(right.rows, question().bound);
            }
            filter_from<INDEX + 1>(entry, bits);
        }
    }

    // Joins with all leaves of the list; `to_the_end` decides all candidates, else fewer than a warp
    // wait. False if a match found no room.
    __device__ bool join_leaves(bool to_the_end) {
        __syncwarp();  // The list is written.
        if (leaves > 0) filter.load(right.rows, shared.leaves[0] >> OWN);
        for (u32 i = 0; i <= leaves; ++i) {
            u32 bits[OWN] = {};
            u32 leaf = 0;
            if (i < leaves) {
                const u32 entry = shared.leaves[i];
                leaf = entry >> OWN;
                filter.take();
                if (i + 1 < leaves) filter.load(right.rows, shared.leaves[i + 1] >> OWN);
                filter_from<0>(entry, bits);
            }
            for (;;) {
                u32 any = 0;
#pragma unroll
                for (u32 own = 0; own < OWN; ++own) any |= bits[own];
                const bool is_more = __any_sync(FULL_WARP, any != 0);
                if (is_more) queue_candidates(bits, leaf);
                const bool is_last = i == leaves && to_the_end;
                if (queued >= WARP || (is_last && queued > 0)) {
                    if (!decide_front()) return false;
                } else if (!is_more) {
                    break;
                }
            }
        }
        __syncwarp();  // It is read.
        leaves = 0;
        return true;
    }

    // Lists the leaves of four listed groups, from `begin` on, that are near.
    __device__ void list_leaves(u32 begin, u32 groups) {
        const u32 at = begin + lane_of_warp() / LEAVES;
        const u32 leaf = at < groups ? shared.groups[at] * LEAVES + lane_of_warp() % LEAVES : 0;
        u32 near = 0;
        for (u32 own = 0; own < OWN; ++own) {
            const bool is_after = !question().is_self || leaf >= first + own;
            if (at < groups && is_after &&
                gap(shared.own[own], right.leaf_boxes, right.leaves(), leaf) <= question().bound) {
                near |= 1u << own;
            }
        }
        const u32 found = __ballot_sync(FULL_WARP, near);
        if (near) shared.leaves[leaves + __popc(found & lanes_below())] = leaf << OWN | near;
        leaves += __popc(found);
    }

    // Lists the groups of a super-group that are near; returns their number.
    __device__ u32 list_groups(u32 super) {
        const u32 group = super * GROUPS + lane_of_warp();
        const bool is_after = !question().is_self || (group + 1) * LEAVES > first;
        const bool is_near =
            group < right.groups && is_after &&
            gap(shared.whole, right.group_boxes, right.groups, group) <= question().bound;
        const u32 found = __ballot_sync(FULL_WARP, is_near);
        __syncwarp();  // Nobody reads the list before any more.
        if (is_near) shared.groups[__popc(found & lanes_below())] = group;
        __syncwarp();  // The list is written.
        return __popc(found);
    }

    // The super-groups from `begin` on, a lane each, that are near.
    __device__ u32 near_supers(u32 begin) const {
        const u32 super = begin + lane_of_warp(), supers = right.supers();
        const bool is_near =
            super < supers &&
            gap(shared.whole, right.super_boxes, supers, super) <= question().bound;
        return __ballot_sync(FULL_WARP, is_near);
    }

    // Joins a unit, whose `at` is the first super-group. There is one place that joins leaves: more
    // of them, as calls of a recursive descent, would be more code than registers can be kept for.
    __device__ void join() {
        start();
        // The super-groups from `begin` to `end` that are near. The one before `begin` has `groups`
        // groups that are near, and `listed` of those have had their leaves listed.
        u32 begin = matches.unit.at, end = begin + WARP, near = near_supers(begin);
        u32 groups = 0, listed = 0;
        for (bool is_begun = false;;) {
            bool is_end = false, is_pass = false;
            while (leaves < WARP && !is_end && !is_pass) {
                if (listed < groups) {
                    list_leaves(listed, groups);
                    listed += WARP / LEAVES;
                } else if (is_begun) {
                    // All leaves of the super-group have been listed.
                    is_pass = matches.seen >= MATCHES_MIN;
                    is_begun = false;
                } else if (near) {
                    begin += __ffs(near) - 1;
                    near >>= __ffs(near) - 1;
                    groups = list_groups(begin);
                    listed = 0;
                    is_begun = true;
                    begin += 1;
                    near >>= 1;
                } else {
                    begin = end;
                    end += WARP;
                    is_end = begin >= right.supers();
                    if (!is_end) near = near_supers(begin);
                }
            }
            if (!join_leaves(is_end || is_pass) || is_end) return;
            if (is_pass) matches.pass(begin);
        }
    }
};

// Grid: any. Block: BOX_WARPS warps. Shared: BoxShared a warp. Barriers: none.
template <u32 DIMS, u32 OWN, class Filter>
__device__ void join_boxes(const Boxed& left, const Boxed& right, const Question& question,
                           const JoinUnits& units, const NearOutput& output) {
    // Of one type for all shapes: shared memory has one declaration.
    DYNAMIC_SHARED(uint4, memory);
    auto* const warps = reinterpret_cast<BoxShared<DIMS, OWN>*>(memory);
    Matches matches(output, question);
    const u32 warp = threadIdx.x / WARP;
    BoxJoin<DIMS, OWN, Filter> join(left, right, warps[warp], matches);
    for (u32 i = blockIdx.x * BOX_WARPS + warp; i < units.count; i += gridDim.x * BOX_WARPS) {
        if (matches.begin(units.units[i])) join.join();
    }
    matches.finish();
}
