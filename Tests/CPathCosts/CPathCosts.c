// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#include "CPathCosts.h"

#if defined(__GLIBC__) || defined(__linux__)
#include <features.h>
#endif

// The sanitizers have that place themselves: AddressSanitizer does not start where another stands in it.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PATH_COSTS_SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(PATH_COSTS_SANITIZED)

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_long allocations;

static void count_one(void) {
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

void *malloc(size_t size) {
    count_one();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    count_one();
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    count_one();
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    count_one();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count_one();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    count_one();
    void *found = __libc_memalign(alignment, size);
    if (!found) return ENOMEM;
    *block = found;
    return 0;
}

long path_costs_allocations(void) {
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

#else

long path_costs_allocations(void) {
    return -1;
}

#endif

#if defined(__linux__)
// There if the program was built with coverage: what ran before is then no part of the profile.
extern void __llvm_profile_reset_counters(void) __attribute__((weak));
#endif

__attribute__((noinline)) void path_costs_measured(void (*turns)(void *), void *state) {
#if defined(__linux__)
    if (__llvm_profile_reset_counters) __llvm_profile_reset_counters();
#endif
    turns(state);
    // Without it the call above could become a jump, and this function would be over before it.
    __asm__ volatile("" ::: "memory");
}
