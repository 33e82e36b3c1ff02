// warp_groups.cuh - units of capability 9.0 (sm_90a): barriers in shared memory that count arrivals
// and copied bytes, copies of whole blocks that report to them, and products of bits by the four
// warps of a group, whose operands lie in shared memory.
//
// For all other capabilities BITS_ON_WARP_GROUPS is false, and the functions do nothing. The shim
// brings stand-ins (kernels/shim/cpp/warp_groups.h): copies and products that are as late as they
// may be.
//
// An operand is a panel: rows of 128 bytes, one after the other from a multiple of 1,024 bytes on,
// each of eight chunks of 16 bytes, of which chunk `c` of row `r` is at place `c ^ r % 8`.
#pragma once

#include "units.cuh"

constexpr u32 GROUP_THREADS = 128;
constexpr u32 PANEL_CHUNKS = 8;
// Products for the chunks of a panel: each takes 32 bytes of all rows.
constexpr u32 PANEL_STEPS = 4;
// Sums of a thread: 64 x 256 of a group.
constexpr u32 GROUP_SUMS = 128;

// The place of a chunk in a panel.
__device__ inline u32 place_in_panel(u32 row, u32 chunk) {
    return row * PANEL_CHUNKS + (chunk ^ row % PANEL_CHUNKS);
}

#ifndef UNITS_OF_SHIM
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define UNITS_OF_9_0
constexpr bool BITS_ON_WARP_GROUPS = true;
#else
constexpr bool BITS_ON_WARP_GROUPS = false;
#endif

// A barrier in shared memory with phases: a phase ends when all arrivals and all expected bytes are
// there. The first phase is 0.
struct alignas(8) Barrier {
    u64 state;

    // Makes a barrier of `arrivals` arrivals a phase. One thread calls it, before a barrier of the
    // block that all others wait at.
    __device__ void init(u32 arrivals) {
#ifdef UNITS_OF_9_0
        asm volatile(
            "mbarrier.init.shared::cta.b64 [%0], %1;\n"
            "fence.mbarrier_init.release.cluster;" ::"r"(address_in_shared(this)),
            "r"(arrivals)
            : "memory");
#endif
    }
    __device__ void arrive() {
#ifdef UNITS_OF_9_0
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_in_shared(this))
                     : "memory");
#endif
    }
    // Arrives, and lets the phase wait for the bytes of copies.
    __device__ void arrive_and_expect(u32 bytes) {
#ifdef UNITS_OF_9_0
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                         address_in_shared(this)),
                     "r"(bytes)
                     : "memory");
#endif
    }
    // Waits for the end of the last phase of this parity; of parity 1 before the first phase ends:
    // not at all.
    __device__ void wait(u32 parity) {
#ifdef UNITS_OF_9_0
        asm volatile(
            "{\n.reg .pred ended;\n"
            "again: mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
            "@!ended bra again;\n}" ::"r"(address_in_shared(this)),
            "r"(parity)
            : "memory");
#endif
    }
};

// Reads a word of shared memory that another thread has written before it arrived at a barrier that
// the calling one has waited for.
__device__ inline u32 read_flag(const u32& flag) { return *const_cast<const volatile u32*>(&flag); }

// Starts a copy of `bytes` bytes to shared memory, both sides aligned to 16, and tells a barrier
// of them.
__device__ inline void copy_block(uint4* to, const uint4* from, u32 bytes, Barrier& barrier) {
#ifdef UNITS_OF_9_0
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(address_in_shared(to)),
        "l"(from), "r"(bytes), "r"(address_in_shared(&barrier))
        : "memory");
#endif
}

