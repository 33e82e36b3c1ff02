// vectors.cuh - shared by the kernels of epsilon joins: the question, the exact distance, and the
// matches of a warp. Contract: kernels/src/cuda/vectors.
//
// The square of a distance is summed in float64 in the order of the dimensions, each product and
// each sum rounded on its own, so that every device finds the pairs of a plain loop, bit for bit.
// All else that kernels compute are filters, which may let a pair pass that is no match, and never
// drop one that is.
#pragma once

#include "output.cuh"

// Aligned so that a lane writes a pair at once. The same layout: kernels/src/cuda/vectors/pair.rs.
struct alignas(16) NearPair {
    u32 left, right;
    double square;
};

// The pairs of a few left vectors with all right ones from `at` on, less the first `skip` matches.
// The meaning of `left` and `at` is that of the kernel. The same layout: pair.rs, as above.
struct JoinUnit {
    u32 left, at, skip;
};

enum Answer : u32 { PAIRS, COUNT, PARTNERS };

// The same layout: kernels/src/cuda/vectors/question.rs.
struct Question {
    double limit;  // of a square
    float reach;   // at least the root of the limit
    float bound;   // no float32 sum of the squares of a match exceeds it
    u32 is_self;   // left and right vectors are the same; each pair is found once
    u32 answer;
};

// Vectors in some order, with their numbers. The same layout: kernels/src/cuda/vectors/stored.rs.
struct Vectors {
    const float* rows;  // `dims` numbers each
    const u32* ids;     // null: the order of the rows
    u32 len, dims;

    __device__ u32 id(u32 at) const { return ids ? ids[at] : at; }
};

// The same layout: kernels/src/cuda/vectors/join.rs.
struct NearOutput {
    Output<NearPair, JoinUnit> pairs;
    u32* left_partners;
    u32* right_partners;
    u32 left_base, right_base;
};

// The units of a launch. The same layout: join.rs, as above.
struct JoinUnits {
    const JoinUnit* units;
    u32 count;
};

// Adds a term to the square of a distance.
__device__ inline double add_square(double sum, float left, float right) {
    const double difference = __dsub_rn(left, right);
    return __dadd_rn(sum, __dmul_rn(difference, difference));
}

// The same in float32, as a filter.
__device__ inline float add_square(float sum, float left, float right) {
    return fmaf(left - right, left - right, sum);
}

// The matches of one warp.
struct Matches {
    NearOutput output;
    Question question;
    // The unit, with the place to go on from, and the matches since that place; the same in all
    // lanes.
    JoinUnit unit;
    u32 seen;
    u32 count;  // that are not in the counter yet

    __device__ Matches(const NearOutput& to, const Question& asked)
        : output(to), question(asked), unit{}, seen(0), count(0) {}

    // Begins a unit. False, and the unit is left as it is, if no match would find room.
    __device__ bool begin(const JoinUnit& first) {
        unit = first;
        seen = 0;
        if (question.answer != PAIRS || !output.pairs.is_full()) return true;
        leave();
        return false;
    }

    // Moves the place to go on from, when all matches before it have been taken.
    __device__ void pass(u32 at) {
        unit.at = at;
        unit.skip = 0;
        seen = 0;
    }

    // Takes the matches of the lanes that have one. False if one of them found no room: the rest of
    // the unit has then been left. The order of the matches of a unit must be the same each time.
    __device__ bool take(bool is_match, u32 left, u32 right, double square) {
        const u32 matched = __ballot_sync(FULL_WARP, is_match);
        if (matched == 0) return true;
        if (question.answer != PAIRS) {
            count += __popc(matched);
            if (count >> 31) flush();
            if (is_match && question.answer == PARTNERS) {
                atomicAdd(&output.left_partners[left], 1u);
                atomicAdd(&output.right_partners[right], 1u);
            }
            return true;
        }
        const bool is_new = is_match && seen + __popc(matched & lanes_below()) >= unit.skip;
        const bool is_swapped = question.is_self && left > right;
        const NearPair pair{(is_swapped ? right : left) + output.left_base,
                            (is_swapped ? left : right) + output.right_base, square};
        const u32 lost = output.pairs.append(is_new, pair);
        seen += __popc(matched) - __popc(lost);
        if (lost == 0) return true;
        leave();
        return false;
    }

    __device__ void leave() {
        unit.skip = seen > unit.skip ? seen : unit.skip;
        if (lane_of_warp() == 0) output.pairs.leave_unfinished(unit);
    }

    // Adds the matches that were only counted.
    __device__ void flush() {
        if (lane_of_warp() == 0 && count > 0) {
            atomicAdd(&output.pairs.counters[MATCHES], static_cast<u64>(count));
        }
        count = 0;
    }
};
