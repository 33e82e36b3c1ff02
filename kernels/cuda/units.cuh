// units.cuh - instructions that the compiler has no name for without its headers: copies to shared
// memory that go on by themselves and products of bits and of halves by tensor cores, from
// capability 8.0 on, sums of bytes, and operations that the compiler would join with others.
//
// Older devices copy at once. They have no such products: BITS_ON_TENSOR_CORES is then false, and
// kernels take other units. The shim brings stand-ins (kernels/shim/cpp/units.h): copies that
// are as late as they may be, and a product that exchanges its operands between lanes.
#pragma once

#include "device.cuh"

#ifndef UNITS_OF_SHIM
#if __CUDA_ARCH__ >= 800
#define UNITS_OF_8_0
constexpr bool BITS_ON_TENSOR_CORES = true;
#else
constexpr bool BITS_ON_TENSOR_CORES = false;
#endif

#ifdef UNITS_OF_8_0
__device__ inline u32 address_in_shared(const void* at) {
    return static_cast<u32>(__cvta_generic_to_shared(at));
}
#endif

// Starts a copy of 16 bytes to shared memory, both sides aligned, in the open group of the thread.
__device__ inline void copy_async(uint4* to, const uint4* from) {
#ifdef UNITS_OF_8_0
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address_in_shared(to)), "l"(from)
                 : "memory");
#else
    *to = *from;
#endif
}

// Closes the group of copies of the thread, which may have none.
__device__ inline void close_copies() {
#ifdef UNITS_OF_8_0
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `LEFT` of the thread's groups go on, the last ones closed.
template <u32 LEFT>
__device__ inline void wait_for_copies() {
#ifdef UNITS_OF_8_0
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

// Loads four matrices of 8 rows of 16 bytes from shared memory. Lane `l` names row `l % 8` of
// matrix `l / 8`, and gets of each matrix word `l % 4` of row `l / 4`.
__device__ inline void load_matrices(u32 (&words)[4], const uint4* row) {
#ifdef UNITS_OF_8_0
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address_in_shared(row))
                 : "memory");
#endif
}

// Adds to 16 x 8 sums the numbers of common bits of 16 left and 8 right rows of 256 bits. With
// `row = l / 4` and `word = l % 4` lane `l` has
//
//   left   words `word` of rows `row` and `row + 8`, then words `word + 4` of both
//   right  words `word` and `word + 4` of row `row`
//   sums   of row `row` with columns `2 * word` and `2 * word + 1`, then of row `row + 8`
__device__ inline void multiply_bits(u32 (&sums)[4], const u32 (&left)[4], u32 right_low,
                                     u32 right_high) {
#ifdef UNITS_OF_8_0
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_low),
          "r"(right_high));
#endif
}

// Two numbers as halves (float16) of a word, rounded to nearest, with `low` in the lower half. Those
// past the largest half become infinite.
__device__ inline u32 to_halves(float low, float high) {
    u32 halves = 0;
#ifdef UNITS_OF_8_0
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
#endif
    return halves;
}

// The lower and the upper half of a word.
__device__ inline float low_half(u32 halves) {
    float value = 0;
#ifdef UNITS_OF_8_0
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, low;\n}"
        : "=f"(value)
        : "r"(halves));
#endif
    return value;
}

__device__ inline float high_half(u32 halves) { return low_half(halves >> 16); }

// The halves between those of `low` and of `high`.
__device__ inline u32 clamp_halves(u32 halves, u32 low, u32 high) {
#ifdef UNITS_OF_8_0
    asm("max.f16x2 %0, %0, %1;\nmin.f16x2 %0, %0, %2;" : "+r"(halves) : "r"(low), "r"(high));
#endif
    return halves;
}

// The products of two words' halves, rounded to nearest.
__device__ inline u32 multiply_halves(u32 left, u32 right) {
#ifdef UNITS_OF_8_0
    asm("mul.rn.f16x2 %0, %0, %1;" : "+r"(left) : "r"(right));
#endif
    return left;
}

// 16 x 8 sums in float32: `begin`, and the products of 16 left and 8 right rows of 16 halves. Lanes
// have words as in `multiply_bits`, each of two halves.
__device__ inline void multiply_rows(float (&sums)[4], const float (&begin)[4],
                                     const u32 (&left)[4], u32 right_low, u32 right_high) {
#ifdef UNITS_OF_8_0
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_low),
          "r"(right_high), "f"(begin[0]), "f"(begin[1]), "f"(begin[2]), "f"(begin[3]));
#endif
}

// The same, added to the sums.
__device__ inline void add_rows(float (&sums)[4], const u32 (&left)[4], u32 right_low,
                                u32 right_high) {
#ifdef UNITS_OF_8_0
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_low),
          "r"(right_high));
#endif
}

// `left * right + sum`, in one operation whatever the compiler knows of them.
__device__ inline u32 multiply_add(u32 left, u32 right, u32 sum) {
    asm("mad.lo.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(left), "r"(right));
    return sum;
}

// `left & right`, in an operation of its own.
__device__ inline u32 common_bits(u32 left, u32 right) {
    asm("and.b32 %0, %0, %1;" : "+r"(left) : "r"(right));
    return left;
}

// `bits & (left | right)`, in one operation.
__device__ inline u32 and_either(u32 bits, u32 left, u32 right) {
    asm("lop3.b32 %0, %0, %1, %2, 0xe0;" : "+r"(bits) : "r"(left), "r"(right));
    return bits;
}

// Adds the four bytes of a word to a sum.
__device__ inline u32 add_bytes(u32 sum, u32 bytes) {
    asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(bytes), "r"(0x01010101));
    return sum;
}
#endif
