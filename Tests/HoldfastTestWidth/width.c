// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Swift Testing starts all tests at once. Of some thousand on a few cores, those that talk over sockets then wait longer for
// their turn than URLSession waits for an answer, and fail by its timeout. Four tests for each core at a time take less time as
// well. Said here, before the test library reads its environment, so that plain `swift test` is enough; who sets the variable
// is heard, and toolchains that do not know it ignore it.
__attribute__((constructor)) static void limitWidth(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    char width[32];
    snprintf(width, sizeof width, "%ld", (cores > 0 ? cores : 1) * 4);
    setenv("SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH", width, 0);
}