#ifdef UNITS_OF_9_0
// A panel as the units take it: swizzled by 128 bytes, groups of 8 rows 1,024 bytes apart.
__device__ inline u64 panel_operand(const uint4* panel) {
    return (address_in_shared(panel) & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define SUMS_4(i) "+r"(sums[i]), "+r"(sums[i + 1]), "+r"(sums[i + 2]), "+r"(sums[i + 3])
#define SUMS_16(i) SUMS_4(i), SUMS_4(i + 4), SUMS_4(i + 8), SUMS_4(i + 12)
#define SUMS_64(i) SUMS_16(i), SUMS_16(i + 16), SUMS_16(i + 32), SUMS_16(i + 48)
#endif

// Begins a batch of products that add to the sums, which nothing else may touch until
// `wait_for_products`.
template <u32 SUMS>
__device__ inline void begin_products(u32 (&sums)[SUMS]) {
#ifdef UNITS_OF_9_0
#pragma unroll
    for (u32 i = 0; i < SUMS; ++i) asm volatile("" : "+r"(sums[i])::"memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

// Adds to 64 x 256 sums the numbers of common bits of 64 left and 256 right rows of panels, in the
// 256 bits of a step; puts them in place of the sums unless `is_added`. The group's warp `w` has
// rows `16 * w` on. With `i = 4 * j + e` lane `l` has in sum `i` row `l / 4 + e / 2 * 8` of them
// with column `8 * j + l % 4 * 2 + e % 2`.
__device__ inline void multiply_panels(u32 (&sums)[GROUP_SUMS], const uint4* left,
                                       const uint4* right, u32 step, bool is_added) {
#ifdef UNITS_OF_9_0
    // 32 bytes a step.
    const u64 left_operand = panel_operand(left) + 2 * step;
    const u64 right_operand = panel_operand(right) + 2 * step;
    asm volatile(
        "{\n.reg .pred is_added;\nsetp.ne.b32 is_added, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "
        "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "
        "%125, %126, %127}, %128, %129, is_added;\n}"
        : SUMS_64(0), SUMS_64(64)
        : "l"(left_operand), "l"(right_operand), "r"(static_cast<u32>(is_added)));
#endif
}

// Adds to 64 x 128 sums of a group the products of rows of signed bytes: of 64 left and 128 right
// ones, in the 32 bytes of a step. The sums of a thread are those of `multiply_panels`, half of them.
__device__ inline void multiply_bytes(u32 (&sums)[GROUP_SUMS / 2], const uint4* left,
                                      const uint4* right, u32 step, bool is_added) {
#ifdef UNITS_OF_9_0
    const u64 left_operand = panel_operand(left) + 2 * step;
    const u64 right_operand = panel_operand(right) + 2 * step;
    asm volatile(
        "{\n.reg .pred is_added;\nsetp.ne.b32 is_added, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, is_added;\n}"
        : SUMS_64(0)
        : "l"(left_operand), "l"(right_operand), "r"(static_cast<u32>(is_added)));
#endif
}

// Closes the batch of the thread's group.
__device__ inline void close_products() {
#ifdef UNITS_OF_9_0
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

// Waits until at most `LEFT` of the group's batches go on, the last ones closed. The panels of the
// others may then be overwritten; with none left, the sums are there.
template <u32 LEFT, u32 SUMS>
__device__ inline void wait_for_products(u32 (&sums)[SUMS]) {
#ifdef UNITS_OF_9_0
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
    if constexpr (LEFT == 0) {
#pragma unroll
        for (u32 i = 0; i < SUMS; ++i) asm volatile("" : "+r"(sums[i])::"memory");
    }
#endif
}

// Sets the registers of each thread of a group, which all its threads call: fewer than at the start
// in a group that copies, so that others can have more.
template <u32 COUNT>
__device__ inline void give_up_registers() {
#ifdef UNITS_OF_9_0
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
#endif
}
template <u32 COUNT>
__device__ inline void take_registers() {
#ifdef UNITS_OF_9_0
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
#endif
}

// A barrier of the first THREADS threads of a block, which may have more.
template <u32 THREADS>
__device__ inline void sync_first() {
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}
#endif
