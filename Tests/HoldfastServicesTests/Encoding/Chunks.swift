// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastStorage
import Synchronization

/// A source of given chunks that remembers whether it was cancelled.
final class Chunks: ByteSource {
    private let state: Mutex<(chunks: ArraySlice<ByteChunk>, isCancelled: Bool)>

    init(_ chunks: [[UInt8]]) {
        state = Mutex((chunks.map { ByteChunk($0) }[...], false))
    }

    convenience init(_ chunks: [String]) {
        self.init(chunks.map { Array($0.utf8) })
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func next() async throws -> ByteChunk? {
        try state.withLock { state in
            if state.isCancelled { throw CancellationError() }
            return state.chunks.popFirst()
        }
    }

    func cancel() {
        state.withLock { $0.isCancelled = true }
    }
}
