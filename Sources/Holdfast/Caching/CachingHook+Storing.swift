// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What happens to a response on its way up: it answers a validation, or is stored.
extension CachingHook {
    /// A stored response as the answer to a request.
    ///
    /// - Parameters:
    ///   - request: what to send for the rest of a body that cannot be read to its end.
    ///   - way: as what its bytes count when they are handed out; nil: not at all.
    func answer(
        _ held: HeldResponse,
        to lookup: CacheLookup,
        _ request: URLRequest?,
        source: ResponseSource,
        _ context: CallContext,
        counted way: DeliveryWay?
    ) -> Response {
        let origin = StoredOrigin(
            hook: self,
            held: held,
            lookup: lookup,
            request: request,
            context: context,
            way: way
        )
        var response = held.response(
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
    /// A 304 to a condition of the caller's own that fits nothing stored is the caller's (RFC 9111 §4.3.2).
    func useOffered(
        _ offered: [HeldResponse],
        for response: inout Response,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) async throws -> HopOutcome {
        let candidates = offered.map(\.stored)
        let index: Int
        switch Precondition.answer(
            to: response.head,
            request: lookup.head,
            candidates: candidates,
            now: context.clock.timestamp
        ) {
        case .notModified(let candidate), .full(let candidate): index = candidate
        case .relay: return HopOutcome(notStored: .notModified)
        case .resend: throw CachingHook.unasked(response)
        }
        var held = offered[index]
        let received = ReceivedExchange(response, lookup: lookup, context: context, cache: cache)
        let admission = received.admission(
            of: response,
            as: .notModified(received.existing(held.stored, in: held.entry))
        )
        // What another principal was told of the response is no news about this one's.
        if case .freshen(let stored) = admission.action {
            held.stored = stored
        } else if received.isForRequester, held.isOwn {
            held.stored = held.stored.freshened(
                by: response.head,
                requestTime: received.exchange.requestTime,
                responseTime: received.exchange.responseTime,
                mode: cache.options.mode,
                givenLifetime: lookup.directive.lifetime?.wholeSeconds,
                ignoredCookies: cache.options.ignored
            )
        }
        // Where the fields now say that a part is not what was asked for, the rest is not there.
        guard held.stored.hasAll(askedBy: lookup.head) else { throw CachingHook.unasked(response) }
        let entry = await apply(admission, to: held.entry, by: received, in: context)
        if let entry { held.entry = entry }
        if case .freshen = admission.action { cache.storedElsewhere.note(held.entry, lookup) }
        response.body.discard()
        var answer = answer(
            held,
            to: lookup,
            context.exchange?.request,
            source: .revalidated,
            context,
            counted: counts(lookup, context) ? .revalidated : nil
        )
        answer.url = response.url
        answer.requestTime = response.requestTime
        answer.responseTime = response.responseTime
        answer.attempts = response.attempts
        answer.presentation = response.presentation
        for value in cache.options.ignored.setCookies(in: response.fields) { answer.fields.append(.setCookie, value) }
        response = answer
        return HopOutcome(held: held, notStored: admission.reason, mayBeShared: admission.isShareable)
    }

    /// Counts bytes as delivered from the network to the call that an exchange was begun for, where it is there still.
    func delivered(_ lookup: CacheLookup, _ context: CallContext) -> @Sendable (Int) -> Void {
        guard counts(lookup, context) else { return { _ in } }
        return { [tally = lookup.tally] in tally.count($0, .network) }
    }

    /// Whether bytes count for the call that an exchange was begun for: it was looked up, and is there still.
    private func counts(_ lookup: CacheLookup, _ context: CallContext) -> Bool {
        lookup.bypassReason == nil && context.flight?.isFirstPresent ?? true
    }

    private static func unasked(_ notModified: Response) -> ServiceError {
        ServiceError(
            .protocolError,
            "The server answered 304 to a request without conditions; send the call again with another `cachePolicy`.",
            progress: .headReceived,
            response: notModified
        )
    }

    /// Stores a response while its body passes through, where the rules allow it.
    func store(_ response: inout Response, _ lookup: CacheLookup, _ context: CallContext) async -> HopOutcome {
        guard context.exchange != nil, response.source != .synthesized else {
            return HopOutcome(notStored: .synthesized)
        }
        let delivered = delivered(lookup, context)
        if response.status == .partialContent {
            return await storePart(&response, lookup, context, delivered: delivered)
        }
        let received = ReceivedExchange(response, lookup: lookup, context: context, cache: cache)
        var admitted: AdmittedEntry?
        do throws(Unstored) {
            let entry = try self.entry(for: response, as: .complete, in: received, context: context)
            admitted = entry
            return try await store(entry, &response, received, context, delivered: delivered)
        } catch {
            return leave(&response, error.reason, admitted: admitted, lookup, context, delivered: delivered)
        }
    }

    /// The entry that a response is to be stored as.
    func entry(
        for response: Response,
        as kind: Admission.Kind,
        in received: ReceivedExchange,
        context: CallContext
    ) throws(Unstored) -> AdmittedEntry {
        // Whose it is comes first: others are told of what is not stored as well, but not of what is another's.
        let admission = received.admission(of: response, as: kind)
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

    /// Stores an entry while the body passes through.
    private func store(
        _ entry: AdmittedEntry,
        _ response: inout Response,
        _ received: ReceivedExchange,
        _ context: CallContext,
        delivered: @escaping @Sendable (Int) -> Void
    ) async throws(Unstored) -> HopOutcome {
        let lookup = received.lookup
        let writer = try await writer(of: entry, response.body.bytesInMemory, received, context)
        let filling = context[Filling.self]
        filling?.note(isReusable: isReusable(entry.stored, lookup, context))
        let finish = commit(entry, received, context)
        guard let source = response.body.source else {
            delivered(response.body.length ?? 0)
            await finish(writer, nil)
            return HopOutcome(storable: entry.stored, entry: entry, mayBeShared: entry.mayBeShared)
        }
        let (stored, expected, options) = (entry.stored, entry.bodyLength, cache.options)
        let isRefresh = context.flight?.isBackground ?? false
        let tags = entry.description.tags
        let layout = stored.ranges?.intervals ?? [0..<Int64(expected ?? .max)]
        let storing = StoringBody(
            CountedBody(source, delivered: delivered),
            writer: writer,
            background: context.background,
            judge: { received, isWhole in
                // An incomplete response must not be taken for a whole one (RFC 9111 §3.3).
                if isWhole, expected.map({ $0 == received }) ?? true { return .commit }
                context.options.storing?.note(.incomplete)
                // A whole response that is stale is worth more than a part of a newer one that nobody waits for.
                if isRefresh { return .abandon }
                guard let cut = stored.cutOff(after: received, of: layout) else { return .abandon }
                return .commitAs(cut.description(tags: tags, options))
            },
            finish: finish,
            fail: { [self] error in
                await storingFailed(error, entry, of: received, in: context)
                filling?.end(.notReusable)
                context.options.storing?.note(.storeFailure)
            }
        )
        response.body = ResponseBody(storing, length: response.body.length)
        return HopOutcome(storable: entry.stored, entry: entry, storing: storing, mayBeShared: entry.mayBeShared)
    }

    /// Lets the body pass by the store.
    func leave(
        _ response: inout Response,
        _ reason: CacheReason,
        admitted: AdmittedEntry? = nil,
        _ lookup: CacheLookup,
        _ context: CallContext,
        delivered: @escaping @Sendable (Int) -> Void
    ) -> HopOutcome {
        context.tell(notStored: reason)
        lookup.tally.count(notStored: reason)
        response.body = counted(response.body, delivered)
        return HopOutcome(
            storable: admitted?.stored,
            entry: admitted,
            notStored: reason,
            mayBeShared: admitted?.mayBeShared ?? false
        )
    }

    /// A writer for an entry, with the bytes that are there already.
    func writer(
        of entry: AdmittedEntry,
        _ bytes: ByteChunk?,
        _ received: ReceivedExchange,
        _ context: CallContext
    ) async throws(Unstored) -> any EntryWriter {
        let lookup = received.lookup
        let target = lookup.key.target
        guard cache.writer.order.enter(entry.claim, for: target) else { throw Unstored(reason: .overtaken) }
        if lookup.content != nil { cache.noteContentKey() }
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
            await storingFailed(error, entry, of: received, in: context)
            throw Unstored(reason: error.code == .tooLarge ? .tooLarge : .storeFailure)
        }
        // From here on the store itself watches for invalidations.
        let answersQueries = entry.stored.head.fields.contains(.noVarySearch)
        guard cache.writer.holds(lookup.generation, for: target, answersQueries: answersQueries) else {
            writer.abandon()
            // It may be older than what was made invalid; what it would have replaced is older still.
            await giveUp(entry.claim, of: received, in: context)
            throw Unstored(reason: .overtaken)
        }
        return writer
    }

    /// Commits an entry: at once, or once the caller's acceptance has taken the response.
    func commit(
        _ entry: AdmittedEntry,
        _ received: ReceivedExchange,
        _ context: CallContext
    ) -> @Sendable (any EntryWriter, EntryDescription?) async -> Void {
        { [self] writer, description in
            guard let verdict = context.verdict else {
                return await commit(writer, description, entry, received, context)
            }
            context[Filling.self]?.awaitVerdict()
            await verdict.whenDecided { [self] accepted in
                if accepted {
                    await commit(writer, description, entry, received, context)
                } else {
                    writer.abandon()
                    context[Filling.self]?.end(.failed)
                }
            }
        }
    }

    private func commit(
        _ writer: any EntryWriter,
        _ description: EntryDescription?,
        _ admitted: AdmittedEntry,
        _ received: ReceivedExchange,
        _ context: CallContext
    ) async {
        let lookup = received.lookup
        let answersQueries = admitted.stored.head.fields.contains(.noVarySearch)
        let equivalent = await noteSearchVariance(
            of: admitted.stored,
            under: admitted.key,
            until: admitted.description.uselessAfter,
            context
        )
        // Of what other processes write, and of other URIs, the order of exchanges here knows nothing.
        if cache.leasing != nil || !equivalent.isEmpty, await isNewerStored(than: admitted, received, context) {
            writer.abandon()
            return overtaken(context)
        }
        do throws(StoreError) {
            let entry = try await cache.writer.commit(
                writer,
                description: description,
                as: CacheWriter.WrittenResponse(
                    target: lookup.key.target,
                    generation: lookup.generation,
                    claim: admitted.claim,
                    answersQueries: answersQueries
                ),
                now: context.clock.timestamp
            )
            guard let entry else {
                await giveUp(admitted.claim, of: received, in: context)
                return overtaken(context)
            }
            cache.storedElsewhere.note(entry, lookup)
            if answersQueries { cache.noteSearchVariance() }
            // Others that answer the same request are older, and must not come to light once this one is gone.
            await remove(lookup.matching, supersededUnder: entry.key, except: entry, for: lookup, in: context)
            // For equivalent queries more may be there by now.
            if !equivalent.isEmpty { await removeOlder(beside: entry, by: received, in: context) }
            if lookup.bypassReason != nil { cache.flights.noteLanding(lookup.key) }
            lookup.tally.count { $0.stored += 1 }
            // A part that was cut off is for somebody to complete.
            if let filling = context[Filling.self] { description == nil ? filling.endStored() : filling.end(.failed) }
            context.emit(.responseStored)
            context.options.storing?.note(nil)
        } catch {
            await giveUp(admitted.claim, of: received, in: context)
            // Invalidated meanwhile: not a fault of the store, the response was merely overtaken.
            if error.code == .superseded { return overtaken(context) }
            storeFailed(error, context)
            context.options.storing?.note(.storeFailure)
            context[Filling.self]?.end(.notReusable)
        }
    }

    /// Whether what was asked for later is stored where the requester reads, and answers the same request.
    private func isNewerStored(
        than admitted: AdmittedEntry,
        _ received: ReceivedExchange,
        _ context: CallContext
    ) async -> Bool {
        let lookup = received.lookup
        return await candidates(for: lookup, context).contains {
            $0.stored.requestOrder > received.exchange.requestOrder && matches($0, lookup)
        }
    }

    private func overtaken(_ context: CallContext) {
        context.options.storing?.note(.overtaken)
        context.tell(notStored: .overtaken)
        context[Filling.self]?.end(.failed)
    }
}
