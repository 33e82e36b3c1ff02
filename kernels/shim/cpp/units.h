// units.h - stand-ins for the units of kernels/cuda/units.cuh, which says what they do.
//
// A copy writes rubbish at once and its bytes when they are waited for, so that a missing wait and
// a target that others still read are both seen. Tensor cores order no accesses to memory.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "runtime.h"

#define UNITS_OF_SHIM
constexpr bool BITS_ON_TENSOR_CORES = true;

// For functions that touch no memory of a kernel, which the race check would look up in vain.
#define SHIM_UNCHECKED __attribute__((noinline, no_sanitize("thread")))

namespace shim {

struct Copy {
    uint4* to;
    const uint4* from;
};

// Not inside of functions, where the race check would have to answer for their guards.
inline std::vector<std::deque<std::vector<Copy>>> copies_of_threads(1024);
template <class T>
inline std::array<std::array<T, 32>, 32> values_of_lanes[2];
template <class T>
inline std::array<unsigned char, 1024> turns;

// The groups of copies of the running thread, oldest first; the last one is open.
inline std::deque<std::vector<Copy>>& copies() {
    auto& groups = copies_of_threads[thread_index().x];
    if (groups.empty()) groups.emplace_back();
    return groups;
}

// The values of all lanes of the running warp, each of which brings its own. Two arrays take turns:
// a lane that writes to one again has met all other lanes after they read it.
template <class T>
SHIM_UNCHECKED const std::array<T, 32>& of_all_lanes(const T& own) {
    const unsigned thread = thread_index().x;
    auto& lanes = values_of_lanes<T>[turns<T>[thread] ^= 1][thread / 32];
    lanes[thread % 32] = own;
    collective(Collective::Ballot, ~0u, 0, 0, 0);
    return lanes;
}

struct Operands {
    unsigned left[4], right[2];
};

}  // namespace shim

inline void copy_async(uint4* to, const uint4* from) {
    *to = {0xcbcbcbcb, 0xcbcbcbcb, 0xcbcbcbcb, 0xcbcbcbcb};
    shim::copies().back().push_back({to, from});
}

inline void close_copies() { shim::copies().emplace_back(); }

template <unsigned LEFT>
void wait_for_copies() {
    auto& groups = shim::copies();
    for (; groups.size() > LEFT + 1; groups.pop_front()) {
        for (const shim::Copy& copy : groups.front()) *copy.to = *copy.from;
    }
}

inline void load_matrices(unsigned (&words)[4], const uint4* row) {
    const auto& rows = shim::of_all_lanes(row);
    const unsigned lane = shim::lane();
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
        const uint4* const at = rows[8 * matrix + lane / 4];
        words[matrix] = (&at->x)[lane % 4];
    }
}

SHIM_UNCHECKED inline void multiply_bits(unsigned (&sums)[4], const unsigned (&left)[4],
                                         unsigned right_low, unsigned right_high) {
    const shim::Operands own{{left[0], left[1], left[2], left[3]}, {right_low, right_high}};
    const auto& lanes = shim::of_all_lanes(own);
    const unsigned row = shim::lane() / 4, pair = shim::lane() % 4;
    for (unsigned sum = 0; sum < 4; ++sum) {
        const unsigned column = 2 * pair + sum % 2;
        for (unsigned word = 0; word < 8; ++word) {
            const unsigned of_left = lanes[4 * row + word % 4].left[sum / 2 + word / 4 * 2];
            const unsigned of_right = lanes[4 * column + word % 4].right[word / 4];
            sums[sum] += static_cast<unsigned>(__builtin_popcount(of_left & of_right));
        }
    }
}

// Halves of words, by the compiler's software.
namespace shim {

using Halves = std::array<_Float16, 2>;

inline Halves halves_of(unsigned word) {
    Halves halves;
    std::memcpy(&halves, &word, sizeof word);
    return halves;
}

inline unsigned word_of(Halves halves) {
    unsigned word;
    std::memcpy(&word, &halves, sizeof word);
    return word;
}

using Floats = std::array<float, 2>;

inline Floats floats_of(unsigned word) {
    const Halves halves = halves_of(word);
    return {static_cast<float>(halves[0]), static_cast<float>(halves[1])};
}

struct FloatOperands {
    Floats left[4], right[2];
};

}  // namespace shim

inline unsigned to_halves(float low, float high) {
    return shim::word_of({static_cast<_Float16>(low), static_cast<_Float16>(high)});
}
inline float low_half(unsigned halves) { return shim::halves_of(halves)[0]; }
inline float high_half(unsigned halves) { return shim::halves_of(halves)[1]; }

inline unsigned clamp_halves(unsigned halves, unsigned low, unsigned high) {
    shim::Halves values = shim::halves_of(halves);
    for (unsigned i = 0; i < 2; ++i) {
        const _Float16 least = shim::halves_of(low)[i], most = shim::halves_of(high)[i];
        values[i] = values[i] > least ? values[i] : least;
        values[i] = values[i] < most ? values[i] : most;
    }
    return shim::word_of(values);
}

inline unsigned multiply_halves(unsigned left, unsigned right) {
    shim::Halves values = shim::halves_of(left), others = shim::halves_of(right);
    // A product of two halves is exact in float32.
    for (unsigned i = 0; i < 2; ++i) {
        values[i] = static_cast<_Float16>(static_cast<float>(values[i]) * others[i]);
    }
    return shim::word_of(values);
}

SHIM_UNCHECKED inline void add_rows(float (&sums)[4], const unsigned (&left)[4],
                                    unsigned right_low, unsigned right_high) {
    // Each half is converted once, not for each product.
    const shim::FloatOperands own{{shim::floats_of(left[0]), shim::floats_of(left[1]),
                                   shim::floats_of(left[2]), shim::floats_of(left[3])},
                                  {shim::floats_of(right_low), shim::floats_of(right_high)}};
    const auto& lanes = shim::of_all_lanes(own);
    const unsigned row = shim::lane() / 4, pair = shim::lane() % 4;
    for (unsigned sum = 0; sum < 4; ++sum) {
        const unsigned column = 2 * pair + sum % 2;
        for (unsigned word = 0; word < 8; ++word) {
            const auto& of_left = lanes[4 * row + word % 4].left[sum / 2 + word / 4 * 2];
            const auto& of_right = lanes[4 * column + word % 4].right[word / 4];
            for (unsigned i = 0; i < 2; ++i) sums[sum] += of_left[i] * of_right[i];
        }
    }
}

inline void multiply_rows(float (&sums)[4], const float (&begin)[4], const unsigned (&left)[4],
                          unsigned right_low, unsigned right_high) {
    for (unsigned sum = 0; sum < 4; ++sum) sums[sum] = begin[sum];
    add_rows(sums, left, right_low, right_high);
}

inline unsigned multiply_add(unsigned left, unsigned right, unsigned sum) {
    return left * right + sum;
}

inline unsigned common_bits(unsigned left, unsigned right) { return left & right; }

inline unsigned and_either(unsigned bits, unsigned left, unsigned right) {
    return bits & (left | right);
}

inline unsigned add_bytes(unsigned sum, unsigned bytes) {
    for (unsigned shift = 0; shift < 32; shift += 8) sum += bytes >> shift & 0xff;
    return sum;
}
