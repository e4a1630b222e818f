// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// What the C library has on Apple systems alone, or otherwise than on Linux, for .ci/apple-branches. Never linked.

internal import Glibc

let SOCK_STREAM: Int32 = 1
let SO_NOSIGPIPE: Int32 = 0x1022
