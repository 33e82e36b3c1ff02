// vector_tiles.cuh - the epsilon join of many dimensions: all pairs, as products of rows of signed
// bytes by warp groups (capability 9.0). Contract, and the proof of the filter:
// kernels/src/cuda/vectors/tiled.rs.
//
//   vectors_extent     the least and the largest number     a thread some numbers
//   vectors_bytes      rows of bytes, and their heights     a warp a row
//   vectors_tiles_G    candidates of strips of tiles        a block: G groups of four warps, and one
//   vectors_decide     pairs of candidates                  a lane a candidate
//   vectors_blocks     pairs of blocks that found no room   a warp 16 x 128 pairs
//
// A block keeps the panels of 64 G left rows in shared memory; panels of 128 right rows stream past.
// While one group tests its sums, others multiply. The largest sum of a row is compared with its
// height and the least one of the tile's columns; only where that passes, each sum with its own two
// heights, by an addition and a maximum.
//
// A warp whose candidates of a tile find no room leaves those 16 x 128 pairs as a unit, and the
// copier leaves the rest of the strip.
#pragma once

#include "vectors.cuh"
#include "warp_groups.cuh"

constexpr u32 TILE_ROWS = 128;
constexpr u32 TILE_PANEL = TILE_ROWS * PANEL_CHUNKS;
constexpr u32 TILE_PANEL_BYTES = TILE_PANEL * sizeof(uint4);
constexpr u32 TILE_SUMS = 64;
// Numbers of the columns of a tile: negative heights, and the largest as one of `ordered_height`.
constexpr u32 TILE_COLUMNS = TILE_ROWS + 4;
constexpr u32 BYTES_MAX = 127;
// Heights are within this, so that a sum of two, or of one and a product, does not overflow.
constexpr int HEIGHT_MAX = (1 << 30) - 1;
// Units of 16 x 128 pairs have this bit, others are strips, whose end is `skip`.
constexpr u32 BLOCK_UNIT = 1u << 31;
constexpr u32 BLOCK_ROWS = 16;

// Rows of bytes in panels: [tile][panel][place]. The same layout: tiled.rs, as above.
struct ByteRows {
    uint4* panels;
    int* heights;   // by row
    int* columns;   // negative ones, by tile, in the order of `column_place`, and the largest one
    const u32* extent;
    const float* rows;
    u32 len, dims, panel_count;

    __device__ uint4* panel(u32 tile, u32 number) const {
        return panels + (static_cast<u64>(tile) * panel_count + number) * TILE_PANEL;
    }
    __device__ u32 steps() const { return (dims + 31) / 32; }
};

// A place such that a lane finds the columns of its sums in fours, and the lanes of a quarter of a
// warp in different banks.
__device__ inline u32 column_place(u32 column) {
    return column / 16 * 16 + column % 8 / 2 * 4 + column / 8 % 2 * 2 + column % 2;
}

// Heights as numbers in the same order, above the zeros of a column that is not there yet.
__device__ inline u32 ordered_height(int height) { return static_cast<u32>(height) ^ 1u << 31; }

// Floats as numbers in the same order.
__device__ inline u32 ordered(float value) {
    const u32 bits = __float_as_uint(value);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}
__device__ inline float from_ordered(u32 number) {
    return __uint_as_float(number >> 31 ? number ^ 1u << 31 : ~number);
}

// Grid: any. Block: full warps. Barriers: none. The extent is that of none at the start: zeros, of
// which the first is a complement.
__device__ inline void find_extent(const float* values, u64 count, u32* extent) {
    u32 least = 0, most = 0;
    for (u64 i = thread_of_grid(); i < count; i += threads_of_grid()) {
        const u32 value = ordered(values[i]);
        if (~value > least) least = ~value;
        if (value > most) most = value;
    }
    for (u32 distance = WARP / 2; distance > 0; distance /= 2) {
        const u32 low = __shfl_down_sync(FULL_WARP, least, distance);
        const u32 high = __shfl_down_sync(FULL_WARP, most, distance);
        least = low > least ? low : least;
        most = high > most ? high : most;
    }
    if (lane_of_warp() == 0) {
        atomicMax(&extent[0], least);
        atomicMax(&extent[1], most);
    }
}

