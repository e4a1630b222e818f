// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Storing parts, and answers made of stored and new bytes.
extension CachingHook {
    /// Answers from stored bytes together with the missing ones.
    func complete(
        _ completion: Completion,
        with response: inout Response,
        lookup: CacheLookup,
        context: CallContext
    ) async throws -> ResponseOutcome {
        let now = context.clock.timestamp
        let received = ReceivedExchange(response, lookup: lookup, context: context, cache: cache)
        guard received.isForRequester, let sent = received.exchange.sent,
            let join = join(response, to: sent, with: completion.loaded, asked: completion.missing, now: now),
            let answer = join.answer(to: lookup.head)
        else {
            throw ServiceError(
                .protocolError,
                "The server answered a request for the missing part with another part; send the call again with `.reload`.",
                progress: .headReceived,
                response: response
            )
        }
        let network = ExactBody(response.body.anySource, count: join.partLength)
        let (source, stored) = await store(
            join,
            network: network,
            response: response,
            received: received,
            context: context
        )
        let start = join.offset(of: join.part.interval.lowerBound)
        var outcome = stored
        outcome.part = start..<start + join.partLength
        let setCookies = cache.options.ignoredCookies(for: lookup.head.target)
            .setCookies(in: response.fields)
        response.head = join.stored.responseHead(now: now)
        response.body = ResponseBody(source, length: join.length)
        if case .part(let wanted) = answer, let range = ContentRange(wanted, completeLength: join.completeLength) {
            response.head = PartialContent.head(of: join.stored, range: range, now: now)
            let skip = join.offset(of: wanted.lowerBound)
            let count = join.offset(of: wanted.upperBound) - skip
            outcome.part = max(0, start - skip)..<max(0, start + join.partLength - skip)
            response.body = ResponseBody(
                StretchOfBody(
                    source,
                    skip: skip,
                    count: count,
                    // A part that is all the caller wants does not depend on what happens in the store.
                    part: wanted == join.part.interval ? network : nil
                ),
                length: count
            )
        }
        for value in setCookies { response.fields.append(.setCookie, value) }
        return outcome
    }

    /// Stores a part that the caller requested, joined with what is stored of the same content.
    func storePart(
        _ response: inout Response,
        lookup: CacheLookup,
        context: CallContext
    ) async -> ResponseOutcome {
        let received = ReceivedExchange(response, lookup: lookup, context: context, cache: cache)
        let now = received.exchange.responseTime
        guard received.isForRequester, let sent = received.exchange.sent,
            let part = ReceivedPart(response.head, to: sent, receivedAt: now, contentDecoded: response.contentDecoded)
        else {
            let reason = received.exchange.refusal ?? .partialContent
            return outcome(unstored: reason, lookup: lookup, context: context)
        }
        for candidate in await candidates(for: lookup, context)
        where matches(candidate, lookup: lookup) {
            guard let loaded = await load(candidate, context: context),
                let join = join(response, to: sent, with: loaded, asked: nil, now: now)
            else { continue }
            let head = response.head
            func admit(_ existing: Admission.Existing) -> Admission {
                received.admission(of: head, as: .joining(join.combination, existing))
            }
            let admission = admit(received.existing(loaded.stored, in: loaded.entry))
            if candidate.stored.ranges == nil {
                // Everything is stored already: the part only brings newer fields.
                _ = await apply(admission, to: loaded.entry, by: received, in: context, again: admit)
                guard admission.isShareable else { return ResponseOutcome(notStored: admission.reason) }
                let entry = AdmittedEntry(
                    key: loaded.entry.key,
                    variant: loaded.entry.variant,
                    stored: join.stored,
                    description: loaded.entry.description,
                    bodyLength: loaded.entry.bodyLength,
                    mayBeShared: true,
                    claim: received.claim(on: loaded.entry.key, nominated: join.stored.nominated)
                )
                return ResponseOutcome(storable: join.stored, entry: entry, notStored: admission.reason)
            }
            guard case .store = admission.action else { continue }
            let length = response.body.length
            let network = ExactBody(response.body.anySource, count: join.partLength)
            let (source, outcome) = await store(
                join,
                network: network,
                response: response,
                received: received,
                context: context
            )
            let skip = join.offset(of: part.interval.lowerBound)
            response.body = ResponseBody(
                StretchOfBody(source, skip: skip, count: join.partLength, part: network, mayEndEarly: true),
                length: length
            )
            return outcome
        }
        do throws(Unstored) {
            let entry = try entry(for: response, as: .part(part), in: received, context: context)
            // A part that contradicts itself must not be joined with content that has the same tag.
            guard part.validator != nil || StrongValidator(entry.stored) == nil else {
                throw Unstored(reason: .partialContent)
            }
            return try await store(
                entry,
                response: &response,
                received: received,
                context: context,
                ending: ending(of: part, entry: entry)
            )
        } catch {
            return outcome(unstored: error.reason, lookup: lookup, context: context)
        }
    }

