// group_tiles.cuh - the frequent pairs of tiles of rows of bits, by products of warp groups
// (capability 9.0). Contract: kernels/src/cuda/supports.
//
// A block takes two tiles with the same left items, 128 x 256 pairs, or one. Its last warp copies:
// a stage is a panel of 1,024 transactions of the left items and of each tile's right items, and
// four stages are under way. Two groups of four warps multiply, 64 left items each. So a stage is
// read from shared memory while others arrive, and the copies for the next tiles begin while the sums
// of these ones are compared.
//
//   full[stage]    a phase ends when the stage's copies are there
//   empty[stage]   a phase ends when no warp needs the stage any more
#pragma once

#include "supports.cuh"
#include "warp_groups.cuh"

constexpr u32 TILE_SIDE = 128;
// Chunks of a panel of the items of a tile, which lie together in memory.
constexpr u32 PANEL = TILE_SIDE * PANEL_CHUNKS;
constexpr u32 PANEL_BYTES = PANEL * sizeof(uint4);
constexpr u32 NO_UNIT = ~0u;

// Shared memory of a block. The same size: kernels/src/cuda/supports/launch.rs.
struct alignas(1024) GroupShared {
    static constexpr u32 STAGES = 4;
    static constexpr u32 WARPS = 8;
    uint4 left[STAGES][PANEL];
    uint4 right[STAGES][2 * PANEL];
    Barrier full[STAGES];
    Barrier empty[STAGES];
    // The number of the unit that begins with the stage, or NO_UNIT after the last one.
    u32 units[STAGES];
    // Frequent pairs of both tiles by warp, for two units in turn, and the places of the pairs.
    u32 counts[2][WARPS];
    u64 places[2];
};
static_assert(sizeof(GroupShared) == 197632, "as the launcher has it");

// The stages of a ring, one after the other, with the parity of their phases.
struct Ring {
    u32 stage = 0;
    u32 parity = 0;

