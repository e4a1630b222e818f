// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#include "CInstructionCount.h"

#if defined(__linux__)

#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int holdfast_instructions_open(void) {
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
    attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    attributes.inherit = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

long long holdfast_instructions_read(int counter) {
    struct {
        unsigned long long count, enabled, running;
    } found;
    if (read(counter, &found, sizeof found) != sizeof found || found.running == 0) return -1;
    if (found.running >= found.enabled) return (long long)found.count;
    return (long long)((double)found.count * ((double)found.enabled / (double)found.running));
}

#else

int holdfast_instructions_open(void) {
    return -1;
}

long long holdfast_instructions_read(int counter) {
    (void)counter;
    return -1;
}

#endif

__attribute__((noinline)) void holdfast_counted(void (*work)(void *), void *state) {
    work(state);
    // Without this the call above could become a jump, and this function would end before the work.
    __asm__ volatile("" ::: "memory");
}
