// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The handling of a response on its way up: it answers a validation, or is stored.
extension CachingHook {
    /// A stored response as the answer to a request.
    ///
    /// - Parameters:
    ///   - request: what to send for the rest of a body that cannot be read to its end.
    ///   - way: how its returned bytes are counted; nil: not at all.
    func answer(
        _ loaded: LoadedResponse,
        to lookup: CacheLookup,
        request: URLRequest?,
        source: ResponseSource,
        context: CallContext,
        counted bodySource: BodySource?
    ) -> Response {
        let origin = StoredOrigin(
            hook: self,
            loaded: loaded,
            lookup: lookup,
            request: request,
            context: context,
            bodySource: bodySource
        )
        var response = loaded.response(
            to: lookup,
            source: source,
            now: context.clock.timestamp,
            delivered: { origin.delivered($0) },
            failed: { await origin.failed($0) },
            rest: { await origin.rest($0) }
        )
        response.storedOrigin = origin
        return response
    }

    /// Answers with the stored response that a 304 selects, freshened (RFC 9111 §4.3.3, §4.3.4).
    ///
    /// A 304 to the caller's own condition that matches nothing stored is for the caller (RFC 9111 §4.3.2).
    func useOffered(
        _ offered: [LoadedResponse],
        for response: inout Response,
        lookup: CacheLookup,
        context: CallContext
    ) async throws -> ResponseOutcome {
        let candidates = offered.map(\.stored)
        let index: Int
        switch Precondition.answer(
            to: response.head,
            request: lookup.head,
            candidates: candidates,
            now: context.clock.timestamp
        ) {
        case .notModified(let candidate), .full(let candidate): index = candidate
        case .relay: return ResponseOutcome(notStored: .notModified)
        case .resend: throw CachingHook.unasked(response)
        }
        var loaded = offered[index]
        let ignored = cache.options.ignoredCookies(for: lookup.head.target)
        let received = ReceivedExchange(response, lookup: lookup, context: context, cache: cache)
        let admission = received.admission(
            of: response.head,
            as: .notModified(received.existing(loaded.stored, in: loaded.entry))
        )
        // What another principal was told about the response is no news about this one's.
        if case .freshen(let stored) = admission.action {
            loaded.stored = stored
        } else if received.isForRequester, loaded.isOwn {
            loaded.stored = loaded.stored.freshened(
                by: response.head,
                requestTime: received.exchange.requestTime,
                responseTime: received.exchange.responseTime,
                mode: cache.options.mode,
                givenLifetime: lookup.directive.lifetime?.wholeSeconds,
                ignoredCookies: ignored
            )
        }
        // If the new fields say that the part is not what was requested, the rest is missing.
        guard loaded.stored.hasAll(askedBy: lookup.head) else { throw CachingHook.unasked(response) }
        let head = response.head
        let entry = await apply(admission, to: loaded.entry, by: received, in: context) { existing in
            received.admission(of: head, as: .notModified(existing))
        }
        if let entry { loaded.entry = entry }
        if case .freshen = admission.action { cache.storedElsewhere.note(loaded.entry, lookup: lookup) }
        response.body.discard()
        var answer = answer(
            loaded,
            to: lookup,
            request: context.exchange?.request,
            source: .revalidated,
            context: context,
            counted: counts(lookup, context: context) ? .revalidated : nil
        )
        answer.url = response.url
        answer.requestTime = response.requestTime
        answer.responseTime = response.responseTime
        answer.attempts = response.attempts
        answer.presentation = response.presentation
        for value in ignored.setCookies(in: response.fields) { answer.fields.append(.setCookie, value) }
        response = answer
        return ResponseOutcome(loaded: loaded, notStored: admission.reason, mayBeShared: admission.isShareable)
    }

    /// Whether bytes count for the call that an exchange was begun for: it was looked up, and is still waiting.
    private func counts(_ lookup: CacheLookup, context: CallContext) -> Bool {
        lookup.bypassReason == nil && context.fetch?.isFirstPresent ?? true
    }