    private func join(
        _ response: Response,
        to sent: RequestHead,
        with loaded: LoadedResponse,
        asked: Range<Int64>?,
        now: Timestamp
    ) -> PartJoin? {
        PartJoin(
            response.head,
            to: sent,
            with: loaded,
            asked: asked,
            contentDecoded: response.contentDecoded,
            requestTime: response.requestTime ?? now,
            responseTime: response.responseTime ?? now,
            mode: cache.options.mode,
            ignoredCookies: cache.options.ignoredCookies(for: sent.target)
        )
    }

    /// The joined content as one body, which is also stored if that is allowed.
    private func store(
        _ join: PartJoin,
        network: ExactBody,
        response: Response,
        received: ReceivedExchange,
        context: CallContext
    ) async -> (any ByteSource, ResponseOutcome) {
        let (loaded, lookup) = (join.base, received.lookup)
        let joined = JoinedBody(
            join.sources(network) { [self] error in
                storeFailed(error, context: context)
                await remove(loaded.entry, context: context)
            }
        )
        let (options, layout) = (cache.options, join.layout)
        do throws(Unstored) {
            let kind = Admission.Kind.joining(join.combination, received.existing(loaded.stored, in: loaded.entry))
            let admission = received.admission(of: response.head, as: kind)
            guard case .store(let stored, let scope) = admission.action else {
                throw Unstored(reason: admission.reason ?? .partialContent)
            }
            // As for a 304: callers' own tags stay, and those of the fields are those of the newest ones.
            let own = cache.ownTags(loaded.entry.description.tags, of: loaded.stored)
            let tags = cache.tags(own.union(context.options.tags), for: stored)
            // Replaces what it continues, unless the newest fields nominate others.
            let isSameVariant = stored.nominated == loaded.stored.nominated
            let key = lookup.storeKey(for: scope)
            let entry = AdmittedEntry(
                key: key,
                variant: isSameVariant ? loaded.entry.variant : StoreKey(stored.nominated.framed),
                stored: stored,
                description: stored.description(tags: tags, options),
                bodyLength: join.length,
                mayBeShared: admission.isShareable,
                claim: received.claim(on: key, nominated: stored.nominated)
            )
            let writer = try await writer(of: entry, bytes: nil, received: received, context: context)
            let storing = storing(
                joined,
                as: entry,
                writer: writer,
                received: received,
                context: context,
                ending: { received, isWhole in
                    if network.isInconsistent { return .abandon }
                    if isWhole, received == entry.bodyLength { return .commit }
                    // Fewer bytes than before are not worth replacing it.
                    guard received > loaded.entry.bodyLength, let cut = stored.cutOff(after: received, of: layout)
                    else {
                        return .abandon
                    }
                    return .commitAs(cut.description(tags: tags, options))
                }
            )
            let outcome = ResponseOutcome(
                storable: stored,
                entry: entry,
                storing: storing,
                mayBeShared: entry.mayBeShared
            )
            return (storing, outcome)
        } catch {
            context.tell(notStored: error.reason, metrics: lookup.metrics, hadBegun: false)
            return (joined, ResponseOutcome(notStored: error.reason))
        }
    }