// The centre of an extent, and the numbers of a byte a unit.
struct ByteScale {
    float centre, scale;

    __device__ explicit ByteScale(const u32* extent) {
        const float low = from_ordered(~extent[0]), high = from_ordered(extent[1]);
        const float half = high / 2 - low / 2;
        centre = low / 2 + high / 2;
        scale = half > 1e-36f ? BYTES_MAX / half : 1;
    }
    // A coordinate in units of a byte, and the nearest byte.
    __device__ float place(float value) const { return (value - centre) * scale; }
    __device__ static int nearest(float place) {
        return static_cast<int>(rintf(fminf(fmaxf(place, -127.0f), 127.0f)));
    }
};

// Makes the bytes of a row and its height. Rows past the last one are out of reach.
//
// Grid: any. Block: full warps. Barriers: none.
__device__ inline void make_bytes(const ByteRows& bytes, u32 row_count, double reach) {
    const ByteScale scale(bytes.extent);
    const u32 lane = lane_of_warp();
    for (u32 row = thread_of_grid() / WARP; row < row_count; row += threads_of_grid() / WARP) {
        const bool is_there = row < bytes.len;
        const float* const from = bytes.rows + static_cast<u64>(row) * bytes.dims;
        float moved = 0;
        u32 norm = 0;
        for (u32 panel = 0; panel < bytes.panel_count; ++panel) {
            u32 word = 0;
            for (u32 i = 0; i < 4; ++i) {
                const u32 d = panel * 128 + lane * 4 + i;
                if (!is_there || d >= bytes.dims) continue;
                const float place = scale.place(from[d]);
                const int byte = ByteScale::nearest(place);
                const float apart = place - static_cast<float>(byte);
                moved = fmaf(apart, apart, moved);
                norm += static_cast<u32>(byte * byte);
                word |= (static_cast<u32>(byte) & 0xff) << 8 * i;
            }
            uint4* const to = bytes.panel(row / TILE_ROWS, panel) +
                              place_in_panel(row % TILE_ROWS, lane / 4);
            reinterpret_cast<u32*>(to)[lane % 4] = word;
        }
        for (u32 distance = WARP / 2; distance > 0; distance /= 2) {
            moved += __shfl_xor_sync(FULL_WARP, moved, distance);
        }
        norm = warp_sum(norm);
        if (lane != 0) continue;
        const double away = sqrtf(moved) * (1 + 0x1p-10) + 0x1p-8;
        const double near = reach * scale.scale * (1 + 0x1p-20) + 2 * away;
        const double height = (norm - near * near / 2) / 2 - 1;
        // Also of a height that is no number.
        int whole = -HEIGHT_MAX;
        if (height > -HEIGHT_MAX) whole = static_cast<int>(floor(height));
        if (!is_there) whole = HEIGHT_MAX;
        bytes.heights[row] = whole;
        int* const columns = bytes.columns + row / TILE_ROWS * TILE_COLUMNS;
        columns[column_place(row % TILE_ROWS)] = -whole;
        atomicMax(reinterpret_cast<u32*>(columns + TILE_ROWS), ordered_height(-whole));
    }
}

// Shared memory of a block, before the panels of its own rows. The same size: tiled.rs, as above.
struct alignas(1024) TileShared {
    static constexpr u32 STAGES = 6;
    uint4 columns[STAGES][TILE_PANEL];
    int4 heights[STAGES][TILE_COLUMNS / 4];
    Barrier full[STAGES], empty[STAGES], ready, done;
    u32 is_left[STAGES];
    u32 is_closed;
};
static_assert(sizeof(TileShared) == 102400, "as the launcher has it");

// Candidates in a buffer of fixed room; `reserve` closes it for good.
using Candidates = Output<uint2, JoinUnit>;

// The same layout: tiled.rs, as above.
struct TileQuestion {
    ByteRows bytes;
    Candidates candidates;
    NearOutput output;
};

// The stages of a ring, one after the other, with the parity of their phases.
struct TileRing {
    u32 stage = 0;
    u32 parity = 0;