    private static func unasked(_ notModified: Response) -> ServiceError {
        ServiceError(
            .protocolError,
            "The server answered 304 to a request without conditions; send the call again with another `cachePolicy`.",
            progress: .headReceived,
            response: notModified
        )
    }

    /// Stores a response while its body is being read, if the rules allow it.
    func store(_ response: inout Response, lookup: CacheLookup, context: CallContext) async -> ResponseOutcome {
        guard context.exchange != nil, response.source != .synthesized else {
            return ResponseOutcome(notStored: .synthesized)
        }
        if response.status == .partialContent {
            return await storePart(&response, lookup: lookup, context: context)
        }
        let received = ReceivedExchange(response, lookup: lookup, context: context, cache: cache)
        var admitted: AdmittedEntry?
        do throws(Unstored) {
            let entry = try self.entry(for: response, as: .complete, in: received, context: context)
            admitted = entry
            return try await store(entry, response: &response, received: received, context: context)
        } catch {
            return outcome(unstored: error.reason, admitted: admitted, lookup: lookup, context: context)
        }
    }

    /// The entry for storing a response.
    func entry(
        for response: Response,
        as kind: Admission.Kind,
        in received: ReceivedExchange,
        context: CallContext
    ) throws(Unstored) -> AdmittedEntry {
        // The principal is checked first: others also learn that something is not stored, but nothing about another principal's
        // response.
        let admission = received.admission(of: response.head, as: kind)
        guard case .store(let stored, let scope) = admission.action else {
            throw Unstored(reason: admission.reason ?? .status)
        }
        let length = response.contentDecoded ? nil : response.head.contentLength
        if let length, let bytes = response.body.bytesInMemory, bytes.count != length {
            throw Unstored(reason: .incomplete)
        }
        let key = received.lookup.storeKey(for: scope)
        return AdmittedEntry(
            key: key,
            variant: StoreKey(stored.nominated.framed),
            stored: stored,
            description: stored.description(tags: cache.tags(context.options.tags, for: stored), cache.options),
            bodyLength: length ?? response.body.length,
            mayBeShared: admission.isShareable,
            claim: received.claim(on: key, nominated: stored.nominated)
        )
    }

    /// What becomes of an entry when so many bytes were received, of a body that ended properly or not.
    typealias StorageEnding = @Sendable (_ received: Int, _ isWhole: Bool) -> StoringBody.Ending

    /// Stores an entry while the body is being read, if it is not there already.
    ///
    /// - Parameter ending: what is kept of the body; nil: all of it, or what of an incomplete one may be completed later.
    func store(
        _ entry: AdmittedEntry,
        response: inout Response,
        received: ReceivedExchange,
        context: CallContext,
        ending: StorageEnding? = nil
    ) async throws(Unstored) -> ResponseOutcome {
        let lookup = received.lookup
        let writer = try await writer(
            of: entry,
            bytes: response.body.bytesInMemory,
            received: received,
            context: context
        )
        context.transaction?.fillLease?.note(isReusable: isReusable(entry.stored, lookup: lookup, context: context))
        let ending = ending ?? self.ending(of: entry, context: context)
        guard let source = response.body.source else {
            let finish = commit(entry, received: received, context: context)
            let reason: CacheReason?
            switch ending(response.body.length ?? 0, true) {
            case .commit: reason = await finish(writer, nil)
            case .commitAs(let description): reason = await finish(writer, description)
            case .abandon:
                writer.abandon()
                reason = .incomplete
                context.tell(notStored: .incomplete, metrics: lookup.metrics, hadBegun: true)
            }
            return ResponseOutcome(
                storable: entry.stored,
                entry: entry,
                notStored: reason,
                awaitsVerdict: context.verdict != nil,
                mayBeShared: entry.mayBeShared
            )
        }
        let storing = storing(source, as: entry, writer: writer, received: received, context: context, ending: ending)
        response.body = ResponseBody(storing, length: response.body.length)
        return ResponseOutcome(storable: entry.stored, entry: entry, storing: storing, mayBeShared: entry.mayBeShared)
    }

