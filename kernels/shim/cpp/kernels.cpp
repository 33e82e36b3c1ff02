// kernels.cpp - the table of kernels.
#include "kernels.h"

#include <cstring>

namespace shim {
namespace {

// Filled before main by constructors of other files, so it must not have a constructor itself.
Kernel* first = nullptr;

}  // namespace

Kernel* find_kernel(const char* name) {
    for (Kernel* kernel = first; kernel; kernel = kernel->next) {
        if (std::strcmp(kernel->name, name) == 0) return kernel;
    }
    return nullptr;
}

void add_kernel(Kernel* kernel) {
    kernel->next = first;
    first = kernel;
}

}  // namespace shim
