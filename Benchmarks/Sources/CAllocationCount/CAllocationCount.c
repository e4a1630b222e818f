// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#include "CAllocationCount.h"

#if defined(__GLIBC__) || defined(__linux__)
#include <features.h>
#endif

#if defined(__GLIBC__)

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_long allocations;
static atomic_bool is_counting;

static void count_one(void) {
    if (!atomic_load_explicit(&is_counting, memory_order_relaxed)) return;
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

void holdfast_count_allocations(int is_on) {
    atomic_store_explicit(&is_counting, is_on != 0, memory_order_relaxed);
}

long holdfast_allocation_count(void) {
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

#else

void holdfast_count_allocations(int is_on) {
    (void)is_on;
}

long holdfast_allocation_count(void) {
    return -1;
}

#endif
