// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#ifndef HOLDFAST_CALLOCATOR_H
#define HOLDFAST_CALLOCATOR_H

/// Returns freed memory to the system, if the allocator has a call for that; Swift cannot see that call.
void holdfast_return_freed_memory(void);

#endif
