// device.cpp - settings, injected failures, and lazy streams.
#include "device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace shim {
namespace {

// The device whose context is current in the thread; negative if there is none.
thread_local int current = -1;

// Codes that no context survives.
bool is_fatal(int code) { return code == 214 || code == 220 || (code >= 700 && code <= 719) || code == 999; }

Order order() {
    const char* value = std::getenv("STAND_IN_ORDER");
    if (value && std::strcmp(value, "reverse") == 0) return Order::Reverse;
    if (value && std::strcmp(value, "random") == 0) return Order::Random;
    return Order::Forward;
}

// Calls of each function, of all devices together.
std::map<std::string, int>& all_calls() {
    static auto* calls = new std::map<std::string, int>;
    return *calls;
}

// STAND_IN_FAIL=CALL:N:CODE[:DEVICE],... lets the N-th CALL fail, of all devices or of one;
// `kernel` is the running of a kernel.
int injected(const std::string& call, int number, const Device* called, int number_there) {
    const char* value = std::getenv("STAND_IN_FAIL");
    for (; value && *value; value += *value == ',') {
        char name[64];
        int at = 0, code = 0, on = -1;
        if (std::sscanf(value, "%63[^:]:%d:%d:%d", name, &at, &code, &on) < 3) return SUCCESS;
        const bool is_there = on < 0 || called == &device_of(on);
        if (is_there && call == name && at == (on < 0 ? number : number_there)) return code;
        value += std::strcspn(value, ",");
    }
    return SUCCESS;
}

// The number of calls of each function and the resources left at the end, if a report is asked for.
struct Report {
    ~Report() {
        const char* path = std::getenv("STAND_IN_REPORT");
        std::FILE* file = path ? std::fopen(path, "w") : nullptr;
        if (!file) return;
        std::size_t memory = 0, pinned = 0, streams = 0, events = 0;
        int modules = 0, contexts = 0;
        for (int number = 0; number < devices(); ++number) {
            const Device& kept = device_of(number);
            memory += kept.memory.size(), pinned += kept.pinned.size();
            streams += kept.streams.size(), events += kept.events.size();
            modules += kept.modules, contexts += kept.contexts;
        }
        std::fprintf(file, "left memory %zu pinned %zu streams %zu events %zu modules %d contexts %d\n",
                     memory, pinned, streams, events, modules, contexts);
        for (const auto& [call, times] : all_calls()) {
            std::fprintf(file, "call %s %d\n", call.c_str(), times);
        }
        std::fclose(file);
    }
};

}  // namespace

std::recursive_mutex& mutex() {
    static auto* kept = new std::recursive_mutex;
    return *kept;
}

int devices() { return setting("STAND_IN_DEVICES", 1); }

Device& device_of(int number) {
    // Not destroyed, because the report comes after everything.
    static auto* kept = new std::map<int, Device>;
    static Report report;
    return (*kept)[number];
}

void set_current(int number) { current = number; }

bool has_current() { return current >= 0; }

Device& device() { return device_of(current); }

int setting(const char* name, int otherwise) {
    const char* value = std::getenv(name);
    return value ? std::atoi(value) : otherwise;
}

int enter(const char* call, Device* called) {
    const int number = ++all_calls()[call];
    const int number_there = called ? ++called->calls[call] : 0;
    if (called && called->lost != SUCCESS) return called->lost;
    const int code = injected(call, number, called, number_there);
    if (called && is_fatal(code)) called->lost = code;
    return code;
}

bool is_allocated(std::uintptr_t address, std::size_t bytes) {
    const auto& memory = device().memory;
    auto after = memory.upper_bound(address);
    if (after == memory.begin()) return false;
    --after;
    return address + bytes <= after->first + after->second;
}

Stretch stretch_at(std::uintptr_t address) {
    const auto& memory = device().memory;
    const auto after = memory.upper_bound(address);
    const std::uintptr_t next = after == memory.end() ? UINTPTR_MAX : after->first;
    if (after == memory.begin()) return {0, next, false};
    const auto [begin, bytes] = *std::prev(after);
    const std::uintptr_t end = begin + bytes;
    return address < end ? Stretch{begin, end, true} : Stretch{end, next, false};
}

int run_one(Stream& stream) {
    if (stream.queue.empty()) return device().lost;
    const auto work = stream.queue.front();
    stream.queue.pop_front();
    if (device().lost != SUCCESS) return device().lost;
    const int code = work();
    if (code != SUCCESS) device().lost = code;
    return code;
}

int run_all(Stream& stream) {
    int code = device().lost;
    while (!stream.queue.empty()) code = run_one(stream);
    return code;
}

int run_until(Event& event, std::uint64_t generation) {
    while (event.done < generation && device().lost == SUCCESS) run_one(*event.stream);
    return device().lost;
}

int run_everything() {
    for (Stream* stream : device().streams) run_all(*stream);
    return run_all(device().null_stream);
}

int run_kernel(const char* name, const Grid& grid, const std::function<void()>& thread) {
    const int code = enter("kernel", &device());
    if (code != SUCCESS) return code;
    const std::string wrong = launch(grid, order(), setting("STAND_IN_SEED", 1), thread);
    if (wrong.empty()) return SUCCESS;
    std::fprintf(stderr, "stand-in driver: %s: %s\n", name, wrong.c_str());
    return LAUNCH_FAILED;
}

}  // namespace shim