    __device__ void advance() {
        if (++stage == TileShared::STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// Copies the rows of strips, and the tiles of columns past them. One thread calls it.
template <u32 GROUPS>
__device__ void copy_strips(const TileQuestion& question, const JoinUnits& units,
                            TileShared& shared, uint4* own) {
    constexpr u32 TILES = GROUPS / 2;  // of own rows
    const ByteRows& bytes = question.bytes;
    const u32 panels = bytes.panel_count;
    TileRing ring;
    u32 turn = 0;
    for (u32 i = blockIdx.x; i < units.count; i += gridDim.x, turn ^= 1) {
        const JoinUnit strip = units.units[i];
        shared.done.wait(turn ^ 1);
        if (question.candidates.is_closed()) atomicExch(&shared.is_closed, 1u);
        shared.ready.arrive_and_expect(TILES * panels * TILE_PANEL_BYTES);
        for (u32 panel = 0; panel < panels; ++panel) {
            for (u32 tile = 0; tile < TILES; ++tile) {
                copy_block(own + (panel * TILES + tile) * TILE_PANEL,
                           bytes.panel(strip.left * TILES + tile, panel), TILE_PANEL_BYTES,
                           shared.ready);
            }
        }
        for (u32 tile = strip.at; tile <= strip.skip; ++tile) {
            const bool is_closed = atomicAdd(&shared.is_closed, 0u) != 0;
            // The end of a strip has a stage of its own.
            if (tile == strip.skip || is_closed) {
                shared.empty[ring.stage].wait(ring.parity ^ 1);
                atomicExch(&shared.is_left[ring.stage], 1u);
                shared.full[ring.stage].arrive();
                ring.advance();
                if (tile < strip.skip) {
                    question.output.pairs.leave_unfinished({strip.left, tile, strip.skip});
                }
                break;
            }
            for (u32 panel = 0; panel < panels; ++panel, ring.advance()) {
                Barrier& full = shared.full[ring.stage];
                const bool is_last = panel + 1 == panels;
                const u32 heights = is_last ? TILE_COLUMNS * sizeof(int) : 0;
                shared.empty[ring.stage].wait(ring.parity ^ 1);
                atomicExch(&shared.is_left[ring.stage], 0u);
                full.arrive_and_expect(TILE_PANEL_BYTES + heights);
                copy_block(shared.columns[ring.stage], bytes.panel(tile, panel), TILE_PANEL_BYTES,
                           full);
                if (!is_last) continue;
                copy_block(reinterpret_cast<uint4*>(shared.heights[ring.stage]),
                           reinterpret_cast<const uint4*>(bytes.columns + tile * TILE_COLUMNS),
                           heights, full);
            }
        }
    }
}

// Lets the copier overwrite a stage. All lanes of a warp call it.
__device__ inline void release_stage(TileShared& shared, u32 stage) {
    if (lane_of_warp() == 0) shared.empty[stage].arrive();
}

__device__ inline u32 lowest_bit(u64 bits) {
    const u32 low = static_cast<u32>(bits), high = static_cast<u32>(bits >> 32);
    return low ? __ffs(low) - 1 : __ffs(high) + 31;
}

// The sums of a thread: of rows `row` and `row + 8` with 32 columns each.
struct TileSums {
    u32 sums[TILE_SUMS];
    u32 row;
    int heights[2];

    // Multiplies STEPS steps of a panel. The compiler knows all that says which ones: products that
    // begin by a condition would wait for each other.
    template <u32 STEPS, bool IS_ADDED>
    __device__ void multiply_steps(const uint4* left, const uint4* right) {
#pragma unroll
        for (u32 step = 0; step < STEPS; ++step) {
            multiply_bytes(sums, left, right, step, IS_ADDED || step > 0);
        }
        close_products();
    }
    // The same of the last panel, waited for.
    template <bool IS_ADDED>
    __device__ void multiply_last(const uint4* left, const uint4* right, u32 steps) {
        switch (steps) {
            case 1:
                multiply_steps<1, IS_ADDED>(left, right);
                break;
            case 2:
                multiply_steps<2, IS_ADDED>(left, right);
                break;
            case 3:
                multiply_steps<3, IS_ADDED>(left, right);
                break;
            default:
                multiply_steps<4, IS_ADDED>(left, right);
        }
        wait_for_products<0>(sums);
    }
    // Multiplies all panels of a tile, of which the first is there. The last stage is not released.
    template <u32 GROUPS>
    __device__ void multiply(const ByteRows& bytes, TileShared& shared, const uint4* own,
                             TileRing& ring) {
        constexpr u32 PANEL = GROUPS * (TILE_PANEL / 2);
        const uint4* left = own + threadIdx.x / GROUP_THREADS * (TILE_PANEL / 2);
        const u32 last = bytes.panel_count - 1, rest = bytes.steps() - last * PANEL_STEPS;
        begin_products(sums);
        if (last == 0) {
            multiply_last<false>(left, shared.columns[ring.stage], rest);
            return;
        }
        multiply_steps<PANEL_STEPS, false>(left, shared.columns[ring.stage]);
#pragma unroll 1
        for (u32 panel = 1;; ++panel) {
            const u32 before = ring.stage;
            ring.advance();
            left += PANEL;
            shared.full[ring.stage].wait(ring.parity);
            if (panel == last) {
                multiply_last<true>(left, shared.columns[ring.stage], rest);
                release_stage(shared, before);
                return;
            }
            multiply_steps<PANEL_STEPS, true>(left, shared.columns[ring.stage]);
            // Products of the panel before are done; products of this one go on.
            wait_for_products<1>(sums);
            release_stage(shared, before);
        }
    }
    // Whether a pair of the warp may be near, if all columns had the least height of them.
    __device__ bool is_any_by_least(const int4* columns) const {
        constexpr int NONE = -2147483647;
        // Of each row some numbers, so that comparisons do not wait for each other.
        int most[8] = {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE};
#pragma unroll
        for (u32 i = 0; i < TILE_SUMS; ++i) {
            int& of_row = most[i / 2 % 2 * 4 + i / 4 % 4];
            of_row = max(static_cast<int>(sums[i]), of_row);
        }
        const int top = static_cast<int>(ordered_height(columns[TILE_ROWS / 4].x));
        const int first = max(max(most[0], most[1]), max(most[2], most[3]));
        const int second = max(max(most[4], most[5]), max(most[6], most[7]));
        return __any_sync(FULL_WARP, first + top >= heights[0] || second + top >= heights[1]);
    }
    // Whether a pair of the warp may be near.
    __device__ bool is_any(const int4* columns) const {
        int most[2] = {-2147483647, -2147483647};
#pragma unroll
        for (u32 i = 0; i < TILE_SUMS / 8; ++i) {
            const int4 of = columns[i * 4 + lane_of_warp() % 4];
            const int negative[4] = {of.x, of.y, of.z, of.w};
#pragma unroll
            for (u32 k = 0; k < 8; ++k) {
                // One instruction of capability 9.0.
                most[k / 2 % 2] = max(static_cast<int>(sums[8 * i + k]) + negative[k / 4 * 2 + k % 2],
                                      most[k / 2 % 2]);
            }
        }
        return __any_sync(FULL_WARP, most[0] >= heights[0] || most[1] >= heights[1]);
    }
    // The pairs that may be near, a bit each.
    __device__ u64 find(const int4* columns, u32 tile, u32 len) const {
        u32 words[2] = {};
#pragma unroll
        for (u32 i = 0; i < TILE_SUMS / 8; ++i) {
            const int4 of = columns[i * 4 + lane_of_warp() % 4];
            const int negative[4] = {of.x, of.y, of.z, of.w};
#pragma unroll
            for (u32 k = 0; k < 8; ++k) {
                // Another sum than that of `is_any`, which the compiler would keep otherwise: there
                // are no registers for it.
                const int least = heights[k / 2 % 2] - negative[k / 4 * 2 + k % 2];
                const bool is_near = static_cast<int>(sums[8 * i + k]) >= least;
                if (is_near) words[i / 4] |= 1u << (8 * i + k) % 32;
            }
        }
        u64 bits = static_cast<u64>(words[1]) << 32 | words[0];
        // Only tiles at the diagonal and the last one have others.
        for (u64 rest = bits; rest; rest &= rest - 1) {
            const u32 at = lowest_bit(rest), right = column_of(at, tile);
            if (row_of(at) >= right || right >= len) bits ^= rest & ~(rest - 1);
        }
        return bits;
    }
    __device__ u32 row_of(u32 i) const { return row + i / 2 % 2 * 8; }
    __device__ u32 column_of(u32 i, u32 tile) const {
        return tile * TILE_ROWS + i / 4 * 8 + lane_of_warp() % 4 * 2 + i % 2;
    }
};

// Writes the candidates of a warp and a tile, or leaves them all.
__device__ inline void write_candidates(const TileSums& sums, u64 bits, u32 tile,
                                        const TileQuestion& question, TileShared& shared) {
    const u32 own = __popcll(bits);
    u32 before = own;
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const u32 sum = __shfl_up_sync(FULL_WARP, before, distance);
        if (lane_of_warp() >= distance) before += sum;
    }
    const u32 all = __shfl_sync(FULL_WARP, before, WARP - 1);
    if (all == 0) return;
    u64 at = 0;
    if (lane_of_warp() == 0) at = question.candidates.reserve(all);
    at = __shfl_sync(FULL_WARP, at, 0);
    if (at == NO_ROOM) {
        if (lane_of_warp() > 0) return;
        question.output.pairs.leave_unfinished({BLOCK_UNIT | sums.row / BLOCK_ROWS, tile, 0});
        atomicExch(&shared.is_closed, 1u);
        return;
    }
    at += before - own;
    for (; bits; bits &= bits - 1, ++at) {
        const u32 i = lowest_bit(bits);
        question.candidates.matches[at] = make_uint2(sums.row_of(i), sums.column_of(i, tile));
    }
}

// Waits for a stage. False at the end of a strip.
__device__ inline bool has_tile(TileShared& shared, const TileRing& ring) {
    shared.full[ring.stage].wait(ring.parity);
    return !__any_sync(FULL_WARP, read_flag(shared.is_left[ring.stage]));
}

// Multiplies and tests the tiles of strips. All threads of the groups call it.
template <u32 GROUPS>
__device__ void join_strips(const TileQuestion& question, const JoinUnits& units,
                            TileShared& shared, const uint4* own) {
    const ByteRows& bytes = question.bytes;
    TileSums sums;
    TileRing ring;
    u32 turn = 0;
    for (u32 i = blockIdx.x; i < units.count; i += gridDim.x, turn ^= 1) {
        const JoinUnit strip = units.units[i];
        sums.row = strip.left * GROUPS * 64 + threadIdx.x / WARP * 16 + lane_of_warp() / 4;
        sums.heights[0] = bytes.heights[sums.row];
        sums.heights[1] = bytes.heights[sums.row + 8];
        shared.ready.wait(turn);
        for (u32 tile = strip.at; has_tile(shared, ring); ++tile) {
            sums.multiply<GROUPS>(bytes, shared, own, ring);
            const int4* const columns = shared.heights[ring.stage];
            // Most tiles end here.
            if (sums.is_any_by_least(columns) && sums.is_any(columns)) {
                const u64 bits = sums.find(columns, tile, bytes.len);
                write_candidates(sums, bits, tile, question, shared);
            }
            __syncwarp();  // The heights are read.
            release_stage(shared, ring.stage);
            ring.advance();
        }
        release_stage(shared, ring.stage);
        ring.advance();
        if (lane_of_warp() == 0) shared.done.arrive();
    }
}

// Grid: any. Block: GROUPS groups and one that copies. Shared: TileShared, 8 KiB a group and panel.
// Barriers: 1.
template <u32 GROUPS>
__device__ void find_candidates(const TileQuestion& question, const JoinUnits& units) {
    DYNAMIC_SHARED(TileShared, memory_of_tiles);
    TileShared& shared = *memory_of_tiles;
    uint4* const own = reinterpret_cast<uint4*>(memory_of_tiles + 1);
    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < TileShared::STAGES; ++stage) {
            shared.full[stage].init(1);
            shared.empty[stage].init(GROUPS * 4);
        }
        shared.ready.init(1);
        shared.done.init(GROUPS * 4);
        shared.is_closed = 0;
    }
    __syncthreads();  // The barriers are there.
    if (threadIdx.x >= GROUPS * GROUP_THREADS) {
        give_up_registers<32>();
        if (threadIdx.x == GROUPS * GROUP_THREADS) {
            copy_strips<GROUPS>(question, units, shared, own);
        }
    } else {
        // Together no more than at the start: the last groups would wait for ever.
        take_registers<GROUPS == 4 ? 112 : 208>();
        join_strips<GROUPS>(question, units, shared, own);
    }
}

