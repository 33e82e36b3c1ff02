// fiber.h - stacks that take turns on one thread of the operating system.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace shim {

class Fiber {
  public:
    // The calling thread's own stack.
    Fiber();
    // A stack of its own, with a page below it that must not be touched.
    explicit Fiber(std::size_t bytes);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Makes the fiber begin with `entry` when it is switched to. An earlier run is given up, in the
    // middle of its work or, if `is_given_up` is false, after it.
    void begin(void (*entry)(), bool is_given_up);
    // Goes on with another fiber; returns when someone switches back.
    void switch_to(Fiber& other);
    // The first call of a fiber when it begins.
    static void entered();

  private:
    char* stack_ = nullptr;
    std::size_t bytes_ = 0;
#if defined(__x86_64__)
    void* top_ = nullptr;
#else
    ucontext_t context_;
#endif
};

}  // namespace shim
