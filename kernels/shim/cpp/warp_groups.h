// warp_groups.h - stand-ins for the units of kernels/cuda/warp_groups.cuh, which says what they do.
//
// A copy writes rubbish at once and its bytes when a thread waits for its barrier. A product reads
// its panels when it is waited for. So a missing wait and a panel that is overwritten too early
// give wrong sums each time. Neither is seen by the race check.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "units.h"

constexpr bool BITS_ON_WARP_GROUPS = true;

namespace shim {

struct BlockCopy {
    uint4* to;
    const uint4* from;
    unsigned bytes;
};

// The state of a barrier; the barriers of earlier blocks are forgotten.
struct Phases {
    std::uint64_t block = 0;
    unsigned arrivals = 0, missing = 0, phase = 0;
    long expected = 0;
    std::vector<BlockCopy> copies;
};

struct Product {
    unsigned* sums;
    unsigned sum_count;  // 128 of common bits, 64 of signed bytes
    const uint4 *left, *right;
    unsigned step;
    bool is_added;
};

inline std::unordered_map<const void*, Phases> phases_of_barriers;
// The batches of products of the threads, oldest first; the last one is open.
inline std::vector<std::deque<std::vector<Product>>> products_of_threads(1024);

SHIM_UNCHECKED inline Phases& phases_at(const void* barrier) {
    Phases& phases = phases_of_barriers[barrier];
    if (phases.block != blocks_begun()) fail("a barrier that has not been made");
    return phases;
}

SHIM_UNCHECKED inline void end_phase(const void* barrier, Phases& phases) {
    if (phases.missing > 0 || phases.expected > 0) return;
    if (phases.expected < 0) fail("more bytes than a phase has");
    phases.missing = phases.arrivals;
    ++phases.phase;
    wake_all_at(barrier);
}

SHIM_UNCHECKED inline void arrive_at(const void* barrier, unsigned bytes) {
    Phases& phases = phases_at(barrier);
    if (phases.missing == 0) fail("more arrivals than a phase has");
    phases.expected += bytes;
    --phases.missing;
    end_phase(barrier, phases);
}

SHIM_UNCHECKED inline void wait_at(const void* barrier, unsigned parity) {
    for (;;) {
        Phases& phases = phases_at(barrier);
        if (phases.phase % 2 != parity) return;
        for (const BlockCopy& copy : std::exchange(phases.copies, {})) {
            std::memcpy(copy.to, copy.from, copy.bytes);
            phases.expected -= copy.bytes;
        }
        end_phase(barrier, phases);
        if (phases.phase % 2 == parity) sleep_at(barrier);
    }
}

SHIM_UNCHECKED inline unsigned common_bits(const uint4& left, const uint4& right) {
    const auto count = [](unsigned bits) { return unsigned(__builtin_popcount(bits)); };
    return count(left.x & right.x) + count(left.y & right.y) + count(left.z & right.z) +
           count(left.w & right.w);
}

SHIM_UNCHECKED inline unsigned product_of_bytes(const uint4& left, const uint4& right) {
    const auto* const of_left = reinterpret_cast<const signed char*>(&left);
    const auto* const of_right = reinterpret_cast<const signed char*>(&right);
    int sum = 0;
    for (unsigned i = 0; i < sizeof left; ++i) sum += of_left[i] * of_right[i];
    return static_cast<unsigned>(sum);
}

// The product of the running thread.
SHIM_UNCHECKED inline void multiply(const Product& product) {
    const unsigned thread = thread_index().x, lane = thread % 32;
    const auto place = [](unsigned row, unsigned chunk) { return row * 8 + (chunk ^ row % 8); };
    for (unsigned i = 0; i < product.sum_count; ++i) {
        const unsigned row = thread / 32 % 4 * 16 + lane / 4 + i % 4 / 2 * 8;
        const unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        unsigned sum = product.is_added ? product.sums[i] : 0;
        for (unsigned chunk = 2 * product.step; chunk < 2 * product.step + 2; ++chunk) {
            const uint4& of_left = product.left[place(row, chunk)];
            const uint4& of_right = product.right[place(column, chunk)];
            sum += product.sum_count == 128 ? common_bits(of_left, of_right)
                                            : product_of_bytes(of_left, of_right);
        }
        product.sums[i] = sum;
    }
}

}  // namespace shim

struct alignas(8) Barrier {
    // For the race check: written when the barrier is made, read by each use.
    volatile unsigned long long state;

    void init(unsigned arrivals) {
        state = arrivals;
        shim::phases_of_barriers[this] = {shim::blocks_begun(), arrivals, arrivals, 0, 0, {}};
    }
    void arrive() { arrive_and_expect(0); }
    void arrive_and_expect(unsigned bytes) {
        static_cast<void>(state);
        shim::arrive_at(this, bytes);
    }
    void wait(unsigned parity) {
        static_cast<void>(state);
        shim::wait_at(this, parity);
    }
};

SHIM_UNCHECKED inline unsigned read_flag(const unsigned& flag) {
    return *const_cast<const volatile unsigned*>(&flag);
}

SHIM_UNCHECKED inline void copy_block(uint4* to, const uint4* from, unsigned bytes,
                                      Barrier& barrier) {
    std::memset(static_cast<void*>(to), 0xcb, bytes);
    shim::phases_at(&barrier).copies.push_back({to, from, bytes});
    shim::wake_all_at(&barrier);
}

template <std::size_t SUMS>
void begin_products(unsigned (&)[SUMS]) {
    auto& batches = shim::products_of_threads[threadIdx.x];
    if (batches.empty()) batches.emplace_back();
}

SHIM_UNCHECKED inline void multiply_panels(unsigned (&sums)[128], const uint4* left,
                                           const uint4* right, unsigned step, bool is_added) {
    auto& batches = shim::products_of_threads[threadIdx.x];
    batches.back().push_back({sums, 128, left, right, step, is_added});
}

SHIM_UNCHECKED inline void multiply_bytes(unsigned (&sums)[64], const uint4* left,
                                          const uint4* right, unsigned step, bool is_added) {
    auto& batches = shim::products_of_threads[threadIdx.x];
    batches.back().push_back({sums, 64, left, right, step, is_added});
}

inline void close_products() { shim::products_of_threads[threadIdx.x].emplace_back(); }

template <unsigned LEFT, std::size_t SUMS>
SHIM_UNCHECKED void wait_for_products(unsigned (&)[SUMS]) {
    auto& batches = shim::products_of_threads[threadIdx.x];
    for (; batches.size() > LEFT + 1; batches.pop_front()) {
        for (const shim::Product& product : batches.front()) shim::multiply(product);
    }
    // No lane goes on before all lanes of the warp have their sums.
    shim::collective(shim::Collective::Ballot, ~0u, 0, 0, 0);
}

template <unsigned>
void give_up_registers() {}
template <unsigned>
void take_registers() {}

template <unsigned THREADS>
void sync_first(int line = __builtin_LINE()) {
    shim::barrier_of_first(line, THREADS);
}
