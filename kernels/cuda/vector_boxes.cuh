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
    float lows[DIMS], highs[DIMS];
};

// Shared memory of a warp. The same size: kernels/src/cuda/vectors/launch.rs.
// `CHUNKS`: of 16 bytes, of a right leaf, of which some are under way. The frame of the own leaves
// has a sixteenth of that.
template <u32 DIMS, u32 OWN, u32 CHUNKS>
struct alignas(16) BoxShared {
    static constexpr u32 STAGES = 4;
    uint4 stages[STAGES * CHUNKS + 1];
    uint4 frame[CHUNKS / 16 + 1];
    Box<DIMS> own[OWN];
    Box<DIMS> whole;
    uint2 queue[QUEUE];
    u32 leaves[2 * WARP];  // right leaf, then a bit for each own leaf that is near
    u32 groups[WARP];
};

// The squares of the distances of some boxes, from `own` on, to the one `at` in an array of
// `count`. All ends of four dimensions are under way at once.
template <u32 DIMS, u32 OWN>
__device__ inline void find_gaps(const Box<DIMS>* own, const float* boxes, u32 count, u32 at,
                                 float (&gaps)[OWN]) {
    constexpr u32 PART = 4;
#pragma unroll
    for (u32 i = 0; i < OWN; ++i) gaps[i] = 0;
#pragma unroll 1
    for (u32 first = 0; first < DIMS; first += PART) {
        float ends[2 * PART];
#pragma unroll
        for (u32 i = 0; i < 2 * PART; ++i) ends[i] = boxes[(2 * first + i) * count + at];
#pragma unroll
        for (u32 i = 0; i < OWN; ++i) {
#pragma unroll
            for (u32 d = 0; d < PART; ++d) {
                const float before = own[i].lows[first + d] - ends[2 * d + 1];
                const float after = ends[2 * d] - own[i].highs[first + d];
                const float apart = fmaxf(fmaxf(after, before), 0);
                gaps[i] = fmaf(apart, apart, gaps[i]);
            }
        }
    }
}

// The place of a sum of a lane in 32 x 32: sums of 16 x 8, four by four of the same rows.
__device__ inline u32 row_of_sum(u32 i) {
    return i / 16 * 16 + i / 2 % 2 * 8 + lane_of_warp() / 4;
}
__device__ inline u32 column_of_sum(u32 i) {
    return i / 4 % 4 * 8 + lane_of_warp() % 4 * 2 + i % 2;
}

// The value in a register of its own: operands of products lie in consecutive registers, and the
// compiler would copy one that is there only once before each product.
template <class T>
__device__ inline T own_copy(T value) {
    return __shfl_sync(FULL_WARP, value, lane_of_warp());
}

// The filter by tensor cores. STEPS: rows have 8 STEPS dimensions, and a lane two of each 8.
//
// Halves of right rows are ready in the frame of their sample. Where that is too coarse for epsilon,
// a warp makes them itself, relative to its own box, with squares in place of norms.
template <u32 STEPS, u32 OWN>
struct HalfFilter {
    static constexpr u32 ROW = 8 * STEPS;
    static constexpr bool IS_CHEAP = true;
    // Of 16 bytes, of a leaf.
    static constexpr u32 LEAF_CHUNKS = 2 * ROW * LEAF / 8;
    // Of each half of a leaf: -2 times the coordinates of two rows, then ones; and the norms of those
    // rows, less the threshold, for each of two columns.
    u32 left[OWN][2][STEPS][4];
    float begin[OWN][2][4];
    bool is_ready;
    u32 right[4][STEPS], squares[4][STEPS];

    // A frame for the dimensions of a lane, two of each 8: the scale, shifts and clamps.
    struct LaneFrame {
        float scale, shifts[2];
        u32 clamps;

        __device__ u32 halves(const float2& pair) const {
            return halves_in_frame(pair.x, pair.y, scale, shifts[0], shifts[1], clamps);
        }
    };
    static_assert(sizeof(LaneFrame) == sizeof(uint4), "frames lie in shared memory");

    // Takes over the frame for the dimensions of the lane; returns the threshold of a square, with
    // `slack` for norms and sums.
    template <class Ends>
    __device__ static float set(LaneFrame (&lanes)[STEPS], const Frame<Ends>& frame, u32 dims,
                                float reach, float slack) {
        const float scale = frame.scale;
        float squares = 0, moved = 0;
        for (u32 d = 0; d < dims; ++d) {
            const float most = low_half(to_halves(frame.half_width(d) * scale, 0));
            const float step = most * (0x1p-11f + 0x1p-22f) + 0x1p-24f;
            squares += most * most;
            moved += step * step;
        }
#pragma unroll
        for (u32 step = 0; step < STEPS; ++step) {
            const u32 d = 8 * step + lane_of_warp() % 4 * 2;
            const bool is_there = d < dims;
            lanes[step] = {scale,
                           {is_there ? frame.shift(d) : 0, is_there ? frame.shift(d + 1) : 0},
                           is_there ? frame.clamps(d) : 0};
        }
        const float apart = (reach * scale + 2 * sqrtf(moved)) * (1 + 0x1p-20f);
        return apart * apart * (1 + 0x1p-14f) + squares * slack + ROW * 0x1p-23f;
    }

