// cuda.h - CUDA C++ as far as kernels use it, for a C++17 compiler. Included before a kernel's
// source.
//
// Absent, so that its use does not compile: statically declared __shared__ memory (kernels
// declare it with DYNAMIC_SHARED), __constant__ memory, textures, cooperative groups,
// __activemask() (its answer depends on scheduling), asm, and atomics on anything but 32- and
// 64-bit integers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels.h"
#include "runtime.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __restrict__ __restrict

#define DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(shim::shared_memory())

#define threadIdx (shim::thread_index())
#define blockIdx (shim::block_index())
#define blockDim (shim::grid().threads)
#define gridDim (shim::grid().blocks)

#define __syncthreads() static_cast<void>(shim::barrier(__LINE__, false))
#define __syncthreads_count(value) static_cast<int>(shim::barrier(__LINE__, (value) != 0))
#define __syncthreads_or(value) static_cast<int>(shim::barrier(__LINE__, (value) != 0) != 0)
#define __syncwarp (shim::WarpSync{__LINE__})

#define SHIM_VECTORS(scalar, name)                                                            \
    struct alignas(2 * sizeof(scalar)) name##2 { scalar x, y; };                              \
    struct alignas(4 * sizeof(scalar)) name##4 { scalar x, y, z, w; };                        \
    inline name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }                      \
    inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }
SHIM_VECTORS(int, int)
SHIM_VECTORS(unsigned, uint)
SHIM_VECTORS(float, float)

namespace shim {

template <class T>
std::uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
T from_bits(std::uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

struct WarpSync {
    int line;
    void operator()(unsigned mask = ~0u) const { collective(Collective::Sync, mask, 0, 0, line); }
};

template <class T>
T shuffle(unsigned mask, T value, unsigned source) {
    return from_bits<T>(collective(Collective::Shuffle, mask, to_bits(value), source, 0));
}

// Not instrumented: the race check is told instead. No other thread runs in between.
template <class T, class Change>
__attribute__((noinline, no_sanitize("thread"))) T change_atomically(T* at, Change change) {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
    race_atomic(at, sizeof(T));
    const T before = *at;
    *at = change(before);
    return before;
}

template <class T>
struct Same {
    using Type = T;
};

}  // namespace shim

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
    const unsigned own = shim::lane(), size = width;
    return shim::shuffle(mask, value, (own & ~(size - 1)) | (lane & (size - 1)));
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
    const unsigned own = shim::lane(), source = own ^ lanes, size = width;
    return shim::shuffle(mask, value, source < (own & ~(size - 1)) + size ? source : own);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32) {
    const unsigned own = shim::lane(), size = width;
    return shim::shuffle(mask, value, own % size >= distance ? own - distance : own);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32) {
    const unsigned own = shim::lane(), size = width;
    return shim::shuffle(mask, value, own % size + distance < size ? own + distance : own);
}

inline unsigned __ballot_sync(unsigned mask, int value) {
    return static_cast<unsigned>(
        shim::collective(shim::Collective::Ballot, mask, value != 0, 0, 0));
}
inline int __any_sync(unsigned mask, int value) { return __ballot_sync(mask, value) != 0; }
inline int __all_sync(unsigned mask, int value) { return __ballot_sync(mask, !value) == 0; }

template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
    return static_cast<unsigned>(
        shim::collective(shim::Collective::Match, mask, shim::to_bits(value), 0, 0));
}

#define SHIM_REDUCE(name, kind)                                                               \
    inline unsigned __reduce_##name##_sync(unsigned mask, unsigned value) {                   \
        return static_cast<unsigned>(                                                         \
            shim::collective(shim::Collective::kind, mask, value, 0, 0));                     \
    }
SHIM_REDUCE(add, Add)
SHIM_REDUCE(min, Min)
SHIM_REDUCE(max, Max)
SHIM_REDUCE(and, And)
SHIM_REDUCE(or, Or)
SHIM_REDUCE(xor, Xor)

#define SHIM_ATOMIC(name, result)                                                             \
    template <class T>                                                                        \
    T atomic##name(T* at, typename shim::Same<T>::Type value) {                               \
        return shim::change_atomically(at, [value](T before) { return T(result); });          \
    }
SHIM_ATOMIC(Add, before + value)
SHIM_ATOMIC(Sub, before - value)
SHIM_ATOMIC(Min, before < value ? before : value)
SHIM_ATOMIC(Max, before > value ? before : value)
SHIM_ATOMIC(And, before & value)
SHIM_ATOMIC(Or, before | value)
SHIM_ATOMIC(Xor, before ^ value)
SHIM_ATOMIC(Exch, (static_cast<void>(before), value))

template <class T>
T atomicCAS(T* at, typename shim::Same<T>::Type expected, typename shim::Same<T>::Type value) {
    return shim::change_atomically(
        at, [=](T before) { return before == expected ? T(value) : before; });
}

inline int max(int left, int right) { return left < right ? right : left; }

inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
inline int __clz(unsigned value) { return value ? __builtin_clz(value) : 32; }
inline int __ffs(int value) { return __builtin_ffs(value); }

// Rounded to nearest each: the compiler is told to contract nothing.
inline double __dadd_rn(double left, double right) { return left + right; }
inline double __dsub_rn(double left, double right) { return left - right; }
inline double __dmul_rn(double left, double right) { return left * right; }

inline unsigned __float_as_uint(float value) { return shim::from_bits<unsigned>(shim::to_bits(value)); }
inline float __uint_as_float(unsigned bits) { return shim::from_bits<float>(shim::to_bits(bits)); }

template <class T>
T __ldg(const T* at) {
    return *at;
}

#include "units.h"
#include "warp_groups.h"
