// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// Hands a network body to the caller and, chunk by chunk, to the store; commits when the body is whole.
///
/// A body that fails, is cancelled or is dropped before its end leaves nothing in the store: a dropped writer abandons. A store that fails is left
/// alone from then on; the caller's bytes go on.
final class StoringBody: ByteSource {
    private let upstream: any ByteSource
    private let expectedLength: Int?
    private let writer: any EntryWriter
    private let finish: @Sendable (any EntryWriter) async -> Void
    private let fail: @Sendable (StoreError) -> Void
    private let delivered: @Sendable (Int) -> Void
    private struct State {
        var received = 0
        var isStoring = true
        var isGivenUp = false
    }
    private let state = Mutex(State())

    /// - Parameters:
    ///   - finish: commits the writer; called once, when the whole body has been appended.
    ///   - fail: told of the store failure that ended the storing.
    init(
        _ upstream: any ByteSource,
        expectedLength: Int?,
        writer: any EntryWriter,
        finish: @escaping @Sendable (any EntryWriter) async -> Void,
        fail: @escaping @Sendable (StoreError) -> Void,
        delivered: @escaping @Sendable (Int) -> Void
    ) {
        self.upstream = upstream
        self.expectedLength = expectedLength
        self.writer = writer
        self.finish = finish
        self.fail = fail
        self.delivered = delivered
    }

    /// Whether the bytes still go to the store.
    var isStoring: Bool { state.withLock { $0.isStoring } }

    /// Whether what was stored of the body can still be read: until storing is given up.
    var canBeFollowed: Bool { state.withLock { !$0.isGivenUp } }

    /// The entry as it is being written.
    var written: any StoredBody { writer.follow() }

    func next() async throws -> ByteChunk? {
        let chunk: ByteChunk?
        do {
            chunk = try await upstream.next()
        } catch {
            stopStoring()
            throw error
        }
        guard let chunk else {
            await end()
            return nil
        }
        delivered(chunk.count)
        let isStoring = state.withLock { state in
            state.received += chunk.count
            return state.isStoring
        }
        if isStoring {
            do throws(StoreError) {
                try await writer.append(chunk)
            } catch {
                stopStoring()
                fail(error)
            }
        }
        return chunk
    }

    func cancel() {
        stopStoring()
        upstream.cancel()
    }

    private func stopStoring() {
        let wasStoring = state.withLock { state in
            defer { state.isStoring = false }
            if state.isStoring { state.isGivenUp = true }
            return state.isStoring
        }
        if wasStoring { writer.abandon() }
    }

    private func end() async {
        let (wasStoring, received) = state.withLock { state in
            defer { state.isStoring = false }
            return (state.isStoring, state.received)
        }
        guard wasStoring else { return }
        // An incomplete response must not be taken for a whole one (RFC 9111 §3.3).
        if let expectedLength, expectedLength != received {
            state.withLock { $0.isGivenUp = true }
            writer.abandon()
        } else {
            await finish(writer)
        }
    }
}

/// Counts the bytes of a body that is not stored.
final class CountedBody: ByteSource {
    private let upstream: any ByteSource
    private let delivered: @Sendable (Int) -> Void

    init(_ upstream: any ByteSource, delivered: @escaping @Sendable (Int) -> Void) {
        self.upstream = upstream
        self.delivered = delivered
    }

    func next() async throws -> ByteChunk? {
        let chunk = try await upstream.next()
        if let chunk { delivered(chunk.count) }
        return chunk
    }

    func cancel() {
        upstream.cancel()
    }
}
