// output.cuh - answers of unknown number in a buffer of fixed room. The host's half, and the reason
// for it: kernels/src/cuda/output.rs.
#pragma once

#include "device.cuh"

// The counters of an output, all zero at the start; a primitive's own follow. MATCHES may exceed
// the room for them. CUT is 0, or 1 more than the number of matches that `reserve` has placed.
enum Counter : u32 { MATCHES, UNFINISHED, CUT, OWN_COUNTERS };

// The answer to a reservation that does not fit.
constexpr u64 NO_ROOM = ~0ull;

// Matches of type Match, of units of work of type Unit.
template <class Match, class Unit>
struct Output {
    Match* matches;
    Unit* unfinished;
    u64* counters;
    u64 room;

    // Appends the matches of the lanes that have one, lower lanes first. All lanes of the warp call
    // it; the answer is the same in all of them: the lanes whose match found no room.
    __device__ u32 append(bool is_match, const Match& match) const {
        const u32 matched = __ballot_sync(FULL_WARP, is_match);
        u64 at = 0;
        // One atomic addition a warp reserves the places of all its lanes.
        if (lane_of_warp() == 0 && matched) {
            at = atomicAdd(&counters[MATCHES], static_cast<u64>(__popc(matched)));
        }
        at = __shfl_sync(FULL_WARP, at, 0) + __popc(matched & lanes_below());
        if (is_match && at < room) matches[at] = match;
        return __ballot_sync(FULL_WARP, is_match && at >= room);
    }

    // Reserves places for all matches of a unit, or for none, and from the first unit on whose
    // matches do not fit for no unit: so there is no gap between matches, and units that end at the
    // same time do not wait for each other. One thread calls it; the answer is the first place, or
    // NO_ROOM.
    __device__ u64 reserve(u32 count) const {
        const u64 at = atomicAdd(&counters[MATCHES], static_cast<u64>(count));
        if (at + count <= room) return at;
        // True of one unit: the counter exceeds the room from then on.
        if (at <= room) atomicExch(&counters[CUT], at + 1);
        return NO_ROOM;
    }

    // Whether a unit has found no room, so that no later one will: its work would be for nothing.
    // True soon after, not at once.
    __device__ bool is_closed() const {
        return atomicAdd(&counters[CUT], 0ull) != 0;
    }

    // Whether matches have filled the room, so that no later one finds a place. All lanes of the warp
    // call it.
    __device__ bool is_full() const {
        const u64 at = lane_of_warp() == 0 ? atomicAdd(&counters[MATCHES], 0ull) : 0;
        return __shfl_sync(FULL_WARP, at, 0) >= room;
    }

    // Appends the rest of a unit whose match found no room. One lane calls it, once a unit: the host
    // has made room for all units.
    __device__ void leave_unfinished(const Unit& rest) const {
        unfinished[atomicAdd(&counters[UNFINISHED], 1ull)] = rest;
    }
};
