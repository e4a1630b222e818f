// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A part's content, which must be exactly as long as its Content-Range says: other bytes follow it, and one too many or too few
/// would move them.
final class ExactBody: ByteSource {
    private struct State {
        var left: Int
        var isInconsistent = false
    }

    private let upstream: any ByteSource
    private let state: Mutex<State>

    init(_ upstream: any ByteSource, count: Int) {
        self.upstream = upstream
        state = Mutex(State(left: count))
    }

    /// Whether the content was shorter or longer than announced, although its message was complete.
    var isInconsistent: Bool { state.withLock { $0.isInconsistent } }

    func next() async throws -> ByteChunk? {
        if isInconsistent { throw ExactBody.miscounted }
        let chunk = try await upstream.next()
        let wanted: Int = state.withLock { state in
            let wanted = min(chunk?.count ?? 0, state.left)
            state.left -= wanted
            state.isInconsistent = chunk.map { $0.count > wanted } ?? (state.left > 0)
            return wanted
        }
        if isInconsistent { upstream.cancel() }
        if let chunk, wanted > 0 { return wanted == chunk.count ? chunk : chunk[0..<wanted] }
        if isInconsistent { throw ExactBody.miscounted }
        return nil
    }

    func cancel() { upstream.cancel() }

    private static var miscounted: ServiceError {
        ServiceError(
            .protocolError,
            "The server sent a part whose length differs from its Content-Range; send the call again with `.reload`.",
            progress: .bytesReceived
        )
    }
}

/// A section of a joined body, which is always read to its end, since the store needs the rest.
///
/// The caller's bytes take precedence over the store's: a failure before or after the section only fails the storing.
final class StretchOfBody: ByteSource {
    private struct State {
        var skip: Int
        var left: Int
        /// Whether the caller's part now bypasses the store.
        var isDirect = false
    }

    private let upstream: any ByteSource
    private let part: ExactBody?
    private let mayEndEarly: Bool
    private let state: Mutex<State>

    /// - Parameters:
    ///   - skip: how many bytes to skip first.
    ///   - count: how many bytes to return then.
    ///   - part: if these are exactly the bytes of a new part: its content, which is inside `upstream`.
    ///   - mayEndEarly: whether a part that is shorter than announced is returned as it arrived, because it answers the caller's
    ///     own request.
    init(_ upstream: any ByteSource, skip: Int, count: Int, part: ExactBody?, mayEndEarly: Bool = false) {
        self.upstream = upstream
        self.part = part
        self.mayEndEarly = mayEndEarly
        state = Mutex(State(skip: skip, left: count))
    }

    func next() async throws -> ByteChunk? {
        while true {
            do {
                guard let chunk = try await source.next() else { return nil }
                let wanted: Range<Int> = state.withLock { state in
                    let start = min(state.skip, chunk.count)
                    let count = min(chunk.count - start, state.left)
                    state.skip -= start
                    state.left -= count
                    return start..<start + count
                }
                if !wanted.isEmpty { return chunk[wanted] }
            } catch {
                guard try isSurvived(error) else { return nil }
            }
        }
    }

    private var source: any ByteSource {
        guard let part, state.withLock({ $0.isDirect }) else { return upstream }
        return part
    }

    /// Whether the caller's bytes continue; false if it has them all, or as many as the server had.
    private func isSurvived(_ error: any Error) throws -> Bool {
        if error.isCancellation { throw error }
        let goesOn: Bool? = state.withLock { state in
            if state.left == 0 || mayEndEarly && part?.isInconsistent == true { return false }
            guard part != nil, state.skip > 0, !state.isDirect else { return nil }
            // Stored bytes before the part could not be read, so nothing of the part was read either.
            (state.skip, state.isDirect) = (0, true)
            return true
        }
        guard let goesOn else { throw error }
        return goesOn
    }

    func cancel() { upstream.cancel() }
}

/// A stored body that continues from the network if the store cannot read further.
final class HealingBody: ByteSource {
    private struct State {
        var source: any ByteSource
        var missing: Range<Int64>
        var isHealed = false
        var isCancelled = false
    }

