// driver.cpp - the functions of libcuda.so.1 that Trommel calls, on top of the shim.
//
// Settings: STAND_IN_DEVICES (1), STAND_IN_CAPABILITY (90), STAND_IN_DRIVER (13000),
// STAND_IN_MEMORY (bytes, 1 GiB), STAND_IN_ORDER (forward, reverse, random), STAND_IN_SEED,
// STAND_IN_FAIL (CALL:N:CODE or CALL:N:CODE:DEVICE, several with commas), STAND_IN_DROP_LINE (a barrier left out), STAND_IN_REPORT (a file).
#include <cstdlib>
#include <cstring>

#include "device.h"
#include "kernels.h"

using shim::Device;
using shim::device;
using shim::Event;
using shim::Stream;

namespace {

constexpr unsigned THREADS_MAX = 1024;
// What a kernel may be allowed to use, and the attribute that allows it.
constexpr int SHARED_BYTES_MAX = 227 << 10;
constexpr int MAX_DYNAMIC_SHARED_SIZE = 8;
// The handle of the context of the first device; the others follow.
constexpr std::uintptr_t CONTEXTS = 0x1000;
// The content of device memory before anybody has written to it.
constexpr unsigned char RUBBISH = 0xcd;

using Lock = std::lock_guard<std::recursive_mutex>;

Stream& stream_of(void* handle) {
    return handle ? *static_cast<Stream*>(handle) : device().null_stream;
}

bool is_alive(void* stream) {
    return !stream || device().streams.count(static_cast<Stream*>(stream));
}

std::size_t memory_bytes() {
    const char* value = std::getenv("STAND_IN_MEMORY");
    return value ? std::strtoull(value, nullptr, 10) : std::size_t{1} << 30;
}

int queue(void* stream, std::function<int()> work) {
    if (!is_alive(stream)) return shim::INVALID_HANDLE;
    stream_of(stream).queue.push_back(std::move(work));
    return shim::SUCCESS;
}

int copy(void* to, const void* from, std::size_t bytes, std::uintptr_t on_device) {
    if (!shim::is_allocated(on_device, bytes)) return shim::INVALID_VALUE;
    std::memcpy(to, from, bytes);
    return shim::SUCCESS;
}

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

#define DRIVER(name) extern "C" __attribute__((visibility("default"))) int name
// Begins a call of the driver, of a device by its number, or of the current device.
#define ENTER_DRIVER               \
    const Lock lock(shim::mutex()); \
    if (const int code = shim::enter(__func__, nullptr)) return code
#define ENTER_DEVICE(number)                                            \
    const Lock lock(shim::mutex());                                     \
    if (number < 0 || number >= shim::devices()) return shim::INVALID_DEVICE; \
    if (const int code = shim::enter(__func__, &shim::device_of(number))) return code
#define ENTER_TO_FREE               \
    const Lock lock(shim::mutex()); \
    if (!shim::has_current()) return shim::INVALID_CONTEXT
#define ENTER      \
    ENTER_TO_FREE; \
    if (const int code = shim::enter(__func__, &device())) return code

DRIVER(cuInit)(unsigned) {
    ENTER_DRIVER;
    return shim::devices() > 0 ? shim::SUCCESS : shim::NO_DEVICE;
}

DRIVER(cuDriverGetVersion)(int* version) {
    ENTER_DRIVER;
    *version = shim::setting("STAND_IN_DRIVER", 13000);
    return shim::SUCCESS;
}

DRIVER(cuDeviceGetCount)(int* count) {
    ENTER_DRIVER;
    *count = shim::devices();
    return shim::SUCCESS;
}

DRIVER(cuDeviceGet)(int* number, int ordinal) {
    ENTER_DEVICE(ordinal);
    *number = ordinal;
    return shim::SUCCESS;
}

DRIVER(cuDeviceGetName)(char* name, int bytes, int number) {
    ENTER_DEVICE(number);
    std::strncpy(name, "stand-in on the CPU", bytes);
    return shim::SUCCESS;
}

DRIVER(cuDeviceTotalMem_v2)(std::size_t* bytes, int number) {
    ENTER_DEVICE(number);
    *bytes = memory_bytes();
    return shim::SUCCESS;
}

DRIVER(cuDeviceGetAttribute)(int* value, int attribute, int number) {
    ENTER_DEVICE(number);
    const int capability = shim::setting("STAND_IN_CAPABILITY", 90);
    switch (attribute) {
        case 13: *value = 1'000'000; break;        // clock in kHz
        case 16: *value = 2; break;                // multiprocessors
        case 36: *value = 1'000'000; break;        // memory clock in kHz
        case 37: *value = 64; break;               // memory bus in bits
        case 75: *value = capability / 10; break;  // major
        case 76: *value = capability % 10; break;  // minor
        default: return shim::INVALID_VALUE;
    }
    return shim::SUCCESS;
}

DRIVER(cuDevicePrimaryCtxRetain)(void** context, int number) {
    ENTER_DEVICE(number);
    ++shim::device_of(number).contexts;
    *context = pointer(CONTEXTS + number);
    return shim::SUCCESS;
}

DRIVER(cuDevicePrimaryCtxRelease_v2)(int number) {
    const Lock lock(shim::mutex());
    --shim::device_of(number).contexts;
    return shim::enter(__func__, &shim::device_of(number));
}

DRIVER(cuCtxSetCurrent)(void* context) {
    const auto handle = reinterpret_cast<std::uintptr_t>(context);
    if (handle < CONTEXTS || handle >= CONTEXTS + shim::devices()) return shim::INVALID_CONTEXT;
    const int number = static_cast<int>(handle - CONTEXTS);
    // The context of a lost device becomes current, too: what it has can be freed.
    shim::set_current(number);
    ENTER_DEVICE(number);
    return shim::SUCCESS;
}

DRIVER(cuMemGetInfo_v2)(std::size_t* free, std::size_t* total) {
    ENTER;
    *total = memory_bytes();
    *free = *total - device().used_bytes;
    return shim::SUCCESS;
}

DRIVER(cuMemAlloc_v2)(std::uint64_t* address, std::size_t bytes) {
    ENTER;
    if (bytes == 0) return shim::INVALID_VALUE;
    if (device().used_bytes + bytes > memory_bytes()) return shim::OUT_OF_MEMORY;
    // Of exactly this size, so that the address sanitizer sees its end.
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, bytes) != 0) return shim::OUT_OF_MEMORY;
    std::memset(memory, RUBBISH, bytes);
    *address = reinterpret_cast<std::uintptr_t>(memory);
    device().memory[*address] = bytes;
    device().used_bytes += bytes;
    return shim::SUCCESS;
}