// The number of candidates that have been written.
__device__ inline u64 candidates_of(const Candidates& candidates) {
    const u64 cut = candidates.counters[CUT], all = candidates.counters[MATCHES];
    return cut ? cut - 1 : all;
}

constexpr u32 DECIDE_WARPS = 4;
// Dimensions of a part of the rows of 32 candidates, which a warp reads together.
constexpr u32 PART = 32;

// Decides candidates, a lane each, part by part of their rows.
//
// Grid: any. Block: DECIDE_WARPS warps. Shared: 2 x 32 x 33 numbers a warp. Barriers: none.
__device__ inline void decide_candidates(const TileQuestion& question, const Question& asked) {
    DYNAMIC_SHARED(float, tile);
    constexpr u32 STRIDE = PART + 1, ROWS = 16;
    const u32 warp = threadIdx.x / WARP, lane = lane_of_warp();
    float* const parts = tile + warp * 2 * WARP * STRIDE;
    const ByteRows& bytes = question.bytes;
    const u64 all = candidates_of(question.candidates);
    Matches matches(question.output, asked);
    const u64 step = static_cast<u64>(gridDim.x) * DECIDE_WARPS * WARP;
    for (u64 at = (static_cast<u64>(blockIdx.x) * DECIDE_WARPS + warp) * WARP; at < all; at += step) {
        const bool is_there = at + lane < all;
        const uint2 pair = is_there ? question.candidates.matches[at + lane] : make_uint2(0, 0);
        double square = 0;
        for (u32 begin = 0; begin < bytes.dims; begin += PART) {
            const u32 d = begin + lane;
            const bool is_inside = d < bytes.dims;
            // `ROWS` rows at a time are under way.
            for (u32 first = 0; first < 2 * WARP; first += ROWS) {
                const u32 of = first < WARP ? pair.x : pair.y;
                float values[ROWS];
#pragma unroll
                for (u32 i = 0; i < ROWS; ++i) {
                    const u64 row = __shfl_sync(FULL_WARP, of, (first + i) % WARP);
                    values[i] = is_inside ? bytes.rows[row * bytes.dims + d] : 0;
                }
#pragma unroll
                for (u32 i = 0; i < ROWS; ++i) parts[(first + i) * STRIDE + lane] = values[i];
            }
            __syncwarp();  // The parts are there.
            // Zeros past the last dimension change no sum.
            for (u32 i = 0; i < PART; ++i) {
                square = add_square(square, parts[lane * STRIDE + i],
                                    parts[(WARP + lane) * STRIDE + i]);
            }
            __syncwarp();  // They are read.
        }
        // There is room for as many pairs as candidates.
        matches.take(is_there && square <= asked.limit, pair.x, pair.y, square);
    }
    matches.flush();
}