    /// The body that stores an entry as it is read, and tells if nothing is stored.
    func storing(
        _ source: any ByteSource,
        as entry: AdmittedEntry,
        writer: any EntryWriter,
        received: ReceivedExchange,
        context: CallContext,
        ending: @escaping StorageEnding
    ) -> StoringBody {
        let metrics = received.lookup.metrics
        return StoringBody(
            source,
            writer: writer,
            background: context.background,
            ending: { count, isWhole in
                let ending = ending(count, isWhole)
                if case .abandon = ending { context.tell(notStored: .incomplete, metrics: metrics, hadBegun: true) }
                return ending
            },
            finish: commit(entry, received: received, context: context),
            fail: { [self] error in
                await storingFailed(error, entry: entry, of: received, in: context)
                context.transaction?.fillLease?.end(.notReusable)
                context.tell(notStored: error.reason, metrics: metrics, hadBegun: true)
            }
        )
    }

    /// How storing a complete response ends.
    private func ending(of entry: AdmittedEntry, context: CallContext) -> StorageEnding {
        let (stored, expected, options) = (entry.stored, entry.bodyLength, cache.options)
        let isRefresh = context.fetch?.isBackground ?? false
        let tags = entry.description.tags
        return { received, isWhole in
            // An incomplete response must not be used as a complete one (RFC 9111 §3.3).
            if isWhole, expected.map({ $0 == received }) ?? true { return .commit }
            let layout = stored.ranges?.intervals ?? [0..<Int64(expected ?? .max)]
            // A complete stale response is worth more than a part of a newer one that nobody waits for.
            guard !isRefresh, let cut = stored.cutOff(after: received, of: layout) else { return .abandon }
            context.options.storing?.note(.incomplete)
            return .commitAs(cut.description(tags: tags, options))
        }
    }

    /// The outcome of a response whose body bypasses the store.
    func outcome(
        unstored reason: CacheReason,
        admitted: AdmittedEntry? = nil,
        lookup: CacheLookup,
        context: CallContext
    ) -> ResponseOutcome {
        context.tell(notStored: reason, metrics: lookup.metrics, hadBegun: false)
        return ResponseOutcome(
            storable: admitted?.stored,
            entry: admitted,
            notStored: reason,
            mayBeShared: admitted?.mayBeShared ?? false
        )
    }

    /// A writer for an entry, with the bytes that are already available.
    func writer(
        of entry: AdmittedEntry,
        bytes: ByteChunk?,
        received: ReceivedExchange,
        context: CallContext
    ) async throws(Unstored) -> any EntryWriter {
        let lookup = received.lookup
        let target = lookup.key.target
        guard cache.writer.order.enter(entry.claim) else {
            // A newer response has begun. Whether or not it is kept, what both would have replaced is older still.
            await giveUp(entry.claim, of: received, in: context)
            throw Unstored(reason: .overtaken)
        }
        if lookup.content != nil { cache.writer.noteContentKey() }
        let writer: any EntryWriter
        do throws(StoreError) {
            writer = try await cache.writer.open(
                entry.key,
                variant: entry.variant,
                description: entry.description,
                expectedLength: entry.bodyLength,
                now: context.clock.timestamp
            )
            if let bytes, !bytes.isEmpty { try await writer.append(bytes) }
        } catch {
            await storingFailed(error, entry: entry, of: received, in: context)
            throw Unstored(reason: error.reason)
        }
        // From here on, the store itself notices invalidations.
        let answersQueries = entry.stored.head.fields.contains(.noVarySearch)
        guard cache.writer.holds(lookup.generation, for: target, answersQueries: answersQueries) else {
            writer.abandon()
            // It may be older than what was invalidated; what it would have replaced is older still.
            await giveUp(entry.claim, of: received, in: context)
            throw Unstored(reason: .overtaken)
        }
        return writer
    }