    // `kept` keeps the frame of rows, for lanes that have the same dimensions.
    template <u32 DIMS>
    __device__ void start(const Boxed& from, const Boxed& to, u32 first, const Box<DIMS>& whole,
                          float reach, uint4* kept) {
        const Frame<Plan> frame(*to.plan, ROW, 0);
        LaneFrame lanes[STEPS];
        float threshold = set(lanes, frame, ROW, reach, 0x1p-15f);
        const float least = reach * frame.scale;
        is_ready = threshold <= 1.5f * least * least;
        const u32 lane = lane_of_warp();
        if (!is_ready) {
            const Frame<Box<DIMS>> own(whole, DIMS, 1.5f * reach);
            threshold = set(lanes, own, DIMS, reach, 0x1p-11f + 0x1p-14f);
            for (u32 step = 0; step < STEPS && lane < 4; ++step) {
                reinterpret_cast<LaneFrame*>(kept)[4 * step + lane] = lanes[step];
            }
        }
#pragma unroll
        for (u32 i = 0; i < 4 * OWN; ++i) {
            const u32 row = first * LEAF + i * 8 + lane / 4;
            float norm = 0;
#pragma unroll
            for (u32 step = 0; step < STEPS; ++step) {
                const float2 pair = pair_of(from.rows, row, step);
                const u32 values = lanes[step].halves(pair);
                norm += square_of_halves(values);
                u32(&own)[4] = left[i / 4][i / 2 % 2][step];
                own[i % 2] = multiply_halves(values, 0xc000c000);
                own[2 + i % 2] = own_copy(0x3c003c00u);
            }
            norm += __shfl_xor_sync(FULL_WARP, norm, 1);
            norm += __shfl_xor_sync(FULL_WARP, norm, 2);
#pragma unroll
            for (u32 k = i % 2 * 2; k < i % 2 * 2 + 2; ++k) {
                begin[i / 4][i / 2 % 2][k] = own_copy(norm - threshold);
            }
        }
    }
    __device__ static float2 pair_of(const float* rows, u32 row, u32 step) {
        const float* const from = rows + static_cast<u64>(row) * ROW + 8 * step;
        return *reinterpret_cast<const float2*>(from + lane_of_warp() % 4 * 2);
    }
    // Begins to copy a right leaf, its halves or its rows, to a place in shared memory.
    __device__ void copy(const Boxed& to, u32 leaf, uint4* place) const {
        const void* const all = is_ready ? static_cast<const void*>(to.halves) : to.rows;
        const u64 first = static_cast<u64>(leaf) * LEAF_CHUNKS + lane_of_warp();
        const uint4* const from = static_cast<const uint4*>(all) + first;
        uint4* const own = place + lane_of_warp();
#pragma unroll
        for (u32 i = 0; i < LEAF_CHUNKS; i += WARP) copy_async(own + i, from + i);
    }
    // Takes the leaf that is there, by the frame that `start` has kept.
    __device__ void take(const uint4* place, const uint4* kept) {
        if (is_ready) {
#pragma unroll
            for (u32 i = 0; i < 4 * STEPS; i += 2) {
                const uint4 four = place[i / 2 * WARP + lane_of_warp()];
                right[i / STEPS][i % STEPS] = four.x;
                squares[i / STEPS][i % STEPS] = four.y;
                right[(i + 1) / STEPS][(i + 1) % STEPS] = four.z;
                squares[(i + 1) / STEPS][(i + 1) % STEPS] = four.w;
            }
            return;
        }
        const LaneFrame* const frames = reinterpret_cast<const LaneFrame*>(kept);
#pragma unroll
        for (u32 i = 0; i < 4 * STEPS; ++i) {
            const u32 part = i / STEPS, step = i % STEPS;
            const float2 pair = pair_of(reinterpret_cast<const float*>(place),
                                        part * 8 + lane_of_warp() / 4, step);
            right[part][step] = frames[4 * step + lane_of_warp() % 4].halves(pair);
            squares[part][step] = multiply_halves(right[part][step], right[part][step]);
        }
    }
    // A word whose sign says whether a pair of an own leaf and the right one may be near.
    template <u32 INDEX>
    __device__ u32 any(const Boxed&, float) const {
        u32 any[2] = {};
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            float sums[4];
            multiply<INDEX>(i / 4, i % 4, sums);
            any[0] |= __float_as_uint(sums[0]) | __float_as_uint(sums[1]);
            any[1] |= __float_as_uint(sums[2]) | __float_as_uint(sums[3]);
        }
        return any[0] | any[1];
    }
    // The sums of the lane, a bit each, whose pairs may be near. They are made again: to keep them
    // would leave fewer registers to others, and most leaves have none.
    template <u32 INDEX>
    __device__ u32 maybe() const {
        u32 bits = 0;
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            float sums[4];
            multiply<INDEX>(i / 4, i % 4, sums);
#pragma unroll
            for (u32 k = 0; k < 4; ++k) bits |= __float_as_uint(sums[k]) >> 31 << (4 * i + k);
        }
        return bits;
    }
    template <u32 INDEX>
    __device__ void multiply(u32 half, u32 part, float (&sums)[4]) const {
#pragma unroll
        for (u32 step = 0; step < STEPS; ++step) {
            const u32(&rows)[4] = left[INDEX][half][step];
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
    static constexpr bool IS_CHEAP = false;
    static constexpr u32 LEAF_CHUNKS = 0;
    float left[OWN][ROW];
    u32 found[OWN];
    u32 leaf;

    template <u32 DIMS>
    __device__ void start(const Boxed& from, const Boxed&, u32 first, const Box<DIMS>&, float,
                          const uint4*) {
#pragma unroll
        for (u32 i = 0; i < OWN; ++i) {
            const float* const row =
                from.rows + (static_cast<u64>(first + i) * LEAF + lane_of_warp()) * ROW;
#pragma unroll
            for (u32 d = 0; d < ROW; ++d) left[i][d] = row[d];
        }
    }
    template <u32 INDEX>
    __device__ u32 any(const Boxed& to, float most) {
        u32 bits = 0;
        for (u32 i = 0; i < LEAF; ++i) {
            const float4* const row =
                reinterpret_cast<const float4*>(to.rows + (static_cast<u64>(leaf) * LEAF + i) * ROW);
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
        found[INDEX] = bits;
        return bits ? 1u << 31 : 0;
    }
    template <u32 INDEX>
    __device__ u32 maybe() const {
        return found[INDEX];
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
    using Shared = BoxShared<DIMS, OWN, Filter::LEAF_CHUNKS>;
    Shared& shared;
    Matches& matches;
    Filter filter;
    u32 first;  // own leaf
    u32 leaves, queued;

    __device__ BoxJoin(const Boxed& of_left, const Boxed& of_right, Shared& of_warp,
                       Matches& to)
        : left(of_left), right(of_right), shared(of_warp), matches(to), leaves(0), queued(0) {}

    __device__ const Question& question() const { return matches.question; }

    // Puts the own boxes and rows in place.
    __device__ void start() {
        first = matches.unit.left * OWN;
        leaves = queued = 0;
        __syncwarp();  // Nobody reads the boxes of the unit before any more.
        const u32 i = lane_of_warp();
        if (i < DIMS) {
            float low = FLOAT_MAX, high = -FLOAT_MAX;
            for (u32 own = 0; own < OWN; ++own) {
                const float* const boxes = left.leaf_boxes + first + own;
                shared.own[own].lows[i] = boxes[2 * i * left.leaves()];
                shared.own[own].highs[i] = boxes[(2 * i + 1) * left.leaves()];
                low = fminf(low, shared.own[own].lows[i]);
                high = fmaxf(high, shared.own[own].highs[i]);
            }
            shared.whole.lows[i] = low;
            shared.whole.highs[i] = high;
        }
        __syncwarp();  // The boxes are there.
        filter.start(left, right, first, shared.whole, question().reach, shared.frame);
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

    // Words whose signs say which own leaves may have a near pair with the right one.
    template <u32 INDEX>
    __device__ void filter_from(u32 entry, u32 (&words)[OWN]) {
        if constexpr (INDEX < OWN) {
            words[INDEX] = 0;
            // With two own leaves, one too many costs less than to ask.
            if (entry >> INDEX & 1 || (Filter::IS_CHEAP && OWN == 2)) {
                words[INDEX] = filter.template any<INDEX>(right, question().bound);
            }
            filter_from<INDEX + 1>(entry, words);
        }
    }

    // Turns those words into bits of candidates.
    template <u32 INDEX>
    __device__ void find_from(u32 (&words)[OWN]) const {
        if constexpr (INDEX < OWN) {
            const bool is_any = __any_sync(FULL_WARP, words[INDEX] >> 31);
            words[INDEX] = is_any ? filter.template maybe<INDEX>() : 0;
            find_from<INDEX + 1>(words);
        }
    }

    // Begins to copy the leaf at `i` of the list, if there is one.
    __device__ void copy_leaf(u32 i) {
        if constexpr (Filter::LEAF_CHUNKS > 0) {
            const u32 place = i % Shared::STAGES * Filter::LEAF_CHUNKS;
            if (i < leaves) filter.copy(right, shared.leaves[i] >> OWN, shared.stages + place);
            close_copies();
        }
    }
    __device__ void take_leaf(u32 i, u32 leaf) {
        if constexpr (Filter::LEAF_CHUNKS > 0) {
            filter.take(shared.stages + i % Shared::STAGES * Filter::LEAF_CHUNKS, shared.frame);
        } else {
            filter.leaf = leaf;
        }
    }

    // Joins with all leaves of the list; `to_the_end` decides all candidates, else fewer than a warp
    // wait. False if a match found no room.
    __device__ bool join_leaves(bool to_the_end) {
        __syncwarp();  // The list is written.
        constexpr u32 AHEAD = Shared::STAGES - 1;
        for (u32 i = 0; i < AHEAD; ++i) copy_leaf(i);
        for (u32 i = 0; i <= leaves; ++i) {
            u32 bits[OWN] = {}, leaf = 0;
            if (i < leaves) {
                const u32 entry = shared.leaves[i];
                leaf = entry >> OWN;
                wait_for_copies<AHEAD - 1>();
                __syncwarp();  // The leaf is there, and nobody reads the one before it any more.
                copy_leaf(i + AHEAD);
                take_leaf(i, leaf);
                filter_from<0>(entry, bits);
                // Most leaves end here.
                if (!__any_sync(FULL_WARP, any_of(bits) >> 31)) continue;
                find_from<0>(bits);
            }
            const bool is_last = i == leaves && to_the_end;
            for (bool is_more = true; is_more || (is_last && queued > 0);) {
                is_more = __any_sync(FULL_WARP, any_of(bits) != 0);
                if (is_more) queue_candidates(bits, leaf);
                if (queued >= WARP || (is_last && queued > 0)) {
                    if (decide_front()) continue;
                    wait_for_copies<0>();
                    return false;
                }
            }
        }
        __syncwarp();  // The list is read, and the last leaf.
        leaves = 0;
        return true;
    }

    __device__ static u32 any_of(const u32 (&words)[OWN]) {
        u32 any = 0;
#pragma unroll
        for (u32 own = 0; own < OWN; ++own) any |= words[own];
        return any;
    }

    // Whether the box of all own leaves is near the one `at` in an array of `count`, if that is
    // there.
    __device__ bool is_whole_near(const float* boxes, u32 count, u32 at) const {
        if (at >= count) return false;
        float gaps[1];
        find_gaps(&shared.whole, boxes, count, at, gaps);
        return gaps[0] <= question().bound;
    }

    // Lists the leaves of four listed groups, from `begin` on, that are near.
    __device__ void list_leaves(u32 begin, u32 groups) {
        const u32 at = begin + lane_of_warp() / LEAVES;
        const u32 leaf = at < groups ? shared.groups[at] * LEAVES + lane_of_warp() % LEAVES : 0;
        u32 near = 0;
        // Two own boxes at a time: registers are full of the rows of all.
#pragma unroll 1
        for (u32 own = 0; own < OWN; own += 2) {
            float gaps[2];
            find_gaps(shared.own + own, right.leaf_boxes, right.leaves(), leaf, gaps);
            for (u32 i = 0; i < 2; ++i) {
                const bool is_after = !question().is_self || leaf >= first + own + i;
                if (at < groups && is_after && gaps[i] <= question().bound) near |= 1u << (own + i);
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
        const bool is_near = is_after && is_whole_near(right.group_boxes, right.groups, group);
        const u32 found = __ballot_sync(FULL_WARP, is_near);
        __syncwarp();  // Nobody reads the list before any more.
        if (is_near) shared.groups[__popc(found & lanes_below())] = group;
        __syncwarp();  // The list is written.
        return __popc(found);
    }

    // The super-groups from `begin` on, a lane each, that are near.
    __device__ u32 near_supers(u32 begin) const {
        const u32 super = begin + lane_of_warp(), supers = right.supers();
        return __ballot_sync(FULL_WARP, is_whole_near(right.super_boxes, supers, super));
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
    auto* const warps = reinterpret_cast<typename BoxJoin<DIMS, OWN, Filter>::Shared*>(memory);
    Matches matches(output, question);
    const u32 warp = threadIdx.x / WARP;
    BoxJoin<DIMS, OWN, Filter> join(left, right, warps[warp], matches);
    for (u32 i = blockIdx.x * BOX_WARPS + warp; i < units.count; i += gridDim.x * BOX_WARPS) {
        if (matches.begin(units.units[i])) join.join();
    }
    matches.flush();
}