    private let rest: @Sendable (Range<Int64>) async -> (any ByteSource)?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - interval: the bytes of the content that `stored` has.
    ///   - rest: returns the same content's bytes at these positions from elsewhere; nil if they are not available.
    init(
        _ stored: any ByteSource,
        of interval: Range<Int64>,
        rest: @escaping @Sendable (Range<Int64>) async -> (any ByteSource)?
    ) {
        self.rest = rest
        state = Mutex(State(source: stored, missing: interval))
    }

    func next() async throws -> ByteChunk? {
        do {
            return try await advance()
        } catch {
            let missing: Range<Int64>? = state.withLock { state in
                if error.isCancellation || state.isHealed || state.missing.isEmpty { return nil }
                state.isHealed = true
                return state.missing
            }
            guard let missing, let source = await rest(missing) else { throw error }
            let isCancelled = state.withLock { state in
                state.source = source
                return state.isCancelled
            }
            if isCancelled { source.cancel() }
            return try await advance()
        }
    }

    private func advance() async throws -> ByteChunk? {
        let chunk = try await state.withLock { $0.source }.next()
        if let chunk {
            state.withLock { state in
                let end = state.missing.upperBound
                state.missing = min(end, state.missing.lowerBound + Int64(chunk.count))..<end
            }
        }
        return chunk
    }

    func cancel() {
        let source = state.withLock { state in
            state.isCancelled = true
            return state.source
        }
        source.cancel()
    }
}

extension CachingHook {
    /// The rest of a stored response that turned out to be damaged while it was being read, from the network and bypassing the
    /// store; nil unless it is of exactly the same content (RFC 9110 §13.1.5).
    func rest(
        of stored: StoredResponse,
        missing: Range<Int64>,
        request: URLRequest,
        lookup: CacheLookup,
        context: CallContext
    ) async -> (any ByteSource)? {
        guard !lookup.directive.onlyIfCached, !CacheControl(request: lookup.head.fields).onlyIfCached,
            lookup.head.method == .get, stored.head.status == .ok, let chain = context.chain,
            let validator = StrongValidator(stored), let range = RangeRequest(missing)
        else { return nil }
        var request = request
        request.setFields([
            (.ifNoneMatch, nil), (.ifModifiedSince, nil), (.range, range.description), (.ifRange, validator.fieldValue),
        ])
        if request.field(.acceptEncoding) == nil, !stored.head.fields.contains(.contentEncoding) {
            request.setFields([(.acceptEncoding, "identity")])
        }
        var context = context
        // An exchange without a lookup is not stored, and the limit for the head does not apply to the body.
        context.transaction = nil
        (context.fetch, context.conditions, context.verdict, context.deadline) = (nil, nil, nil, nil)
        context.options.acceptance = nil
        guard let response = try? await chain.forward(request, below: context.currentHook, context: &context) else {
            return nil
        }
        guard let sent = context.exchange.flatMap({ context.head(of: $0.request, fields: $0.presentedFields) }),
            let part = ReceivedPart(
                response.head,
                to: sent,
                receivedAt: response.responseTime ?? context.clock.timestamp,
                contentDecoded: response.contentDecoded
            ), part.interval == missing, part.validator == validator,
            response.fields[.contentEncoding] == stored.head.fields[.contentEncoding],
            lookup.partition(sentFor: response, in: context, of: cache) == lookup.principal
        else {
            response.body.discard()
            return nil
        }
        let delivered: @Sendable (Int) -> Void = { [metrics = lookup.metrics] in metrics.count($0, bodySource: .network)
        }
        let counted = CountedBody(response.body.anySource, delivered: delivered)
        return ExactBody(counted, count: Int(clamping: missing.upperBound - missing.lowerBound))
    }
}

/// Several bodies, one after another.
final class JoinedBody: ByteSource {
    private struct State {
        var sources: ArraySlice<any ByteSource>
        var isCancelled = false
    }

    private let state: Mutex<State>

    init(_ sources: [any ByteSource]) { state = Mutex(State(sources: sources[...])) }

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

    init(_ bytes: ByteChunk) { self.bytes = Mutex(bytes.isEmpty ? nil : bytes) }

    func next() async throws -> ByteChunk? {
        bytes.withLock { bytes in
            defer { bytes = nil }
            return bytes
        }
    }

    func cancel() { bytes.withLock { $0 = nil } }
}
