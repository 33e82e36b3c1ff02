// race.cpp - the race check: two accesses to the same bytes, one of them a write, not both atomic,
// by threads that nothing has ordered.
//
// Kernels are compiled with -fsanitize=thread, which calls a function at each access; these are the
// functions, in place of the sanitizer's own. Two threads of a block are ordered by a barrier
// between their accesses, two lanes of a warp also by a __syncwarp() of the whole warp; blocks are
// not ordered. Shuffles and votes order nothing: they exchange values, not memory.
//
// Remembered is, for each word, the last write and the last reads by two threads. A race that
// others have overwritten in that memory is missed; one that is reported is one.
#include "runtime.h"

#if defined(SHIM_RACE)

#include <array>
#include <unordered_map>

namespace shim {
namespace {

constexpr unsigned WARP = 32;
constexpr std::uintptr_t WORD = 4;

struct Access {
    bool is_there = false, is_atomic = false;
    unsigned bytes = 0;  // of the word, a bit each
    Moment moment{};
};

struct Word {
    Access write, read, other_read;
};

// The words of a stretch of memory.
constexpr std::uintptr_t PAGE_WORDS = 256;

// Words by number. Each page has the turn of its last use: those of other turns are empty.
class Words {
  public:
    void clear() { ++turn_; }

    Word& operator[](std::uintptr_t word) {
        const std::uintptr_t number = word / PAGE_WORDS;
        if (!last_ || number != last_number_) {
            last_ = &pages_[number];
            last_number_ = number;
        }
        if (last_->turn != turn_) *last_ = {turn_, {}};
        return last_->words[word % PAGE_WORDS];
    }

  private:
    struct Page {
        std::uint64_t turn = 0;
        std::array<Word, PAGE_WORDS> words;
    };

    std::unordered_map<std::uintptr_t, Page> pages_;
    std::uint64_t turn_ = 1;
    // The page that was asked for last.
    Page* last_ = nullptr;
    std::uintptr_t last_number_ = 0;
};

Words shared_words, device_words;
// The allocation and the gap between two that were met last; nothing is freed while a kernel runs.
Stretch last_allocation, last_gap;

bool are_ordered(const Moment& earlier, const Moment& later) {
    if (earlier.block != later.block) return false;
    if (earlier.thread == later.thread || earlier.barriers != later.barriers) return true;
    return earlier.thread / WARP == later.thread / WARP && earlier.warp_syncs != later.warp_syncs;
}

void check(const Access& earlier, const Access& later, const char* what, bool is_shared) {
    if (!earlier.is_there || !(earlier.bytes & later.bytes)) return;
    if ((earlier.is_atomic && later.is_atomic) || are_ordered(earlier.moment, later.moment)) return;
    fail(std::string("race on ") + (is_shared ? "shared" : "device") + " memory: " + what +
         " thread " + std::to_string(earlier.moment.thread) + " of block " +
         std::to_string(earlier.moment.block));
}

void access_word(Word& word, const Access& access, bool is_write, bool is_shared) {
    check(word.write, access, is_write ? "written after a write by" : "read after a write by",
          is_shared);
    if (is_write) {
        check(word.read, access, "written after a read by", is_shared);
        check(word.other_read, access, "written after a read by", is_shared);
        word.write = access;
    } else {
        if (word.read.is_there && word.read.moment.thread != access.moment.thread) {
            word.other_read = word.read;
        }
        word.read = access;
    }
}

void access(const void* address, std::size_t bytes, bool is_write, bool is_atomic) {
    if (!is_running()) return;
    const bool is_shared = is_shared_memory(address);
    const auto begin = reinterpret_cast<std::uintptr_t>(address), end = begin + bytes;
    if (!is_shared && !last_allocation.has(begin)) {
        if (last_gap.has(begin)) return;
        const Stretch stretch = stretch_at(begin);
        (stretch.is_allocated ? last_allocation : last_gap) = stretch;
        if (!stretch.is_allocated) return;
    }
    auto& words = is_shared ? shared_words : device_words;
    for (std::uintptr_t word = begin / WORD; word * WORD < end; ++word) {
        unsigned mask = 0;
        for (std::uintptr_t byte = 0; byte < WORD; ++byte) {
            const std::uintptr_t at = word * WORD + byte;
            if (at >= begin && at < end) mask |= 1u << byte;
        }
        access_word(words[word], {true, is_atomic, mask, moment()}, is_write, is_shared);
    }
}

}  // namespace

void race_launch_begins() {
    device_words.clear();
    last_allocation = last_gap = {};
}
void race_block_begins() { shared_words.clear(); }
void race_atomic(const void* address, std::size_t bytes) { access(address, bytes, true, true); }

}  // namespace shim

#define SHIM_ACCESSES(bytes)                                                                  \
    void __tsan_read##bytes(void* at) { shim::access(at, bytes, false, false); }              \
    void __tsan_write##bytes(void* at) { shim::access(at, bytes, true, false); }              \
    void __tsan_unaligned_read##bytes(void* at) { shim::access(at, bytes, false, false); }    \
    void __tsan_unaligned_write##bytes(void* at) { shim::access(at, bytes, true, false); }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_read_range(void* at, std::size_t bytes) { shim::access(at, bytes, false, false); }
void __tsan_write_range(void* at, std::size_t bytes) { shim::access(at, bytes, true, false); }
SHIM_ACCESSES(1)
SHIM_ACCESSES(2)
SHIM_ACCESSES(4)
SHIM_ACCESSES(8)
SHIM_ACCESSES(16)
}

#else

namespace shim {

void race_launch_begins() {}
void race_block_begins() {}
void race_atomic(const void*, std::size_t) {}

}  // namespace shim

#endif
