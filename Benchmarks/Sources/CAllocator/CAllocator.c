// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#include "CAllocator.h"

#include <stdlib.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

void holdfast_return_freed_memory(void) {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}
