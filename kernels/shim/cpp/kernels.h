// kernels.h - the table of kernels, by name, filled when the library is loaded.
#pragma once

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace shim {

// Copies the arguments, as cuLaunchKernel is given them, into a function that runs one thread.
using Bind = std::function<void()> (*)(void** arguments);

struct Kernel {
    const char* name;
    Bind bind;
    Kernel* next;
    // Maximum of shared memory of a block.
    std::size_t shared_bytes = 48 << 10;
};

Kernel* find_kernel(const char* name);
void add_kernel(Kernel* kernel);

template <auto function>
struct Binding;

template <class... Arguments, void (*function)(Arguments...)>
struct Binding<function> {
    template <std::size_t... index>
    static std::function<void()> bind(void** arguments, std::index_sequence<index...>) {
        std::tuple<std::decay_t<Arguments>...> copies{
            *static_cast<std::decay_t<Arguments>*>(arguments[index])...};
        return [copies] { std::apply(function, copies); };
    }
    static std::function<void()> all(void** arguments) {
        return bind(arguments, std::index_sequence_for<Arguments...>{});
    }
};

struct Registration {
    Kernel kernel;
    Registration(const char* name, Bind bind) : kernel{name, bind, nullptr, 48 << 10} { add_kernel(&kernel); }
};

}  // namespace shim

#define SHIM_KERNEL(name) \
    static shim::Registration registration_of_##name(#name, &shim::Binding<&name>::all)