    /// Commits an entry, at once or after the caller's acceptance has accepted the response. The closure returns why nothing was
    /// stored, as far as that is known by then.
    func commit(
        _ entry: AdmittedEntry,
        received: ReceivedExchange,
        context: CallContext
    ) -> @Sendable (any EntryWriter, EntryDescription?) async -> CacheReason? {
        { [self] writer, description in
            guard let verdict = context.verdict else {
                return await commit(
                    writer,
                    description: description,
                    admitted: entry,
                    received: received,
                    context: context
                )
            }
            context.transaction?.fillLease?.awaitVerdict()
            await verdict.whenDecided { [self] accepted in
                if accepted {
                    // In a task of its own: a caller that is cancelled now has accepted the response, and others wait for it.
                    await context.background.start { [self] in
                        _ = await commit(
                            writer,
                            description: description,
                            admitted: entry,
                            received: received,
                            context: context
                        )
                    }.value
                } else {
                    // The writer is left alone, since calls that joined may still follow it; once released, it abandons itself.
                    context.tell(notStored: .notAccepted, metrics: received.lookup.metrics, hadBegun: true)
                    context.transaction?.fillLease?.end(.failed)
                }
            }
            return nil
        }
    }

    /// - Returns: why the entry was not stored; nil if it was.
    private func commit(
        _ writer: any EntryWriter,
        description: EntryDescription?,
        admitted: AdmittedEntry,
        received: ReceivedExchange,
        context: CallContext
    ) async -> CacheReason? {
        let lookup = received.lookup
        let answersQueries = admitted.stored.head.fields.contains(.noVarySearch)
        let equivalent = await noteSearchVariance(
            of: admitted.stored,
            under: admitted.key,
            until: admitted.description.uselessAfter,
            context
        )
        // The order of exchanges here knows nothing about other processes and other URIs.
        if cache.leasing != nil || !equivalent.isEmpty,
            await isNewerStored(than: received, context: context)
        {
            // As in `CacheWriter.commit`: readers may still follow the writer.
            return overtaken(lookup, in: context)
        }
        do throws(StoreError) {
            let entry = try await cache.writer.commit(
                writer,
                description: description,
                as: CacheWriter.WrittenResponse(
                    generation: lookup.generation,
                    claim: admitted.claim,
                    answersQueries: answersQueries
                ),
                now: context.clock.timestamp
            )
            guard let entry else {
                await giveUp(admitted.claim, of: received, in: context)
                return overtaken(lookup, in: context)
            }
            cache.storedElsewhere.note(entry, lookup: lookup)
            if answersQueries { cache.writer.noteSearchVariance() }
            // Others that answer the same request are older, and must not be used once this one is gone.
            await remove(lookup.matching, supersededUnder: entry.key, except: entry, for: lookup, in: context)
            // There may be more for equivalent queries by now.
            if !equivalent.isEmpty { await removeOlder(beside: entry, by: received, in: context) }
            if lookup.bypassReason != nil { cache.fetches.noteCompletion(lookup.key) }
            lookup.metrics.count { $0.stored += 1 }
            // A truncated part is for another process to complete.
            if let fillLease = context.transaction?.fillLease {
                description == nil ? fillLease.endStored() : fillLease.end(.failed)
            }
            context.emit(.responseStored)
            context.options.storing?.note(nil)
            return nil
        } catch {
            await giveUp(admitted.claim, of: received, in: context)
            // Invalidated meanwhile: not a failure of the store, the response was only superseded.
            if error.code == .superseded { return overtaken(lookup, in: context) }
            storeFailed(error, context: context)
            context.tell(notStored: error.reason, metrics: lookup.metrics, hadBegun: true)
            context.transaction?.fillLease?.end(.notReusable)
            return error.reason
        }
    }

