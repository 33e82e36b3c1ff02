// bugs.cu - kernels with one mistake each, and right ones beside them, to show that each check of
// the shim can fail. `shared` is as large as the block.
#include "device.cuh"

// Right: each thread reads its neighbour's word, after a barrier.
extern "C" __global__ void __launch_bounds__(256) right_neighbour(u32* out) {
    DYNAMIC_SHARED(u32, shared);
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}

// Wrong: no barrier.
extern "C" __global__ void __launch_bounds__(256) bug_missing_barrier(u32* out) {
    DYNAMIC_SHARED(u32, shared);
    shared[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}

// Right: lanes exchange words of shared memory after a __syncwarp().
extern "C" __global__ void __launch_bounds__(256) right_lanes(u32* out) {
    DYNAMIC_SHARED(u32, shared);
    shared[threadIdx.x] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = shared[threadIdx.x ^ 1];
}

// Wrong: a vote orders no memory.
extern "C" __global__ void __launch_bounds__(256) bug_vote_for_syncwarp(u32* out) {
    DYNAMIC_SHARED(u32, shared);
    shared[threadIdx.x] = threadIdx.x;
    const u32 all = __ballot_sync(FULL_WARP, true);
    out[threadIdx.x] = shared[threadIdx.x ^ 1] & all;
}

// Wrong: one word past the end of shared memory.
extern "C" __global__ void __launch_bounds__(256) bug_behind_shared(u32* out) {
    DYNAMIC_SHARED(u32, shared);
    shared[threadIdx.x + 1] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = threadIdx.x;
}

// Wrong: one word past the end of `out`.
extern "C" __global__ void __launch_bounds__(256) bug_behind_device(u32* out) {
    out[threadIdx.x + 1] = threadIdx.x;
}

// Wrong: the halves of a block wait at different barriers.
extern "C" __global__ void __launch_bounds__(256) bug_divergent_barrier(u32* out) {
    if (threadIdx.x < blockDim.x / 2) {
        out[threadIdx.x] = 1;
        __syncthreads();
    } else {
        __syncthreads();
        out[threadIdx.x] = 2;
    }
}

// Wrong: half of a warp leaves, the other half waits for it.
extern "C" __global__ void __launch_bounds__(256) bug_absent_lanes(u32* out) {
    if (threadIdx.x % WARP < WARP / 2) return;
    out[threadIdx.x] = __shfl_sync(FULL_WARP, threadIdx.x, WARP - 1);
}

// Right: all threads add to one word.
extern "C" __global__ void __launch_bounds__(256) right_sum(u32* out) { atomicAdd(out, 1u); }

// Wrong: they do so without an atomic.
extern "C" __global__ void __launch_bounds__(256) bug_plain_add(u32* out) { out[0] += 1; }