    __device__ void advance() {
        if (++stage == GroupShared::STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// One tile, or two of the same left items.
struct Unit {
    Tile tiles[2];
    u32 count;
};

// Tiles in units: two by two at first, `paired` units, then one by one.
template <class Source>
__device__ inline Unit unit_at(const Tiles<Source>& tiles, u32 paired, u32 i) {
    if (i >= paired) return {{tiles.tiles[paired + i], tiles.tiles[paired + i]}, 1};
    return {{tiles.tiles[2 * i], tiles.tiles[2 * i + 1]}, 2};
}

// Units of a launch.
struct UnitRange {
    u32 begin, end;
};

// Copies the stages of all units of a block, or leaves them unfinished when there is no room for
// pairs any more. One thread calls it.
template <class Source>
__device__ void copy_units(const Tiles<Source>& tiles, u32 paired, const UnitRange& range,
                           GroupShared& shared, const PairOutput& output) {
    const u32 stages = tiles.source.panels();
    Ring ring;
    for (u32 i = range.begin + blockIdx.x; i < range.end; i += gridDim.x) {
        const Unit unit = unit_at(tiles, paired, i);
        if (output.is_closed()) {
            for (u32 tile = 0; tile < unit.count; ++tile) output.leave_unfinished(unit.tiles[tile]);
            continue;
        }
        for (u32 stage = 0; stage < stages; ++stage, ring.advance()) {
            Barrier& full = shared.full[ring.stage];
            uint4* const right = shared.right[ring.stage];
            shared.empty[ring.stage].wait(ring.parity ^ 1);
            if (stage == 0) atomicExch(&shared.units[ring.stage], i);
            full.arrive_and_expect((1 + unit.count) * PANEL_BYTES);
            copy_block(shared.left[ring.stage], tiles.source.panel(unit.tiles[0].left, stage),
                       PANEL_BYTES, full);
            for (u32 tile = 0; tile < unit.count; ++tile) {
                copy_block(right + tile * PANEL, tiles.source.panel(unit.tiles[tile].right, stage),
                           PANEL_BYTES, full);
            }
        }
    }
    shared.empty[ring.stage].wait(ring.parity ^ 1);
    atomicExch(&shared.units[ring.stage], NO_UNIT);
    shared.full[ring.stage].arrive();
}

// The unit that begins with the next stage, whose copies are there then, or NO_UNIT. All threads
// that multiply call it.
__device__ inline u32 next_unit(GroupShared& shared, const Ring& ring) {
    shared.full[ring.stage].wait(ring.parity);
    const u32 unit = lane_of_warp() == 0 ? atomicAdd(&shared.units[ring.stage], 0u) : 0;
    return __shfl_sync(FULL_WARP, unit, 0);
}

// Sums of a thread: 64 of each tile.
struct GroupUnits {
    static constexpr u32 THREADS = 2 * GROUP_THREADS;
    static constexpr u32 SUMS = GROUP_SUMS / 2;
    u32 sums[GROUP_SUMS];

    // Multiplies the panels of a stage. The compiler knows whether that adds: products that add by
    // a condition would wait for each other.
    template <bool IS_ADDED>
    __device__ void multiply_stage(const uint4* left, const uint4* right) {
#pragma unroll
        for (u32 step = 0; step < PANEL_STEPS; ++step) {
            multiply_panels(sums, left, right, step, IS_ADDED || step > 0);
        }
        close_products();
    }
    // The supports of a unit's pairs. All panels of its stages have been released at the end.
    __device__ void add_stages(u32 stages, GroupShared& shared, Ring& ring) {
        const u32 first = threadIdx.x / GROUP_THREADS * (PANEL / 2);
        shared.full[ring.stage].wait(ring.parity);
        begin_products(sums);
        multiply_stage<false>(shared.left[ring.stage] + first, shared.right[ring.stage]);
        u32 before = ring.stage;
        ring.advance();
        for (u32 stage = 1; stage < stages; ++stage) {
            shared.full[ring.stage].wait(ring.parity);
            multiply_stage<true>(shared.left[ring.stage] + first, shared.right[ring.stage]);
            // The batch before this one is done.
            wait_for_products<1>(sums);
            if (lane_of_warp() == 0) shared.empty[before].arrive();
            before = ring.stage;
            ring.advance();
        }
        wait_for_products<0>(sums);
        if (lane_of_warp() == 0) shared.empty[before].arrive();
    }
    // The pair at `i` of a tile.
    template <u32 TILE>
    __device__ Pair pair(const Unit& unit, u32 i) const {
        const u32 lane = lane_of_warp(), row = lane / 4 + i % 4 / 2 * 8;
        return {unit.tiles[TILE].left * TILE_SIDE + threadIdx.x / WARP * 16 + row,
                unit.tiles[TILE].right * TILE_SIDE + i / 4 * 8 + lane % 4 * 2 + i % 2,
                sums[TILE * SUMS + i]};
    }
    template <u32 TILE>
    __device__ u32 count(const Unit& unit, u32 least) const {
        if (TILE >= unit.count) return 0;
        u32 most = 0;
#pragma unroll
        for (u32 i = 0; i < SUMS; ++i) {
            const u32 sum = sums[TILE * SUMS + i];
            most = sum > most ? sum : most;
        }
        // Most warps have no frequent pair.
        if (!__any_sync(FULL_WARP, most >= least)) return 0;
        u32 found = 0;
#pragma unroll
        for (u32 i = 0; i < SUMS; ++i) {
            const Pair found_pair = pair<TILE>(unit, i);
            found += found_pair.left < found_pair.right && found_pair.support >= least;
        }
        return warp_sum(found);
    }
    // Writes the warp's frequent pairs of a tile from a place on.
    template <u32 TILE>
    __device__ void write(const Unit& unit, u32 least, u64 at, const PairOutput& output) const {
#pragma unroll
        for (u32 i = 0; i < SUMS; ++i) {
            const Pair found = pair<TILE>(unit, i);
            const bool is_match = found.left < found.right && found.support >= least;
            const u32 matched = __ballot_sync(FULL_WARP, is_match);
            if (is_match) output.matches[at + __popc(matched & lanes_below())] = found;
            at += __popc(matched);
        }
    }
};

// The frequent pairs of a tile in the counts of all warps, which hold both tiles' in their halves.
__device__ inline u32 count_of(u32 counts, u32 tile) { return counts >> 16 * tile & 0xffff; }

// Reserves places for the pairs of each tile, or leaves the tile. One thread a tile.
__device__ inline void reserve_places(GroupShared& shared, const u32* counts, const Unit& unit,
                                      const PairOutput& output) {
    const u32 tile = threadIdx.x / GROUP_THREADS;
    if (threadIdx.x % GROUP_THREADS != 0 || tile >= unit.count) return;
    u32 all = 0;
    for (u32 warp = 0; warp < GroupShared::WARPS; ++warp) all += count_of(counts[warp], tile);
    shared.places[tile] = output.reserve(all);
    if (shared.places[tile] == NO_ROOM) output.leave_unfinished(unit.tiles[tile]);
}

// The first place of the warp among the pairs of a tile, or NO_ROOM.
__device__ inline u64 place_of_warp(const GroupShared& shared, const u32* counts, u32 tile) {
    u64 at = shared.places[tile];
    for (u32 i = 0; i < threadIdx.x / WARP && at != NO_ROOM; ++i) at += count_of(counts[i], tile);
    return at;
}

// Writes the frequent pairs of a unit, tile by tile, or leaves the tile. All threads that multiply
// call it; `counts` are not read any more when they call it again with the same ones.
__device__ inline void write_unit(const GroupUnits& units, const Unit& unit, u32 least, u32* counts,
                                  GroupShared& shared, const PairOutput& output) {
    const u32 warp = threadIdx.x / WARP;
    const u32 first = units.count<0>(unit, least), second = units.count<1>(unit, least);
    if (lane_of_warp() == 0) counts[warp] = first | second << 16;
    sync_first<GroupUnits::THREADS>();  // The counts of all warps are there.
    u32 any = 0;
    for (u32 i = 0; i < GroupShared::WARPS; ++i) any |= counts[i];
    if (!any) return;
    reserve_places(shared, counts, unit, output);
    sync_first<GroupUnits::THREADS>();  // So are their places.
    const u32 own = counts[warp];
    if (count_of(own, 0)) {
        const u64 at = place_of_warp(shared, counts, 0);
        if (at != NO_ROOM) units.write<0>(unit, least, at, output);
    }
    if (count_of(own, 1)) {
        const u64 at = place_of_warp(shared, counts, 1);
        if (at != NO_ROOM) units.write<1>(unit, least, at, output);
    }
}

// Finds the pairs of tiles in units of a range, the first `paired` of all units of two tiles.
//
// Grid: any. Block: 288. Shared: GroupShared. Barriers: 1 a unit, and 1 more with frequent pairs.
template <class Source>
__device__ void find_pairs_by_groups(const Tiles<Source>& tiles, u32 paired, const UnitRange& range,
                                     const PairOutput& output) {
    DYNAMIC_SHARED(GroupShared, memory);
    GroupShared& shared = *memory;
    const u32 stages = tiles.source.panels();
    // Without transactions no pair reaches the least support, which is at least 1.
    if (stages == 0) return;
    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < GroupShared::STAGES; ++stage) {
            shared.full[stage].init(1);
            shared.empty[stage].init(GroupShared::WARPS);
        }
    }
    __syncthreads();  // The barriers are there.
    if (threadIdx.x >= GroupUnits::THREADS) {
        if (lane_of_warp() == 0) copy_units(tiles, paired, range, shared, output);
        return;
    }
    GroupUnits units;
    Ring ring;
    u32 turn = 0;
    for (;; turn ^= 1) {
        const u32 i = next_unit(shared, ring);
        if (i == NO_UNIT) return;
        const Unit unit = unit_at(tiles, paired, i);
        units.add_stages(stages, shared, ring);
        write_unit(units, unit, tiles.least, shared.counts[turn], shared, output);
    }
}