    /// Whether a response that was requested later is stored where the requester looks, and answers the same request.
    private func isNewerStored(than received: ReceivedExchange, context: CallContext) async -> Bool {
        let lookup = received.lookup
        return await candidates(for: lookup, context).contains {
            $0.stored.requestOrder > received.exchange.requestOrder && matches($0, lookup: lookup)
        }
    }

    private func overtaken(_ lookup: CacheLookup, in context: CallContext) -> CacheReason {
        context.tell(notStored: .overtaken, metrics: lookup.metrics, hadBegun: true)
        context.transaction?.fillLease?.end(.failed)
        return .overtaken
    }
}

extension StoreError {
    /// Why a response is not stored, from the store's error.
    fileprivate var reason: CacheReason {
        guard code == .tooLarge else { return .storeFailure(detail: code.description) }
        return limit.map { .tooLarge(limit: $0) } ?? .tooLarge
    }
}

/// The effect of a HEAD response on the stored responses of its URI.
extension CachingHook {
    /// Updates or removes the stored responses that could have answered the request (RFC 9111 §4.3.5).
    func updateStored(byHead response: Response, lookup: CacheLookup, context: CallContext) async {
        guard case .network = response.source, context.exchange != nil,
            cache.writer.holds(lookup.generation, for: lookup.key.target)
        else { return }
        let received = ReceivedExchange(response, lookup: lookup, context: context, cache: cache)
        guard received.isForRequester else { return }
        let ownKeys = [lookup.storeKey, lookup.sharedStoreKey]
        // A response that is stored for another URI, and also answers this one, is described by that URI's HEAD.
        for candidate in await candidates(for: lookup, context)
        where ownKeys.contains(candidate.entry.key) && matches(candidate, lookup: lookup) {
            let existing = received.existing(candidate.stored, in: candidate.entry)
            let bodyLength = candidate.entry.bodyLength
            func admit(_ existing: Admission.Existing) -> Admission {
                received.admission(of: response.head, as: .head(existing, bodyLength: bodyLength))
            }
            _ = await apply(admit(existing), to: candidate.entry, by: received, in: context, again: admit)
        }
    }
}

/// A response that may be stored, and where.
struct AdmittedEntry: Sendable {
    let key: StoreKey
    let variant: StoreKey
    /// The response that ``description`` describes.
    let stored: StoredResponse
    let description: EntryDescription
    /// The body's length, if the transport or Content-Length gives it.
    let bodyLength: Int?
    /// Whether other calls that wait for the same may get the response.
    let mayBeShared: Bool
    /// Its place in the order of what is written for its target.
    let claim: ExchangeOrder.Claim
}

/// A response on its way up, with its exchange, as ``Admission`` needs it.
struct ReceivedExchange: Sendable {
    let lookup: CacheLookup
    let exchange: Admission.Exchange
    private let cache: HTTPCache

