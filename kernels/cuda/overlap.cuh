// overlap.cuh - one pair of sets, and its overlap by a single thread.
#pragma once

#include "device.cuh"

constexpr u32 REJECTED = 0xffffffff;

// One pair, from where its verification begins. Positions are in the tokens of all sets.
struct Pair {
    u32 probe, candidate;
    u32 probe_len, candidate_len;
    u32 required, overlap;
};

// The progress of a pair. The overlap counted so far and the tokens left never exceed a set's size,
// so sums of them fit 32 bits.
struct Progress {
    bool is_lost, is_done;
};

template <bool EXACT>
__device__ inline Progress progress(u32 required, u32 overlap, u32 probe_left, u32 candidate_left) {
    const u32 left = smaller(probe_left, candidate_left);
    const bool is_lost = overlap + left < required;
    return {is_lost, is_lost || left == 0 || (!EXACT && overlap >= required)};
}

// A merge by one thread.
template <bool EXACT>
__device__ inline u32 merge(const u32* probe, const u32* candidate, const Pair& pair) {
    u32 at = 0, with = 0, overlap = pair.overlap;
    while (true) {
        const Progress now =
            progress<EXACT>(pair.required, overlap, pair.probe_len - at, pair.candidate_len - with);
        if (now.is_done) return now.is_lost ? REJECTED : overlap;
        // Three comparisons and no branch, so that the lanes of a warp stay together.
        const u32 left = probe[at], right = candidate[with];
        overlap += left == right;
        at += left <= right;
        with += right <= left;
    }
}
