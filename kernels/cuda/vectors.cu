// vectors.cu - epsilon joins of vectors: nested loops, the directory of quantiles, and boxes over
// vectors in order. Contract: kernels/src/cuda/vectors.
//
//   vectors_nested_DIMS      all pairs, by tiles in shared memory      (DIMS 0: any number)
//   vectors_pages_DIMS       the same, past pages out of reach
//   vectors_half_DIMS_OWN    boxes, and products by tensor cores       (OWN leaves a warp)
//   vectors_float_DIMS_OWN   boxes, and float32
//   vectors_tiles_G          all pairs by products of bytes, with the kernels around it
//   all others               order and boxes, as vector_order.cuh says
//
// Reads each row once for its order, and rows and boxes again from the caches; writes 16 B a match.
#include "vector_boxes.cuh"
#include "vector_loops.cuh"
#include "vector_tiles.cuh"

extern "C" __global__ void __launch_bounds__(LOOP_THREADS)
    vectors_nested_8(Vectors left, Vectors right, Question question, JoinUnits units,
                     NearOutput output, u32 tile_len) {
    join_nested<8>(left, right, question, units, output, tile_len);
}

extern "C" __global__ void __launch_bounds__(LOOP_THREADS)
    vectors_nested_0(Vectors left, Vectors right, Question question, JoinUnits units,
                     NearOutput output, u32 tile_len) {
    join_nested<0>(left, right, question, units, output, tile_len);
}

extern "C" __global__ void __launch_bounds__(LOOP_THREADS)
    vectors_pages_8(Vectors left, Vectors right, Directory directory, Question question,
                    JoinUnits units, NearOutput output, u32 tile_len) {
    join_pages<8>(left, right, directory, question, units, output, tile_len);
}

extern "C" __global__ void __launch_bounds__(LOOP_THREADS, 16)
    vectors_pages_0(Vectors left, Vectors right, Directory directory, Question question,
                    JoinUnits units, NearOutput output, u32 tile_len) {
    join_pages<0>(left, right, directory, question, units, output, tile_len);
}

extern "C" __global__ void __launch_bounds__(SAMPLE_THREADS)
    vectors_plan(Vectors vectors, float epsilon, Plan* plan) {
    choose_plan(vectors, epsilon, plan);
}

extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    vectors_keys(Vectors vectors, const Plan* plan, u32* keys) {
    make_keys(vectors, plan, keys);
}

extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    vectors_count(const u32* keys, u32 len, u32 shift, u32* counts) {
    count_digits(keys, len, shift, counts);
}

extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    vectors_scan(u32* counts, u32 tiles, u32* totals) {
    scan_digits(counts, tiles, totals);
}

extern "C" __global__ void __launch_bounds__(SCAN_THREADS, 3)
    vectors_move(Sorted from, Sorted to, u32 len, u32 shift, const u32* counts,
                 const u32* totals) {
    move_keys(from, to, len, shift, counts, totals);
}

extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    vectors_supers(Boxed boxed, u32 ends) {
    box_supers(boxed, ends);
}

extern "C" __global__ void __launch_bounds__(GROUP)
    vectors_arrange_8(Vectors vectors, Boxed boxed) {
    arrange<8>(vectors, boxed);
}

extern "C" __global__ void __launch_bounds__(GROUP)
    vectors_arrange_16(Vectors vectors, Boxed boxed) {
    arrange<16>(vectors, boxed);
}

static_assert(sizeof(BoxShared<4, 2, 64>) == 5184, "as the launcher has it");
static_assert(sizeof(BoxShared<8, 2, 64>) == 5280, "as the launcher has it");
static_assert(sizeof(BoxShared<8, 4, 64>) == 5408, "as the launcher has it");
static_assert(sizeof(BoxShared<16, 2, 128>) == 9632, "as the launcher has it");
static_assert(sizeof(BoxShared<8, 2, 0>) == 1120, "as the launcher has it");
static_assert(sizeof(BoxShared<16, 2, 0>) == 1312, "as the launcher has it");

extern "C" __global__ void __launch_bounds__(BOX_WARPS * WARP, 4)
    vectors_half_4_2(Boxed left, Boxed right, Question question, JoinUnits units,
                     NearOutput output) {
    // The launcher asks no device for it that has no such units; so below.
    if constexpr (BITS_ON_TENSOR_CORES) {
        join_boxes<4, 2, HalfFilter<1, 2>>(left, right, question, units, output);
    }
}

extern "C" __global__ void __launch_bounds__(BOX_WARPS * WARP, 4)
    vectors_half_8_2(Boxed left, Boxed right, Question question, JoinUnits units,
                     NearOutput output) {
    if constexpr (BITS_ON_TENSOR_CORES) {
        join_boxes<8, 2, HalfFilter<1, 2>>(left, right, question, units, output);
    }
}

extern "C" __global__ void __launch_bounds__(BOX_WARPS * WARP, 4)
    vectors_half_8_4(Boxed left, Boxed right, Question question, JoinUnits units,
                     NearOutput output) {
    if constexpr (BITS_ON_TENSOR_CORES) {
        join_boxes<8, 4, HalfFilter<1, 4>>(left, right, question, units, output);
    }
}

extern "C" __global__ void __launch_bounds__(BOX_WARPS * WARP, 2)
    vectors_half_16_2(Boxed left, Boxed right, Question question, JoinUnits units,
                      NearOutput output) {
    if constexpr (BITS_ON_TENSOR_CORES) {
        join_boxes<16, 2, HalfFilter<2, 2>>(left, right, question, units, output);
    }
}

extern "C" __global__ void __launch_bounds__(BOX_WARPS * WARP, 4)
    vectors_float_8_2(Boxed left, Boxed right, Question question, JoinUnits units,
                      NearOutput output) {
    join_boxes<8, 2, FloatFilter<1, 2>>(left, right, question, units, output);
}

extern "C" __global__ void __launch_bounds__(BOX_WARPS * WARP, 4)
    vectors_float_16_2(Boxed left, Boxed right, Question question, JoinUnits units,
                       NearOutput output) {
    join_boxes<16, 2, FloatFilter<2, 2>>(left, right, question, units, output);
}

extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    vectors_extent(const float* values, u64 count, u32* extent) {
    find_extent(values, count, extent);
}

extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    vectors_bytes(ByteRows bytes, u32 row_count, double reach) {
    make_bytes(bytes, row_count, reach);
}

extern "C" __global__ void __launch_bounds__(3 * GROUP_THREADS, 1)
    vectors_tiles_2(TileQuestion question, JoinUnits units) {
    if constexpr (BITS_ON_WARP_GROUPS) find_candidates<2>(question, units);
}

extern "C" __global__ void __launch_bounds__(5 * GROUP_THREADS, 1)
    vectors_tiles_4(TileQuestion question, JoinUnits units) {
    if constexpr (BITS_ON_WARP_GROUPS) find_candidates<4>(question, units);
}

extern "C" __global__ void __launch_bounds__(DECIDE_WARPS * WARP)
    vectors_decide(TileQuestion question, Question asked) {
    decide_candidates(question, asked);
}

extern "C" __global__ void __launch_bounds__(DECIDE_WARPS * WARP)
    vectors_blocks(TileQuestion question, Question asked, JoinUnits units) {
    join_blocks(question, asked, units);
}