// Joins blocks of 16 x 128 pairs, a pair a lane.
//
// Grid: any. Block: DECIDE_WARPS warps. Shared and barriers: none.
__device__ inline void join_blocks(const TileQuestion& question, const Question& asked,
                                   const JoinUnits& units) {
    const ByteRows& bytes = question.bytes;
    Matches matches(question.output, asked);
    const u32 first = blockIdx.x * DECIDE_WARPS + threadIdx.x / WARP;
    for (u32 i = first; i < units.count; i += gridDim.x * DECIDE_WARPS) {
        const JoinUnit unit = units.units[i];
        if (!matches.begin(unit)) continue;
        for (u32 at = lane_of_warp(); at < BLOCK_ROWS * TILE_ROWS; at += WARP) {
            const u32 left = (unit.left & ~BLOCK_UNIT) * BLOCK_ROWS + at / TILE_ROWS;
            const u32 right = unit.at * TILE_ROWS + at % TILE_ROWS;
            const bool is_pair = left < right && right < bytes.len;
            const float* const x = bytes.rows + static_cast<u64>(left) * bytes.dims;
            const float* const y = bytes.rows + static_cast<u64>(right) * bytes.dims;
            double square = 0;
            for (u32 d = 0; is_pair && d < bytes.dims; ++d) square = add_square(square, x[d], y[d]);
            if (!matches.take(is_pair && square <= asked.limit, left, right, square)) break;
        }
    }
    matches.flush();
}
