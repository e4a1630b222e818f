// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Reads sections of a stored body in chunks, with other bytes in between.
final class StoredBodySource: ByteSource {
    /// A section of the output.
    enum Piece: Sendable {
        case literal(ByteChunk)
        /// The stored bytes at these offsets.
        case stored(Range<Int>)
    }

    private struct State {
        var pieces: ArraySlice<Piece>
        var isCancelled = false
    }

    private static let chunkSize = 64 << 10

    private let body: any StoredBody
    private let delivered: @Sendable (Int) -> Void
    private let failed: @Sendable (StoreError) async -> Void
    private let state: Mutex<State>
    private let reading = OneReader()

    /// - Parameters:
    ///   - pieces: the sections to return, in order; none of them beyond the body's end.
    ///   - delivered: called with the number of bytes that were returned.
    ///   - failed: called if the body cannot be read further.
    init(
        _ body: any StoredBody,
        pieces: [Piece],
        delivered: @escaping @Sendable (Int) -> Void,
        failed: @escaping @Sendable (StoreError) async -> Void
    ) {
        self.body = body
        self.delivered = delivered
        self.failed = failed
        state = Mutex(State(pieces: pieces[...]))
    }

    func next() async throws -> ByteChunk? {
        try reading.begin()
        defer { reading.end() }
        while true {
            let piece: Piece? = try state.withLock { state in
                if state.isCancelled { throw CancellationError() }
                return state.pieces.first
            }
            guard let piece else { return nil }
            var chunk = ByteChunk()
            var rest: Piece?
            switch piece {
            case .literal(let bytes): chunk = bytes
            case .stored(let range):
                if !range.isEmpty { chunk = try await read(range) }
                let start = range.lowerBound + chunk.count
                if start < range.upperBound { rest = .stored(start..<range.upperBound) }
            }
            // Only now: what could not be read must not count as read.
            state.withLock { state in
                state.pieces.removeFirst()
                if let rest { state.pieces = [rest] + state.pieces }
            }
            guard !chunk.isEmpty else { continue }
            delivered(chunk.count)
            return chunk
        }
    }

    private func read(_ range: Range<Int>) async throws -> ByteChunk {
        do throws(StoreError) {
            let chunk = try await body.read(from: range.lowerBound, upTo: min(range.count, StoredBodySource.chunkSize))
            if !chunk.isEmpty { return chunk }
            throw StoreError(.corrupt, "A stored body ends \(range.count) bytes early; it counts as a miss.")
        } catch {
            if error.code == .cancelled { throw CancellationError() }
            await failed(error)
            throw ServiceError(
                .other,
                "The stored body could not be read to its end. Send the request again; it will come from the network.",
                cause: error,
                progress: .bytesReceived
            )
        }
    }

    func cancel() { state.withLock { $0.isCancelled = true } }
}

/// The origin of an answer from the store, in case it is needed later; stored once for everyone who asks.
final class StoredOrigin: RemovableOrigin {
    private let hook: CachingHook
    private let entry: StoredEntry
    private let stored: StoredResponse
    private let lookup: CacheLookup
    private let request: URLRequest?
    private let context: CallContext
    private let bodySource: BodySource?

    init(
        hook: CachingHook,
        loaded: LoadedResponse,
        lookup: CacheLookup,
        request: URLRequest?,
        context: CallContext,
        bodySource: BodySource?
    ) {
        self.hook = hook
        entry = loaded.entry
        stored = loaded.stored
        self.lookup = lookup
        self.request = request
        self.context = context
        self.bodySource = bodySource
    }

    func delivered(_ bytes: Int) {
        if let bodySource { lookup.metrics.count(bytes, bodySource: bodySource) }
    }

    func failed(_ error: StoreError) async {
        hook.storeFailed(error, context: context)
        // A store that has too much to do, or is paused, still holds the entry intact.
        if error.code != .temporarilyUnavailable { await remove() }
    }

    func remove() async {
        await hook.remove(entry, context: context)
        await hook.removeOlder(than: stored.requestOrder, under: entry.key, for: lookup, in: context)
    }

    func rest(_ missing: Range<Int64>) async -> (any ByteSource)? {
        guard let request else { return nil }
        return await hook.rest(of: stored, missing: missing, request: request, lookup: lookup, context: context)
    }
}
