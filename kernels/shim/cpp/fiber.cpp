// fiber.cpp - switching stacks: eight instructions on x86-64, the C library elsewhere.
#include "fiber.h"

#include <cstdint>
#include <cstdlib>
#include <pthread.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

constexpr std::size_t GUARD_BYTES = 4096;
// What the last functions of a fiber at the end of its work have of its stack, and more.
constexpr std::size_t LAST_BYTES = 4096;

}  // namespace

#if defined(__x86_64__)
// Saves the registers that a function must preserve, changes the stack, and restores them from
// there.
asm(R"(
    .text
    .type shim_switch_stack, @function
shim_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size shim_switch_stack, .-shim_switch_stack
)");
extern "C" void shim_switch_stack(void** save, void* load);
#endif

namespace shim {

Fiber::Fiber() {
    // The address sanitizer wants to know the bounds of the stack that is returned to.
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) std::abort();
    void* stack = nullptr;
    if (pthread_attr_getstack(&attributes, &stack, &bytes_) != 0) std::abort();
    pthread_attr_destroy(&attributes);
    stack_ = static_cast<char*>(stack);
}

Fiber::Fiber(std::size_t bytes) : bytes_(bytes) {
    void* stack = mmap(nullptr, bytes + GUARD_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) != 0) std::abort();
    stack_ = static_cast<char*>(stack) + GUARD_BYTES;
}

// Fibers live as long as the process.
Fiber::~Fiber() = default;

void Fiber::begin(void (*entry)(), [[maybe_unused]] bool is_given_up) {
#if defined(__SANITIZE_ADDRESS__)
    // The last run on this stack did not return from the functions that it was in.
    const std::size_t left = is_given_up ? bytes_ : LAST_BYTES;
    __asan_unpoison_memory_region(stack_ + bytes_ - left, left);
#endif
#if defined(__x86_64__)
    // A return address below which the stack is aligned as after a call, and six registers.
    auto** top = reinterpret_cast<void**>(stack_ + bytes_) - 2;
    *top = reinterpret_cast<void*>(entry);
    top_ = top - 6;
#else
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_;
    context_.uc_stack.ss_size = bytes_;
    context_.uc_link = nullptr;
    makecontext(&context_, entry, 0);
#endif
}

void Fiber::switch_to(Fiber& other) {
#if defined(__SANITIZE_ADDRESS__)
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, other.stack_, other.bytes_);
#endif
#if defined(__x86_64__)
    shim_switch_stack(&top_, other.top_);
#else
    swapcontext(&context_, &other.context_);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::entered() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

}  // namespace shim
