// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#ifndef HOLDFAST_CPATHCOSTS_H
#define HOLDFAST_CPATHCOSTS_H

/// How many blocks of memory this process allocated so far, all threads together; -1 where they are not counted.
///
/// A program that links this file has its allocations counted. Only glibc lets a program stand before its allocator in this way,
/// and not under a sanitizer.
long path_costs_allocations(void);

/// Calls `turns`: what runs within is what callgrind counts, told by this function's name.
void path_costs_measured(void (*turns)(void *), void *state);

#endif
