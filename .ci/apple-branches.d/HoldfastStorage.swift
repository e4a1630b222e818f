// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// What the C library has on Apple systems alone, or otherwise than on Linux, for .ci/apple-branches. Never linked.

internal import Glibc

let F_BARRIERFSYNC: Int32 = 85
let RLIMIT_NOFILE: Int32 = 8
let F_PREALLOCATE: Int32 = 42
let F_ALLOCATEALL: Int32 = 4
let F_PEOFPOSMODE: Int32 = 3

struct fstore_t {
    var fst_flags: UInt32 = 0
    var fst_posmode: Int32 = 0
    var fst_offset: off_t = 0
    var fst_length: off_t = 0
    var fst_bytesalloc: off_t = 0
}

func sysctlbyname(
    _ name: UnsafePointer<CChar>,
    _ old: UnsafeMutableRawPointer?,
    _ oldLength: UnsafeMutablePointer<Int>?,
    _ new: UnsafeMutableRawPointer?,
    _ newLength: Int
) -> Int32 { -1 }

func pthread_create(
    _ thread: UnsafeMutablePointer<pthread_t?>,
    _ attributes: UnsafePointer<pthread_attr_t>?,
    _ start: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?,
    _ argument: UnsafeMutableRawPointer?
) -> Int32 { -1 }
