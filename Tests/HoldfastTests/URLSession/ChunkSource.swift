// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastStorage
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Chunks from memory, and a note of whether the source was cancelled.
final class ChunkSource: ByteSource {
    struct Failure: Error {}

    private let state: Mutex<(chunks: ArraySlice<ByteChunk>, isCancelled: Bool)>
    private let fails: Bool

    /// A source of `chunks`; after the last one it ends or, if so told, fails.
    init(_ chunks: [ByteChunk], fails: Bool = false) {
        state = Mutex((chunks[...], false))
        self.fails = fails
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func next() async throws -> ByteChunk? {
        let chunk = state.withLock { $0.chunks.popFirst() }
        if chunk == nil && fails { throw Failure() }
        return chunk
    }

    func cancel() {
        state.withLock { $0.isCancelled = true }
    }
}

/// Bytes that tell of a lost, doubled or swapped block: each 4 KiB begins with its number.
func patternedBytes(_ count: Int) -> [UInt8] {
    let filler = (0..<4_096).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ ($0 >> 8)) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + filler.count)
    var number = 0
    while bytes.count < count {
        var block = filler
        for position in 0..<4 { block[position] = UInt8(truncatingIfNeeded: number >> (8 * position)) }
        bytes += block
        number += 1
    }
    bytes.removeSubrange(count...)
    return bytes
}
