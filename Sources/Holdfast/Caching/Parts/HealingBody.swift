// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A stored body that goes on from the network where the store can read no further.
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
    ///   - interval: which bytes of the content `stored` has.
    ///   - rest: gives the same content's bytes at these positions from elsewhere; nil where they are not to be had.
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
    /// The rest of a stored response that turned out damaged while it was being read, from the network and past the store; nil
    /// unless it is of the very same content (RFC 9110 §13.1.5).
    func rest(
        of stored: StoredResponse,
        _ missing: Range<Int64>,
        _ request: URLRequest,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) async -> (any ByteSource)? {
        guard !lookup.directive.onlyIfCached, !CacheControl(request: lookup.head.fields).onlyIfCached,
            lookup.head.method == .get, stored.head.status == .ok, let chain = context.chain,
            let validator = StrongValidator(stored), let range = RangeRequest(missing)
        else { return nil }
        var request = request
        for name in ["If-None-Match", "If-Modified-Since"] { request.setValue(nil, forHTTPHeaderField: name) }
        request.setValue(range.description, forHTTPHeaderField: "Range")
        request.setValue(validator.fieldValue, forHTTPHeaderField: "If-Range")
        if request.value(forHTTPHeaderField: "Accept-Encoding") == nil, !stored.head.fields.contains(.contentEncoding) {
            request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        }
        var context = context
        // An exchange that no look-up belongs to is stored nowhere, and no limit for the head is one for the body.
        context[CacheLookup.self] = nil
        context[OfferedResponses.self] = nil
        (context.flight, context.validation, context.verdict, context.deadline) = (nil, nil, nil, nil)
        context.options.acceptance = nil
        guard let response = try? await chain.forward(request, beneath: context.currentHook, &context) else {
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
        let delivered: @Sendable (Int) -> Void = { [tally = lookup.tally] in tally.count($0, .network) }
        let counted = CountedBody(response.body.anySource, delivered: delivered)
        return ExactBody(counted, count: Int(clamping: missing.upperBound - missing.lowerBound))
    }
}
