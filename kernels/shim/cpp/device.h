// device.h - the state of the stand-in driver: settings, memory, streams and events.
//
// Each device has its own memory, streams and events. A call that finds them names none: the device
// is that of the context that is current in the calling thread, and what belongs to another device
// is unknown there. So a host that does not make the right context current fails.
//
// Streams are lazy: work runs no earlier than somebody waits for it, queries it or frees memory,
// and of several streams only as much as that needs. So a host that forgets to wait for a copy or a
// kernel gets wrong answers each time, not now and then.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "runtime.h"

namespace shim {

enum Code : int {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    LAUNCH_FAILED = 719,
};

struct Stream;

struct Event {
    Stream* stream = nullptr;
    std::uint64_t recorded = 0, done = 0;
    std::chrono::steady_clock::time_point time;
};

struct Stream {
    // Each returns a code.
    std::deque<std::function<int()>> queue;
};

struct Device {
    std::map<std::string, int> calls;
    // The answer of every call after a failure that no context survives.
    int lost = SUCCESS;
    std::map<std::uintptr_t, std::size_t> memory;
    std::set<void*> pinned;
    std::set<Stream*> streams;
    std::set<Event*> events;
    int modules = 0, contexts = 0;
    std::size_t used_bytes = 0;
    Stream null_stream;
};

// Held by each call of the driver: kernels of all devices run on the same machine.
std::recursive_mutex& mutex();

// The number of devices, and one of them.
int devices();
Device& device_of(int number);

// Makes a device the current one of the calling thread; whether the thread has one; that one.
void set_current(int number);
bool has_current();
Device& device();

// A setting from the environment.
int setting(const char* name, int otherwise);

// Counts a call, of a device or of none; the code that it has to fail with, if any.
int enter(const char* call, Device* called);

// Whether a range lies within one allocation of device memory.
bool is_allocated(std::uintptr_t address, std::size_t bytes);

// Runs queued work: all of a stream, one piece of it, as much as an event needs, everything.
int run_all(Stream& stream);
int run_one(Stream& stream);
int run_until(Event& event, std::uint64_t generation);
int run_everything();

// Runs a kernel and writes its mistakes to standard error.
int run_kernel(const char* name, const Grid& grid, const std::function<void()>& thread);

}  // namespace shim