    /// How storing a part ends that is not joined with what is stored: as much of it is kept as was received.
    private func ending(of part: ReceivedPart, entry: AdmittedEntry) -> StorageEnding {
        let (stored, tags, options) = (entry.stored, entry.description.tags, cache.options)
        return { received, isWhole in
            guard let ended = part.ended(after: Int64(received), isWhole: isWhole) else { return .abandon }
            if ended == part { return .commit }
            var cut = stored.withFields(of: ended.storedHead, options)
            cut.ranges = ended.ranges
            return .commitAs(cut.description(tags: tags, options))
        }
    }
}

extension ResponseBody {
    /// The body as a source, including bytes in memory.
    var anySource: any ByteSource { source ?? BytesContent(bytesInMemory ?? ByteChunk()) }
}

extension StoredResponse {
    /// The same response with the fields of another head.
    fileprivate func withFields(of head: ResponseHead, _ options: CacheOptions) -> StoredResponse {
        var changed = StoredResponse(
            target: target,
            method: method,
            nominated: nominated,
            head: FieldUpdate.storable(
                head,
                contentDecoded: contentDecoded,
                mode: options.mode,
                targetedFields: targetedFields,
                ignoredCookies: options.ignoredCookies(for: target)
            ),
            requestTime: requestTime,
            responseTime: responseTime,
            contentDecoded: contentDecoded,
            givenLifetime: givenLifetime,
            needsConfirmation: needsConfirmation,
            targetedFields: targetedFields
        )
        changed.requestOrder = requestOrder
        return changed
    }
}

/// A stored part that a request of the cache should complete (RFC 9111 §3.4).
struct Completion: Sendable {
    let loaded: LoadedResponse
    let missing: Range<Int64>
    let fields: HeaderFields

    /// Whether a response joins what is stored, and brings everything that the caller lacks.
    func fits(_ response: ResponseHead, to caller: RequestHead, at time: Timestamp, contentDecoded: Bool) -> Bool {
        var sent = caller
        sent.fields[.range] = fields[.range]
        let join = PartJoin(
            response,
            to: sent,
            with: loaded,
            asked: missing,
            contentDecoded: contentDecoded,
            requestTime: time,
            responseTime: time,
            mode: .private
        )
        return join?.answer(to: caller) != nil
    }
}

/// A stored response, the part that joins it, and the result (RFC 9111 §3.4).
struct PartJoin: Sendable {
    let base: LoadedResponse
    let part: ReceivedPart
    let combination: PartCombination

    /// - Parameter asked: the interval that the cache itself requested; nil for the caller's own request.
    /// - Returns: nil if the two do not belong together.
    init?(
        _ response: ResponseHead,
        to sent: RequestHead,
        with loaded: LoadedResponse,
        asked: Range<Int64>?,
        contentDecoded: Bool,
        requestTime: Timestamp,
        responseTime: Timestamp,
        mode: CacheOptions.Mode,
        ignoredCookies: IgnoredCookies = .none
    ) {
        let length = Int64(loaded.entry.bodyLength)
        guard
            let part = ReceivedPart(response, to: sent, receivedAt: responseTime, contentDecoded: contentDecoded),
            let ranges = loaded.stored.ranges ?? StoredRanges(intervals: [0..<length], completeLength: length),
            let combination = PartCombination(
                of: part,
                head: response,
                with: loaded.stored,
                ranges: ranges,
                asked: asked,
                requestTime: requestTime,
                responseTime: responseTime,
                mode: mode,
                ignoredCookies: ignoredCookies
            )
        else { return nil }
        (base, self.part, self.combination) = (loaded, part, combination)
    }

    /// The joined response, without ranges if nothing is missing.
    var stored: StoredResponse { combination.joined }

    /// The intervals of the content that are now available, in the order in which their bytes are stored.
    var layout: [Range<Int64>] { combination.ranges.intervals }

    var completeLength: Int64? { combination.ranges.completeLength }

    /// How many bytes the new part has.
    var partLength: Int { Int(clamping: part.interval.upperBound - part.interval.lowerBound) }

