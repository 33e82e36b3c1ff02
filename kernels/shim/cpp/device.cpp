// device.cpp - settings, injected failures, and lazy streams.
#include "device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace shim {
namespace {

// Codes that no context survives.
bool is_fatal(int code) { return code == 214 || code == 220 || (code >= 700 && code <= 719) || code == 999; }

Order order() {
    const char* value = std::getenv("STAND_IN_ORDER");
    if (value && std::strcmp(value, "reverse") == 0) return Order::Reverse;
    if (value && std::strcmp(value, "random") == 0) return Order::Random;
    return Order::Forward;
}

// STAND_IN_FAIL=CALL:N:CODE lets the N-th CALL fail; `kernel` is the running of a kernel.
int injected(const std::string& call, int number) {
    const char* value = std::getenv("STAND_IN_FAIL");
    char name[64];
    int at = 0, code = 0;
    if (!value || std::sscanf(value, "%63[^:]:%d:%d", name, &at, &code) != 3) return SUCCESS;
    return call == name && number == at ? code : SUCCESS;
}

// The number of calls of each function and the resources left at the end, if a report is asked for.
struct Report {
    ~Report() {
        const char* path = std::getenv("STAND_IN_REPORT");
        std::FILE* file = path ? std::fopen(path, "w") : nullptr;
        if (!file) return;
        Device& kept = device();
        std::fprintf(file, "left memory %zu pinned %zu streams %zu events %zu modules %d contexts %d\n",
                     kept.memory.size(), kept.pinned.size(), kept.streams.size(),
                     kept.events.size(), kept.modules, kept.contexts);
        for (const auto& [call, times] : kept.calls) {
            std::fprintf(file, "call %s %d\n", call.c_str(), times);
        }
        std::fclose(file);
    }
};

}  // namespace

Device& device() {
    static Device* kept = new Device;  // Not destroyed, because the report comes after everything.
    static Report report;
    return *kept;
}

int setting(const char* name, int otherwise) {
    const char* value = std::getenv(name);
    return value ? std::atoi(value) : otherwise;
}

int enter(const char* call) {
    Device& kept = device();
    const int number = ++kept.calls[call];
    if (kept.lost != SUCCESS) return kept.lost;
    const int code = injected(call, number);
    if (is_fatal(code)) kept.lost = code;
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
    const int code = enter("kernel");
    if (code != SUCCESS) return code;
    const std::string wrong = launch(grid, order(), setting("STAND_IN_SEED", 1), thread);
    if (wrong.empty()) return SUCCESS;
    std::fprintf(stderr, "stand-in driver: %s: %s\n", name, wrong.c_str());
    return LAUNCH_FAILED;
}

}  // namespace shim