DRIVER(cuMemFree_v2)(std::uint64_t address) {
    ENTER_TO_FREE;
    shim::run_everything();
    const auto found = device().memory.find(address);
    if (found == device().memory.end()) return shim::INVALID_VALUE;
    device().used_bytes -= found->second;
    device().memory.erase(found);
    std::free(pointer(address));
    return shim::enter(__func__, &device());
}

DRIVER(cuMemHostAlloc)(void** memory, std::size_t bytes, unsigned) {
    ENTER;
    if (bytes == 0) return shim::INVALID_VALUE;
    if (posix_memalign(memory, 4096, bytes) != 0) return shim::OUT_OF_MEMORY;
    std::memset(*memory, RUBBISH, bytes);
    device().pinned.insert(*memory);
    return shim::SUCCESS;
}

// Work in flight is not waited for: it would read or write free memory.
DRIVER(cuMemFreeHost)(void* memory) {
    ENTER_TO_FREE;
    if (!device().pinned.erase(memory)) return shim::INVALID_VALUE;
    std::free(memory);
    return shim::enter(__func__, &device());
}

// The host's memory may be used again at once; the device has the bytes when the null stream has
// run.
DRIVER(cuMemcpyHtoD_v2)(std::uint64_t to, const void* from, std::size_t bytes) {
    ENTER;
    const std::string staged(static_cast<const char*>(from), bytes);
    return queue(nullptr, [=] { return copy(pointer(to), staged.data(), bytes, to); });
}