    /// The part of the joined content that answers a request: all of it, or one part; nil if bytes are still missing.
    func answer(to caller: RequestHead) -> RangeAnswer? {
        switch PartialReuse.decide(request: caller, stored: combination.response, ranges: combination.ranges) {
        case .answer(.whole): .whole
        case .answer(.part(let interval)): .part(interval)
        case .answer, .complete, .forward: nil
        }
    }

    /// The sources of the joined content's intervals, in order: stored bytes around the new ones.
    func sources(
        _ new: any ByteSource,
        failed: @escaping @Sendable (StoreError) async -> Void
    ) -> [any ByteSource] {
        let read = base.pieces(failed)
        var sources: [any ByteSource] = []
        for interval in layout {
            let place = part.interval.clamped(to: interval)
            guard !place.isEmpty else {
                sources.append(read(interval))
                continue
            }
            if interval.lowerBound < place.lowerBound { sources.append(read(interval.lowerBound..<place.lowerBound)) }
            sources.append(new)
            if place.upperBound < interval.upperBound { sources.append(read(place.upperBound..<interval.upperBound)) }
        }
        return sources
    }

    /// How many bytes of the joined intervals are before a position.
    func offset(of position: Int64) -> Int {
        layout.reduce(0) { sum, interval in
            sum + Int(clamping: max(0, min(position, interval.upperBound) - interval.lowerBound))
        }
    }

    /// How many bytes the joined intervals have.
    var length: Int { offset(of: .max) }
}

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
        var chunk: ByteChunk?
        repeat { chunk = try await upstream.next() } while chunk?.isEmpty ?? false
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
        /// The request for the rest.
        var healing: Task<(any ByteSource)?, Never>?
    }

    private let rest: @Sendable (Range<Int64>) async -> (any ByteSource)?
    private let state: Mutex<State>
    private let reading = OneReader()

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
        try reading.begin()
        defer { reading.end() }
        do {
            return try await advance()
        } catch {
            let missing = state.withLock { $0.isHealed ? 0..<0 : $0.missing }
            guard !error.isCancellation, !missing.isEmpty else { throw error }
            guard let source = try await healing(missing) else { throw error }
            state.withLock { $0.source = source }
            return try await advance()
        }
    }

    /// The rest from elsewhere, if it is available.
    private func healing(_ missing: Range<Int64>) async throws -> (any ByteSource)? {
        // Its own task, so that cancelling the body ends it, just as cancelling the reader does.
        let healing = Task { [rest] in await rest(missing) }
        let isCancelled = state.withLock { state in
            state.healing = healing
            return state.isCancelled
        }
        if isCancelled { healing.cancel() }
        let source = await withTaskCancellationHandler {
            await healing.value
        } onCancel: {
            healing.cancel()
        }
        let isOver = state.withLock { state in
            state.healing = nil
            state.isHealed = !state.isCancelled && !Task.isCancelled
            return !state.isHealed
        }
        guard isOver else { return source }
        source?.cancel()
        throw CancellationError()
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
        let (source, healing) = state.withLock { state in
            state.isCancelled = true
            return (state.source, state.healing)
        }
        healing?.cancel()
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
            ), sent.target == lookup.head.target, part.interval == missing, part.validator == validator,
            response.fields[.contentEncoding] == stored.head.fields[.contentEncoding],
            lookup.partition(sentFor: response, in: context, of: cache) == lookup.principal
        else {
            response.body.discard()
            return nil
        }
        let counted = WatchedBody(
            response.body.anySource,
            received: { [metrics = lookup.metrics] in metrics.count($0.count, bodySource: .network) }
        )
        return ExactBody(counted, count: Int(clamping: missing.upperBound - missing.lowerBound))
    }
}

/// Several bodies, one after another.
final class JoinedBody: ByteSource {
    private struct State {
        var sources: ArraySlice<any ByteSource>
        var isCancelled = false
    }

    private let reading = OneReader()
    private let state: Mutex<State>

    init(_ sources: [any ByteSource]) { state = Mutex(State(sources: sources[...])) }

    func next() async throws -> ByteChunk? {
        try reading.begin()
        defer { reading.end() }
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
