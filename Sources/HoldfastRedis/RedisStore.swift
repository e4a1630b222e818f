// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    private import CHiredis

    /// The version of hiredis that this was built against.
    package let hiredisVersion = (HIREDIS_MAJOR, HIREDIS_MINOR)
#endif
