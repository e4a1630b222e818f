// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastStorage
import HoldfastTesting
import Synchronization

/// A source of chunks that traps no mistake silently: it counts readers at once and what was read after the end.
final class ListSource: ByteSource {
    struct Failure: Error {}

    private struct State {
        var chunks: ArraySlice<ByteChunk>
        var isRead = false
        var overlaps = 0
        var isCancelled = false
    }

    /// Counts the calls of `next()`.
    let reads = CountWatch()
    /// Held where each read waits for a step of it.
    let gate: CountWatch?
    private let state: Mutex<State>
    private let fails: Bool

    init(_ chunks: [ByteChunk], gate: CountWatch? = nil, fails: Bool = false) {
        state = Mutex(State(chunks: chunks[...]))
        self.gate = gate
        self.fails = fails
    }

    /// How often it was read by two at once.
    var overlaps: Int { state.withLock { $0.overlaps } }
    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func next() async throws -> ByteChunk? {
        state.withLock { state in
            if state.isRead { state.overlaps += 1 }
            state.isRead = true
        }
        defer { state.withLock { $0.isRead = false } }
        reads.increment()
        if let gate { try await gate.wait(for: reads.count) }
        await Task.yield()
        try Task.checkCancellation()
        let chunk = state.withLock { $0.chunks.popFirst() }
        if chunk == nil, fails { throw Failure() }
        return chunk
    }

    func cancel() {
        state.withLock { $0.isCancelled = true }
        gate?.increment()
    }
}

extension ByteChunk {
    init(_ text: String) {
        self.init(copying: text.utf8)
    }
}

extension ByteSource {
    /// Everything up to the end.
    func readAll() async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let chunk = try await next() { bytes += Array(chunk) }
        return bytes
    }
}
