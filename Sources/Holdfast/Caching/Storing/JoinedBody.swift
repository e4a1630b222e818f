// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
private import Synchronization

/// Several bodies, one after another.
final class JoinedBody: ByteSource {
    private struct State {
        var sources: ArraySlice<any ByteSource>
        var isCancelled = false
    }

    private let state: Mutex<State>

    init(_ sources: [any ByteSource]) {
        state = Mutex(State(sources: sources[...]))
    }

    func next() async throws -> ByteChunk? {
        while true {
            let source: (any ByteSource)? = try state.withLock { state in
                if state.isCancelled { throw CancellationError() }
                return state.sources.first
            }
            guard let source else { return nil }
            if let chunk = try await source.next() { return chunk }
            state.withLock { _ = $0.sources.popFirst() }
        }
    }

    func cancel() {
        let sources = state.withLock { state in
            state.isCancelled = true
            defer { state.sources = [] }
            return state.sources
        }
        for source in sources { source.cancel() }
    }
}

/// Bytes in memory as a body.
final class BytesSource: ByteSource {
    private let bytes: Mutex<ByteChunk?>

    init(_ bytes: ByteChunk) {
        self.bytes = Mutex(bytes.isEmpty ? nil : bytes)
    }

    func next() async throws -> ByteChunk? {
        bytes.withLock { bytes in
            defer { bytes = nil }
            return bytes
        }
    }

    func cancel() {
        bytes.withLock { $0 = nil }
    }
}
