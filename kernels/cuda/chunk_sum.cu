// chunk_sum.cu - the sum of each chunk of numbers. The smallest primitive: a pattern for others,
// and a test of the device layer. Contract: kernels/src/cuda/chunk_sum.rs.
//
// Reads 4 B a value, writes 8 B a chunk. Neighbouring lanes read neighbouring values.
#include "device.cuh"

// Grid: any. Block: full warps. Shared: none. Barriers: none. A warp takes a chunk, and its lanes
// stride over the values.
extern "C" __global__ void __launch_bounds__(256)
    chunk_sum(const u32* values, u32 value_count, u32 chunk_len, u64* sums) {
    const u32 chunks = (value_count + chunk_len - 1) / chunk_len;
    const u32 warps = threads_of_grid() / WARP;
    for (u32 chunk = thread_of_grid() / WARP; chunk < chunks; chunk += warps) {
        const u32 begin = chunk * chunk_len;
        const u32 end = begin + smaller(chunk_len, value_count - begin);
        u64 sum = 0;
        for (u32 at = begin + lane_of_warp(); at < end; at += WARP) sum += values[at];
        // Halves of the warp are added until lane 0 has the sum of all.
        for (u32 distance = WARP / 2; distance > 0; distance /= 2) {
            sum += __shfl_down_sync(FULL_WARP, sum, distance);
        }
        if (lane_of_warp() == 0) sums[chunk] = sum;
    }
}
