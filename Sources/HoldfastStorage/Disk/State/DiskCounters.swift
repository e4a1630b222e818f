// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What a store counts, without a lock.
final class DiskCounters: Sendable {
    let lookups = Atomic<Int>(0)
    let lookupsFound = Atomic<Int>(0)
    let entriesWritten = Atomic<Int>(0)
    let entriesEvicted = Atomic<Int>(0)
    let entriesRemoved = Atomic<Int>(0)
    let entriesCorrupt = Atomic<Int>(0)
    let pinsReleased = Atomic<Int>(0)
    let failures = Atomic<Int>(0)
    let bytesRead = Atomic<Int>(0)
    let bytesWritten = Atomic<Int>(0)
}
