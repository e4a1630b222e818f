// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#ifndef HOLDFAST_CALLOCATIONCOUNT_H
#define HOLDFAST_CALLOCATIONCOUNT_H

/// Has the allocations of this process counted from now on, or no longer; at first they are not.
///
/// Counting costs each allocation some nanoseconds, and threads that allocate at once wait for each other: count in turns that are
/// not timed.
void holdfast_count_allocations(int is_on);

/// How many blocks of memory this process allocated while they were counted, all threads together; -1 where they cannot be counted.
///
/// Only glibc lets a program that links this file stand before its allocator in this way.
long holdfast_allocation_count(void);

#endif
