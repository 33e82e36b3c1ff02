// block.cpp - the threads of a block, their barriers and the collectives of their warps.
//
// A thread runs until it waits for others or ends; then the next one that can go on does, in the
// order of the launch. Stricter than a GPU, on purpose: all threads of a block must wait at
// the same line; a mask names only lanes that are there; a shuffle reads only lanes of its mask.
#include "runtime.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "fiber.h"

namespace shim {
namespace {

constexpr unsigned WARP = 32;
constexpr std::size_t STACK_BYTES = 128 << 10;
// The content of shared memory before anybody has written to it.
constexpr unsigned char RUBBISH = 0xcb;
constexpr std::size_t SHARED_ALIGNMENT = 1024;

struct Thread {
    explicit Thread() : fiber(STACK_BYTES) {}

    Fiber fiber;
    unsigned index = 0;
    Index id{};
    bool has_ended = false;
    int line = 0;
    // The collective it waits in.
    bool is_in_collective = false;
    Collective kind{};
    unsigned mask = 0, source = 0;
    std::uint64_t value = 0, result = 0;
};

struct Warp {
    unsigned lanes = 0;    // that have not ended
    unsigned waiting = 0;  // in a collective
    unsigned syncs = 0;    // of all its lanes
};

struct Block {
    const Grid* grid = nullptr;
    const std::function<void()>* work = nullptr;
    Order order{};
    std::uint64_t random = 0;
    Index index{};
    unsigned number = 0;
    std::vector<std::unique_ptr<Thread>> threads;
    std::vector<Warp> warps;
    std::deque<Thread*> ready;
    std::vector<Thread*> at_barrier;
    // Of the first threads only, and at other places.
    std::vector<Thread*> at_barrier_of_first;
    std::map<const void*, std::vector<Thread*>> asleep;
    std::uint64_t begun = 0;
    unsigned alive = 0, barriers = 0, votes = 0, last_votes = 0;
    char* shared = nullptr;
    std::unique_ptr<Fiber> scheduler;
    Thread* running = nullptr;
    std::string failure;
};

Block block;

unsigned count(const Index& index) { return index.x * index.y * index.z; }

std::uint64_t random_number() {
    block.random ^= block.random << 13;
    block.random ^= block.random >> 7;
    block.random ^= block.random << 17;
    return block.random;
}

Warp& warp_of(const Thread& thread) { return block.warps[thread.index / WARP]; }

// Some lanes of a warp, the lowest first. Without an allocation: there is one list a collective.
struct Lanes {
    std::array<Thread*, WARP> threads;
    unsigned len = 0;

