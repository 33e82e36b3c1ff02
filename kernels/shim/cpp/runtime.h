// runtime.h - launches: blocks one after the other, each with a fiber for every CUDA thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace shim {

struct Index {
    unsigned x, y, z;
};

// In which order threads that could go on do so.
enum class Order { Forward, Reverse, Random };

struct Grid {
    Index blocks, threads;
    std::size_t shared_bytes;
};

// Runs `thread` once for each thread of the grid. Returns a message if something went wrong, or
// nothing.
std::string launch(const Grid& grid, Order order, std::uint64_t seed,
                   const std::function<void()>& thread);

// The position of the running thread.
Index thread_index();
Index block_index();
const Grid& grid();
unsigned lane();
void* shared_memory();

// __syncthreads() and its relatives: the number of threads that brought `true`.
unsigned barrier(int line, bool value);

// The same for the first `threads` threads of the block.
void barrier_of_first(int line, unsigned threads);

// Lets the running thread sleep until another one wakes all that sleep there.
void sleep_at(const void* place);
void wake_all_at(const void* place);

// Number of blocks that have begun in this process.
std::uint64_t blocks_begun();

// Collectives of the lanes in `mask`.
enum class Collective { Sync, Ballot, Shuffle, Match, Add, Min, Max, And, Or, Xor };
std::uint64_t collective(Collective kind, unsigned mask, std::uint64_t value, unsigned source,
                         int line);

// Ends the launch with a message about the running thread.
[[noreturn]] void fail(const std::string& what);

// The race check: its questions about the running thread, and the events it is told of. Empty in
// builds without it.
struct Moment {
    unsigned block, thread, barriers, warp_syncs;
};
bool is_running();
Moment moment();
bool is_shared_memory(const void* address);
void race_launch_begins();
void race_block_begins();
void race_atomic(const void* address, std::size_t bytes);

// An allocation of device memory or a gap between two. Defined by the driver.
struct Stretch {
    std::uintptr_t begin = 0, end = 0;
    bool is_allocated = false;

    bool has(std::uintptr_t address) const { return begin <= address && address < end; }
};
Stretch stretch_at(std::uintptr_t address);

}  // namespace shim