DRIVER(cuMemcpyHtoDAsync_v2)(std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
    ENTER;
    return queue(stream, [=] { return copy(pointer(to), from, bytes, to); });
}

DRIVER(cuMemcpyDtoHAsync_v2)(void* to, std::uint64_t from, std::size_t bytes, void* stream) {
    ENTER;
    return queue(stream, [=] { return copy(to, pointer(from), bytes, from); });
}

DRIVER(cuMemcpyDtoDAsync_v2)(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) {
    ENTER;
    if (!shim::is_allocated(from, bytes)) return shim::INVALID_VALUE;
    return queue(stream, [=] { return copy(pointer(to), pointer(from), bytes, to); });
}

DRIVER(cuMemsetD8Async)(std::uint64_t at, unsigned char value, std::size_t bytes, void* stream) {
    ENTER;
    return queue(stream, [=] {
        if (!shim::is_allocated(at, bytes)) return shim::INVALID_VALUE;
        std::memset(pointer(at), value, bytes);
        return shim::SUCCESS;
    });
}

DRIVER(cuMemsetD8_v2)(std::uint64_t at, unsigned char value, std::size_t bytes) {
    ENTER;
    if (!shim::is_allocated(at, bytes)) return shim::INVALID_VALUE;
    return queue(nullptr, [=] {
        std::memset(pointer(at), value, bytes);
        return shim::SUCCESS;
    });
}

DRIVER(cuStreamCreate)(void** stream, unsigned) {
    ENTER;
    auto* made = new Stream;
    device().streams.insert(made);
    *stream = made;
    return shim::SUCCESS;
}

DRIVER(cuStreamDestroy_v2)(void* stream) {
    ENTER_TO_FREE;
    if (!stream || !is_alive(stream)) return shim::INVALID_HANDLE;
    shim::run_all(stream_of(stream));
    device().streams.erase(static_cast<Stream*>(stream));
    delete static_cast<Stream*>(stream);
    return shim::enter(__func__, &device());
}

DRIVER(cuStreamSynchronize)(void* stream) {
    ENTER;
    if (!is_alive(stream)) return shim::INVALID_HANDLE;
    return shim::run_all(stream_of(stream));
}

DRIVER(cuStreamWaitEvent)(void* stream, void* event, unsigned) {
    ENTER;
    auto* awaited = static_cast<Event*>(event);
    if (!device().events.count(awaited)) return shim::INVALID_HANDLE;
    const std::uint64_t generation = awaited->recorded;
    return queue(stream, [=] { return shim::run_until(*awaited, generation); });
}

DRIVER(cuEventCreate)(void** event, unsigned) {
    ENTER;
    auto* made = new Event;
    device().events.insert(made);
    *event = made;
    return shim::SUCCESS;
}

DRIVER(cuEventDestroy_v2)(void* event) {
    ENTER_TO_FREE;
    auto* gone = static_cast<Event*>(event);
    if (!device().events.count(gone)) return shim::INVALID_HANDLE;
    if (gone->stream) shim::run_until(*gone, gone->recorded);
    device().events.erase(gone);
    delete gone;
    return shim::enter(__func__, &device());
}

DRIVER(cuEventRecord)(void* event, void* stream) {
    ENTER;
    auto* recorded = static_cast<Event*>(event);
    if (!device().events.count(recorded) || !is_alive(stream)) return shim::INVALID_HANDLE;
    recorded->stream = &stream_of(stream);
    const std::uint64_t generation = ++recorded->recorded;
    return queue(stream, [=] {
        recorded->done = generation;
        recorded->time = std::chrono::steady_clock::now();
        return shim::SUCCESS;
    });
}

