// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#ifndef HOLDFAST_CALLOCATIONCOUNT_H
#define HOLDFAST_CALLOCATIONCOUNT_H

/// How many blocks of memory this process allocated so far, all threads together; -1 where they are not counted.
///
/// A program that links this file has its allocations counted, which costs each of them some nanoseconds. Only glibc lets a
/// program stand before its allocator in this way.
long holdfast_allocation_count(void);

#endif
