// device.cuh - shared by all kernels: types, warps, and the declaration of dynamic shared memory.
//
// Kernels are compiled by NVRTC (C++17, no headers) for GPUs, and by a C++ compiler for the shim
// that runs them on a CPU (kernels/shim). They take all shared memory dynamically, through
// DYNAMIC_SHARED.
#pragma once

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

// The shim brings its own.
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

constexpr u32 WARP = 32;
constexpr u32 FULL_WARP = 0xffffffff;

// The threads of a launch, one-dimensional, in a row.
__device__ inline u32 thread_of_grid() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline u32 threads_of_grid() { return gridDim.x * blockDim.x; }

__device__ inline u32 lane_of_warp() { return threadIdx.x % WARP; }

// The lanes below the calling one, as a mask.
__device__ inline u32 lanes_below() { return (1u << lane_of_warp()) - 1; }

__device__ inline u32 smaller(u32 left, u32 right) { return left < right ? left : right; }

// The sum over the lanes of a full warp, in lane 0.
__device__ inline u32 warp_sum(u32 value) {
    for (u32 distance = WARP / 2; distance > 0; distance /= 2) {
        value += __shfl_down_sync(FULL_WARP, value, distance);
    }
    return value;
}
