// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#ifndef HOLDFAST_CALLOCATOR_H
#define HOLDFAST_CALLOCATOR_H

/// Gives freed memory back to the system, where the allocator has a call for it that Swift cannot see.
void holdfast_return_freed_memory(void);

#endif
