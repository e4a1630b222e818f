// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#ifndef HOLDFAST_CINSTRUCTIONCOUNT_H
#define HOLDFAST_CINSTRUCTIONCOUNT_H

/// Begins to count the instructions of the calling thread and of all threads that it and its threads start from now on, outside of
/// the system's own code. A descriptor for holdfast_instructions_read; -1 where the system lends no counter.
int holdfast_instructions_open(void);

/// How many instructions there were since the counter was opened; -1 where it cannot be read. Where others use the counters too, it is
/// an estimate from the share of the time in which it ran.
long long holdfast_instructions_read(int counter);

/// Does the work: the one function whose instructions callgrind is told to count.
void holdfast_counted(void (*work)(void *), void *state);

#endif
