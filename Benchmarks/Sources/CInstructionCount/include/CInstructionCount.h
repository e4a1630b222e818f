// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#ifndef HOLDFAST_CINSTRUCTIONCOUNT_H
#define HOLDFAST_CINSTRUCTIONCOUNT_H

/// Begins to count the instructions outside the system's own code, of the calling thread and of all threads that it and its threads
/// start from now on. Returns a descriptor for holdfast_instructions_read; -1 if the system gives no access to a counter.
int holdfast_instructions_open(void);

/// The number of instructions since the counter was opened; -1 if it cannot be read. If other programs also use the counters, the
/// number is an estimate from the share of the time in which the counter ran.
long long holdfast_instructions_read(int counter);

/// Runs the work; this is the only function whose instructions callgrind counts.
void holdfast_counted(void (*work)(void *), void *state);

#endif