    /// - Parameter context: of the exchange whose request was sent.
    init(_ response: Response, lookup: CacheLookup, context: CallContext, cache: HTTPCache) {
        self.lookup = lookup
        self.cache = cache
        let now = context.clock.timestamp
        var sent: RequestHead?
        var sentPartition: String?
        if let fields = response.presentation.presented?.fields(probably: lookup.presented),
            let request = context.exchange?.request
        {
            let presented = cache.view(of: fields, to: lookup.head.target)
            sent = context.head(of: request, fields: presented)
            sentPartition = lookup.partition(ofSent: presented, in: context, of: cache)
        }
        var exchange = Admission.Exchange(
            lookedUp: lookup.head,
            sent: sent,
            partition: lookup.principal,
            sentPartition: sentPartition,
            requestTime: response.requestTime ?? now,
            responseTime: response.responseTime ?? now,
            directive: lookup.directive,
            // Fields of a credential that had to be requested first are known by now.
            credentialFields: lookup.credentialFields + context.options.credentialFields
        )
        if let order = context.exchange?.order { exchange.requestOrder = order }
        exchange.hasUnkeyedContent = lookup.hasUnkeyedContent
        exchange.hasContentKey = lookup.content != nil
        exchange.isNamed = context.options.principal != nil
        // A reload, and a request for a missing part, have selected nothing, but would replace what is stored all the same.
        exchange.hasUsableStored =
            (context.transaction?.holdsUsable ?? false)
            || lookup.matching.contains { $0.stored.head.status.rawValue < 400 }
        if response.status.isOriginError {
            // For this caller, or for any other.
            let isForCaller =
                context.transaction?.fetchRequest?.allowsStale(.staleIfError, now: now, options: cache.options) ?? false
            exchange.hasStoredForErrors =
                isForCaller
                || lookup.matching.contains { $0.stored.mayReplaceError(now: now, options: cache.options) }
        }
        exchange.contentDecoded = response.contentDecoded
        if let content = lookup.content, let sent,
            !content.isSame(as: LookupKeys.content(of: sent, context: context, options: cache.options))
        {
            exchange.hasUnkeyedContent = true
        }
        self.exchange = exchange
    }

    /// Whether the sent request had the principal that was looked up, so that the response is for it.
    var isForRequester: Bool { exchange.refusal == nil }

    func admission(of head: ResponseHead, as kind: Admission.Kind) -> Admission {
        Admission(of: head, as: kind, in: exchange, options: cache.options, secret: cache.store.secret)
    }

    /// A stored response, as admission needs it.
    func existing(_ stored: StoredResponse, in entry: StoredEntry) -> Admission.Existing {
        let parts = CacheKey.Parts(framed: entry.key.bytes)
        return Admission.Existing(stored, partition: parts?.partition ?? lookup.principal)
    }

    /// The response to be written, with its place in the order of everything written for the target.
    func claim(on key: StoreKey, nominated: NominatedFields) -> ExchangeOrder.Claim {
        ExchangeOrder.Claim(
            target: lookup.key.target,
            order: exchange.requestOrder,
            key: key,
            nominated: nominated,
            // Entries that are only borrowed do not affect which of the requester's own is the newest.
            readable: [lookup.storeKey, key] + (lookup.borrows ? [] : [lookup.sharedStoreKey].compactMap(\.self)),
            fields: exchange.selecting
        )
    }
}

extension StoredResponse {
    /// How a store keeps the response.
    func description(tags: Set<String>, _ options: CacheOptions) -> EntryDescription {
        var description = EntryDescription(
            metadata: encoded,
            uselessAfter: StoreInstant(uselessAfter(options)),
            tags: tags
        )
        description.requestedAt = StoreInstant(requestTime)
        return description
    }

    /// The response with only the first bytes of its content; nil if the rest could not be requested, so that nothing of it is
    /// worth keeping (RFC 9111 §3.3).
    ///
    /// - Parameter layout: the intervals of the content that the bytes belong to, in order.
    func cutOff(after count: Int, of layout: [Range<Int64>]) -> StoredResponse? {
        guard head.status == .ok, method == .get, StrongValidator(self) != nil else { return nil }
        var left = Int64(count)
        var kept: [Range<Int64>] = []
        for interval in layout where left > 0 {
            let length = min(left, interval.upperBound - interval.lowerBound)
            kept.append(interval.lowerBound..<interval.lowerBound + length)
            left -= length
        }
        let known = ranges.map(\.completeLength) ?? head.contentLength.map { Int64($0) }
        guard !kept.isEmpty, let ranges = StoredRanges(intervals: kept, completeLength: known), !ranges.isComplete
        else {
            return nil
        }
        var cut = self
        cut.ranges = ranges
        return cut
    }
}

/// Why a response is not stored, thrown where that was found out.
struct Unstored: Error {
    let reason: CacheReason
}
