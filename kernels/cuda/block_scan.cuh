// block_scan.cuh - sums over the threads of a block.
#pragma once

#include "device.cuh"

// Threads of a block, each of which has a place in two rows of shared memory.
constexpr u32 SCAN_THREADS = 256;

// The sum of the values of the threads up to the calling one, and of all in `all`: by Hillis and
// Steele, in two rows of shared memory. All threads call it.
__device__ inline u32 sum_up_to_thread(u32 value, u32* rows, u32& all) {
    u32 *from = rows, *to = rows + SCAN_THREADS;
    from[threadIdx.x] = value;
    for (u32 distance = 1; distance < SCAN_THREADS; distance *= 2) {
        __syncthreads();  // The last row is there, and nobody reads the one before.
        u32 sum = from[threadIdx.x];
        if (threadIdx.x >= distance) sum += from[threadIdx.x - distance];
        to[threadIdx.x] = sum;
        u32* const row = from;
        from = to;
        to = row;
    }
    __syncthreads();  // So is the row of all sums.
    all = from[SCAN_THREADS - 1];
    return from[threadIdx.x];
}
