// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#ifndef HOLDFAST_CALLOCATIONCOUNT_H
#define HOLDFAST_CALLOCATIONCOUNT_H

/// Begins or stops counting the allocations of this process; at first they are not counted.
///
/// Counting adds nanoseconds to each allocation, and concurrent allocations wait for each other, so count in untimed turns only.
void holdfast_count_allocations(int is_on);

/// The number of blocks that all threads of this process allocated while counting was on; -1 if they cannot be counted.
///
/// Only glibc lets a program that links this file replace its allocator functions in this way.
long holdfast_allocation_count(void);

#endif
