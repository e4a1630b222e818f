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

/// A stretch of a body, which is read to its end all the same, since the store wants the rest.
final class StretchOfBody: ByteSource {
    private struct State {
        var skip: Int
        var left: Int
    }

    private let upstream: any ByteSource
    private let state: Mutex<State>

    /// - Parameters:
    ///   - skip: how many bytes to leave out first.
    ///   - count: how many to hand out then.
    init(_ upstream: any ByteSource, skip: Int, count: Int) {
        self.upstream = upstream
        state = Mutex(State(skip: skip, left: count))
    }

    func next() async throws -> ByteChunk? {
        while let chunk = try await upstream.next() {
            let wanted: Range<Int> = state.withLock { state in
                let start = min(state.skip, chunk.count)
                let count = min(chunk.count - start, state.left)
                state.skip -= start
                state.left -= count
                return start..<start + count
            }
            if !wanted.isEmpty { return chunk[wanted] }
        }
        return nil
    }

    func cancel() {
        upstream.cancel()
    }
}