// Lets one piece of the stream's work happen meanwhile.
DRIVER(cuEventQuery)(void* event) {
    ENTER;
    auto* asked = static_cast<Event*>(event);
    if (!device().events.count(asked)) return shim::INVALID_HANDLE;
    if (asked->done == asked->recorded) return shim::SUCCESS;
    const int code = shim::run_one(*asked->stream);
    return code != shim::SUCCESS ? code : shim::NOT_READY;
}

DRIVER(cuEventSynchronize)(void* event) {
    ENTER;
    auto* awaited = static_cast<Event*>(event);
    if (!device().events.count(awaited)) return shim::INVALID_HANDLE;
    return shim::run_until(*awaited, awaited->recorded);
}

DRIVER(cuEventElapsedTime)(float* milliseconds, void* begin, void* end) {
    ENTER;
    for (void* event : {begin, end}) {
        auto* asked = static_cast<Event*>(event);
        if (!device().events.count(asked) || asked->recorded == 0) return shim::INVALID_HANDLE;
        if (asked->done != asked->recorded) return shim::NOT_READY;
    }
    const auto elapsed = static_cast<Event*>(end)->time - static_cast<Event*>(begin)->time;
    *milliseconds = std::chrono::duration<float, std::milli>(elapsed).count();
    return shim::SUCCESS;
}

// An ELF file of machine code, or PTX; which kernels it has is not looked at.
DRIVER(cuModuleLoadData)(void** module, const void* image) {
    ENTER;
    const bool is_cubin = std::memcmp(image, "\x7f" "ELF", 4) == 0;
    const auto* text = static_cast<const char*>(image);
    if (!is_cubin && !std::strstr(text, ".version")) return shim::NO_BINARY_FOR_GPU;
    ++device().modules;
    *module = pointer(0x2000);
    return shim::SUCCESS;
}

DRIVER(cuModuleUnload)(void*) {
    ENTER_TO_FREE;
    --device().modules;
    return shim::enter(__func__, &device());
}

DRIVER(cuModuleGetFunction)(void** function, void*, const char* name) {
    ENTER;
    *function = shim::find_kernel(name);
    return *function ? shim::SUCCESS : shim::NOT_FOUND;
}

DRIVER(cuFuncSetAttribute)(void* function, int attribute, int value) {
    ENTER;
    const bool is_known = attribute == MAX_DYNAMIC_SHARED_SIZE;
    if (!function || !is_known || value < 0 || value > SHARED_BYTES_MAX) return shim::INVALID_VALUE;
    static_cast<shim::Kernel*>(function)->shared_bytes = value;
    return shim::SUCCESS;
}

DRIVER(cuLaunchKernel)
(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
 unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** arguments, void**) {
    ENTER;
    const shim::Grid grid{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
    const std::uint64_t threads = std::uint64_t{block_x} * block_y * block_z;
    const bool fits = grid_x && grid_y && grid_z && threads && threads <= THREADS_MAX;
    if (!function || !fits) return shim::INVALID_VALUE;
    const auto* kernel = static_cast<shim::Kernel*>(function);
    if (shared_bytes > kernel->shared_bytes) return shim::INVALID_VALUE;
    const auto thread = kernel->bind(arguments);
    return queue(stream, [=] { return shim::run_kernel(kernel->name, grid, thread); });
}

DRIVER(cuGetErrorName)(int code, const char** name) {
    switch (code) {
        case shim::INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
        case shim::OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
        case shim::NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
        case shim::INVALID_DEVICE: *name = "CUDA_ERROR_INVALID_DEVICE"; break;
        case shim::INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
        case shim::NO_BINARY_FOR_GPU: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; break;
        case shim::INVALID_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
        case shim::NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
        case shim::NOT_READY: *name = "CUDA_ERROR_NOT_READY"; break;
        case shim::LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
        default: *name = "CUDA_ERROR_OF_THE_STAND_IN"; break;
    }
    return shim::SUCCESS;
}

DRIVER(cuGetErrorString)(int code, const char** text) { return cuGetErrorName(code, text); }