    Thread* const* begin() const { return threads.data(); }
    Thread* const* end() const { return begin() + len; }
};

template <class Threads>
void make_ready(const Threads& threads) {
    const auto begin = std::begin(threads), end = std::end(threads);
    if (block.order == Order::Reverse) {
        const auto first = std::make_reverse_iterator(end), last = std::make_reverse_iterator(begin);
        block.ready.insert(block.ready.end(), first, last);
    } else {
        block.ready.insert(block.ready.end(), begin, end);
    }
}

Thread* next_ready() {
    if (block.ready.empty()) return nullptr;
    if (block.order == Order::Random) {
        std::swap(block.ready.front(), block.ready[random_number() % block.ready.size()]);
    }
    Thread* thread = block.ready.front();
    block.ready.pop_front();
    return thread;
}

// Lets the next thread that can go on do so, and returns when it is the turn of this one again. The
// scheduler goes on where there is none, and after a failure.
void wait_for_others() {
    Thread& own = *block.running;
    Thread* next = block.failure.empty() ? next_ready() : nullptr;
    if (next == &own) return;
    block.running = next;
    own.fiber.switch_to(next ? next->fiber : *block.scheduler);
}

void release_barrier() {
    for (const Thread* thread : block.at_barrier) {
        if (thread->line != block.at_barrier.front()->line) {
            fail("divergent barrier: others wait at line " +
                 std::to_string(thread->line == block.running->line ? block.at_barrier.front()->line
                                                                    : thread->line));
        }
    }
    block.last_votes = block.votes;
    block.votes = 0;
    ++block.barriers;
    make_ready(block.at_barrier);
    block.at_barrier.clear();
}

Lanes lanes_of(const Thread& thread, unsigned mask) {
    Lanes lanes;
    const unsigned first = thread.index / WARP * WARP;
    for (unsigned lane = 0; lane < WARP; ++lane) {
        if (mask >> lane & 1) lanes.threads[lanes.len++] = block.threads[first + lane].get();
    }
    return lanes;
}

std::uint64_t combine(Collective kind, std::uint64_t left, std::uint64_t right) {
    switch (kind) {
        case Collective::Add: return static_cast<std::uint32_t>(left + right);
        case Collective::Min: return std::min(left, right);
        case Collective::Max: return std::max(left, right);
        case Collective::And: return left & right;
        case Collective::Xor: return left ^ right;
        default: return left | right;
    }
}

void answer_collective(const Thread& last, const Lanes& lanes) {
    std::uint64_t all = 0;
    for (const Thread* lane : lanes) {
        const std::uint64_t bit = 1ull << lane->index % WARP;
        const std::uint64_t value =
            last.kind == Collective::Ballot ? (lane->value ? bit : 0) : lane->value;
        all = lane == *lanes.begin() ? value : combine(last.kind, all, value);
    }
    for (Thread* lane : lanes) {
        lane->result = all;
        if (last.kind == Collective::Shuffle) {
            lane->result = block.threads[lane->index / WARP * WARP + lane->source]->value;
        } else if (last.kind == Collective::Match) {
            lane->result = 0;
            for (const Thread* other : lanes) {
                if (other->value == lane->value) lane->result |= 1ull << other->index % WARP;
            }
        }
        lane->is_in_collective = false;
    }
}

// Ends the collective that the running thread waits in, if all lanes of its mask are there.
void try_collective() {
    const Thread& last = *block.running;
    Warp& warp = warp_of(last);
    if ((warp.waiting & last.mask) != last.mask) return;
    const Lanes lanes = lanes_of(last, last.mask);
    for (const Thread* lane : lanes) {
        if (lane->mask != last.mask || lane->kind != last.kind) {
            fail("lanes of one mask call different collectives");
        }
    }
    answer_collective(last, lanes);
    warp.waiting &= ~last.mask;
    if (last.kind == Collective::Sync && (last.mask & warp.lanes) == warp.lanes) ++warp.syncs;
    make_ready(lanes);
}

void end_thread() {
    Thread& thread = *block.running;
    thread.has_ended = true;
    Warp& warp = warp_of(thread);
    warp.lanes &= ~(1u << thread.index % WARP);
    for (const Thread* lane : lanes_of(thread, warp.waiting)) {
        if (lane->mask >> thread.index % WARP & 1) fail("a lane ends that others wait for");
    }
    --block.alive;
    if (block.alive > 0 && block.at_barrier.size() == block.alive) release_barrier();
}

void run_thread() {
    Fiber::entered();
    (*block.work)();
    end_thread();
    wait_for_others();
    std::abort();  // Nobody switches to a thread that has ended.
}

void begin_block(unsigned number) {
    const Grid& grid = *block.grid;
    block.number = number;
    block.index = {number % grid.blocks.x, number / grid.blocks.x % grid.blocks.y,
                   number / grid.blocks.x / grid.blocks.y};
    const unsigned threads = count(grid.threads);
    while (block.threads.size() < threads) block.threads.push_back(std::make_unique<Thread>());
    block.warps.assign((threads + WARP - 1) / WARP, Warp());
    block.at_barrier.clear();
    block.at_barrier_of_first.clear();
    block.asleep.clear();
    ++block.begun;
    block.ready.clear();
    block.alive = threads;
    block.barriers = block.votes = 0;
    std::memset(block.shared, RUBBISH, grid.shared_bytes);
    std::vector<Thread*> all;
    for (unsigned i = 0; i < threads; ++i) {
        Thread& thread = *block.threads[i];
        thread.index = i;
        thread.id = {i % grid.threads.x, i / grid.threads.x % grid.threads.y,
                     i / grid.threads.x / grid.threads.y};
        const bool is_given_up = !std::exchange(thread.has_ended, false);
        thread.is_in_collective = false;
        thread.fiber.begin(run_thread, is_given_up);
        block.warps[i / WARP].lanes |= 1u << i % WARP;
        all.push_back(&thread);
    }
    make_ready(all);
    race_block_begins();
}

// Threads hand over to each other, until none can go on.
void run_block() {
    block.running = next_ready();
    block.scheduler->switch_to(block.running->fiber);
    if (block.alive == 0 || !block.failure.empty()) return;
    const Thread* stuck = block.at_barrier.empty() ? nullptr : block.at_barrier.front();
    block.failure = "deadlock: " + std::to_string(block.at_barrier.size()) + " of " +
                    std::to_string(block.alive) + " threads wait at a barrier, others " +
                    "for copies or arrivals" +
                    (stuck ? " at line " + std::to_string(stuck->line) : "");
}

// A line whose barriers and warp synchronizations are left out, to show that a check notices.
int dropped_line() {
    static const int line = [] {
        const char* value = std::getenv("STAND_IN_DROP_LINE");
        return value ? std::atoi(value) : 0;
    }();
    return line;
}

}  // namespace

std::string launch(const Grid& grid, Order order, std::uint64_t seed,
                   const std::function<void()>& thread) {
    if (!block.scheduler) block.scheduler = std::make_unique<Fiber>();
    block.grid = &grid;
    block.work = &thread;
    block.order = order;
    block.random = seed * 0x9e3779b97f4a7c15ull | 1;
    block.failure.clear();
    // Of exactly this size, so that the address sanitizer sees its end.
    void* shared = nullptr;
    if (posix_memalign(&shared, SHARED_ALIGNMENT, grid.shared_bytes) != 0) std::abort();
    block.shared = static_cast<char*>(shared);
    race_launch_begins();
    for (unsigned number = 0; number < count(grid.blocks) && block.failure.empty(); ++number) {
        begin_block(number);
        run_block();
    }
    std::free(shared);
    block.shared = nullptr;
    return block.failure;
}

Index thread_index() { return block.running->id; }
Index block_index() { return block.index; }
const Grid& grid() { return *block.grid; }
unsigned lane() { return block.running->index % WARP; }
void* shared_memory() { return block.shared; }

unsigned barrier(int line, bool value) {
    if (line == dropped_line()) return 0;
    block.running->line = line;
    block.votes += value;
    block.at_barrier.push_back(block.running);
    if (block.at_barrier.size() == block.alive) release_barrier();
    wait_for_others();
    return block.last_votes;
}

void barrier_of_first(int line, unsigned threads) {
    if (line == dropped_line()) return;
    if (block.running->index >= threads) fail("a barrier of the first threads only");
    block.running->line = line;
    auto& waiting = block.at_barrier_of_first;
    waiting.push_back(block.running);
    if (waiting.size() == threads) {
        ++block.barriers;
        make_ready(std::exchange(waiting, {}));
    }
    wait_for_others();
}

void sleep_at(const void* place) {
    block.asleep[place].push_back(block.running);
    wait_for_others();
}

void wake_all_at(const void* place) { make_ready(std::exchange(block.asleep[place], {})); }

std::uint64_t blocks_begun() { return block.begun; }

std::uint64_t collective(Collective kind, unsigned mask, std::uint64_t value, unsigned source,
                         int line) {
    if (kind == Collective::Sync && line == dropped_line()) return 0;
    Thread& thread = *block.running;
    Warp& warp = warp_of(thread);
    const unsigned own = 1u << thread.index % WARP;
    if (!(mask & own)) fail("a lane calls a collective without being in its mask");
    if (mask & ~warp.lanes) fail("a mask names lanes that are not there");
    if (kind == Collective::Shuffle && !(mask >> source & 1)) {
        fail("a shuffle reads lane " + std::to_string(source) + ", which is not in its mask");
    }
    thread.kind = kind;
    thread.mask = mask;
    thread.source = source;
    thread.value = value;
    thread.line = line;
    thread.is_in_collective = true;
    warp.waiting |= own;
    try_collective();
    wait_for_others();
    return thread.result;
}

void fail(const std::string& what) {
    const Index at = block.index;
    block.failure = what + " (block " + std::to_string(at.x) + "," + std::to_string(at.y) + "," +
                    std::to_string(at.z) + " thread " + std::to_string(block.running->index) +
                    " line " + std::to_string(block.running->line) + ")";
    wait_for_others();
    std::abort();  // A launch that has failed goes on with no thread.
}

bool is_running() { return block.running != nullptr; }

Moment moment() {
    const Thread& thread = *block.running;
    return {block.number, thread.index, block.barriers, warp_of(thread).syncs};
}

bool is_shared_memory(const void* address) {
    const char* at = static_cast<const char*>(address);
    return block.shared && at >= block.shared && at < block.shared + block.grid->shared_bytes;
}

}  // namespace shim
