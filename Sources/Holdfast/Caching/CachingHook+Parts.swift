// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Parts on their way into the store, and answers made of stored and new bytes.
extension CachingHook {
    /// Answers from stored bytes together with the ones that were missing.
    func complete(
        _ completion: Completion,
        with response: inout Response,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) async throws -> HopOutcome {
        let now = context.clock.timestamp
        let received = ReceivedExchange(response, lookup: lookup, context: context, cache: cache)
        guard received.isForRequester, let sent = received.exchange.sent,
            let join = join(response, to: sent, with: completion.held, asked: completion.missing, now: now),
            let answer = join.answer(to: lookup.head)
        else {
            throw ServiceError(
                .protocolError,
                "The server answered a request for the missing part with another one; send the call again with `.reload`.",
                progress: .headReceived,
                response: response
            )
        }
        let delivered = delivered(lookup, context)
        let network = ExactBody(counted(response.body, delivered).anySource, count: join.partLength)
        let (source, outcome) = await store(join, network, response, received, context)
        let setCookies = cache.options.ignored.setCookies(in: response.fields)
        response.head = join.stored.responseHead(now: now)
        response.body = ResponseBody(source, length: join.length)
        if case .part(let wanted) = answer, let range = ContentRange(wanted, completeLength: join.completeLength) {
            response.head = PartialContent.head(of: join.stored, range: range, now: now)
            let skip = join.offset(of: wanted.lowerBound)
            let count = join.offset(of: wanted.upperBound) - skip
            response.body = ResponseBody(
                StretchOfBody(
                    source,
                    skip: skip,
                    count: count,
                    // A part that is all the caller wants does not depend on what the store makes of it.
                    part: wanted == join.part.interval ? network : nil
                ),
                length: count
            )
        }
        for value in setCookies { response.fields.append(.setCookie, value) }
        return outcome
    }

    /// Stores a part that the caller asked for, joined with what is stored of the same content.
    func storePart(
        _ response: inout Response,
        _ lookup: CacheLookup,
        _ context: CallContext,
        delivered: @escaping @Sendable (Int) -> Void
    ) async -> HopOutcome {
        let received = ReceivedExchange(response, lookup: lookup, context: context, cache: cache)
        let now = received.exchange.responseTime
        guard received.isForRequester, let sent = received.exchange.sent,
            let part = ReceivedPart(response.head, to: sent, receivedAt: now, contentDecoded: response.contentDecoded)
        else {
            let reason = received.exchange.refusal ?? .partialContent
            return leave(&response, reason, lookup, context, delivered: delivered)
        }
        for candidate in await candidates(for: lookup, context)
        where matches(candidate, lookup) {
            guard let held = await hold(candidate, context),
                let join = join(response, to: sent, with: held, asked: nil, now: now)
            else { continue }
            let admission = received.admission(
                of: response,
                as: .joining(join.combination, received.existing(held.stored, in: held.entry))
            )
            if candidate.stored.ranges == nil {
                // All of it is stored already: the part brings newer fields and nothing else.
                _ = await apply(admission, to: held.entry, by: received, in: context)
                response.body = counted(response.body, delivered)
                guard admission.isShareable else { return HopOutcome(notStored: admission.reason) }
                let entry = AdmittedEntry(
                    key: held.entry.key,
                    variant: held.entry.variant,
                    stored: join.stored,
                    description: held.entry.description,
                    bodyLength: held.entry.bodyLength,
                    mayBeShared: true,
                    claim: received.claim(on: held.entry.key, nominated: join.stored.nominated)
                )
                return HopOutcome(storable: join.stored, entry: entry, notStored: admission.reason)
            }
            guard case .store = admission.action else { continue }
            let length = response.body.length
            let network = ExactBody(counted(response.body, delivered).anySource, count: join.partLength)
            let (source, outcome) = await store(join, network, response, received, context)
            let skip = join.offset(of: part.interval.lowerBound)
            response.body = ResponseBody(
                StretchOfBody(source, skip: skip, count: join.partLength, part: network, mayEndEarly: true),
                length: length
            )
            return outcome
        }
        let entry: AdmittedEntry
        do throws(Unstored) {
            entry = try self.entry(for: response, as: .part(part), in: received, context: context)
        } catch {
            return leave(&response, error.reason, lookup, context, delivered: delivered)
        }
        // A part that contradicts itself must not be taken for a piece of what bears the same tag.
        guard part.validator != nil || StrongValidator(entry.stored) == nil else {
            return leave(&response, .partialContent, lookup, context, delivered: delivered)
        }
        return await storeAlone(part, entry, &response, received, context, delivered: delivered)
    }

    private func join(
        _ response: Response,
        to sent: RequestHead,
        with held: HeldResponse,
        asked: Range<Int64>?,
        now: Timestamp
    ) -> PartJoin? {
        PartJoin(
            response.head,
            to: sent,
            with: held,
            asked: asked,
            contentDecoded: response.contentDecoded,
            requestTime: response.requestTime ?? now,
            responseTime: response.responseTime ?? now,
            mode: cache.options.mode,
            ignoredCookies: cache.options.ignored
        )
    }

    /// The joined content as one body, on its way into the store where it may be stored.
    private func store(
        _ join: PartJoin,
        _ network: ExactBody,
        _ response: Response,
        _ received: ReceivedExchange,
        _ context: CallContext
    ) async -> (any ByteSource, HopOutcome) {
        let (held, lookup) = (join.base, received.lookup)
        let joined = JoinedBody(
            join.sources(network) { [self] error in
                storeFailed(error, context)
                await remove(held.entry, context)
            }
        )
        let (tags, options, layout) = (held.entry.description.tags, cache.options, join.layout)
        do throws(Unstored) {
            let kind = Admission.Kind.joining(join.combination, received.existing(held.stored, in: held.entry))
            let admission = received.admission(of: response, as: kind)
            guard case .store(let stored, let scope) = admission.action else {
                throw Unstored(reason: admission.reason ?? .partialContent)
            }
            // In the place of what it continues, unless the newest fields nominate others.
            let isSameVariant = stored.nominated == held.stored.nominated
            let key = lookup.storeKey(for: scope)
            let entry = AdmittedEntry(
                key: key,
                variant: isSameVariant ? held.entry.variant : StoreKey(stored.nominated.framed),
                stored: stored,
                description: stored.description(tags: tags, options),
                bodyLength: join.length,
                mayBeShared: admission.isShareable,
                claim: received.claim(on: key, nominated: stored.nominated)
            )
            let writer = try await writer(of: entry, nil, received, context)
            let storing = StoringBody(
                joined,
                writer: writer,
                background: context.background,
                judge: { received, isWhole in
                    if network.isInconsistent { return .abandon }
                    if isWhole, received == entry.bodyLength { return .commit }
                    // Less than there was before is not worth replacing it.
                    guard received > held.entry.bodyLength, let cut = stored.cutOff(after: received, of: layout) else {
                        return .abandon
                    }
                    return .commitAs(cut.description(tags: tags, options))
                },
                finish: commit(entry, received, context),
                fail: { [self] error in await storingFailed(error, entry, of: received, in: context) }
            )
            let outcome = HopOutcome(
                storable: stored,
                entry: entry,
                storing: storing,
                mayBeShared: entry.mayBeShared
            )
            return (storing, outcome)
        } catch {
            context.tell(notStored: error.reason)
            lookup.tally.count(notStored: error.reason)
            return (joined, HopOutcome(notStored: error.reason))
        }
    }

    /// Stores a part that joins nothing.
    private func storeAlone(
        _ part: ReceivedPart,
        _ entry: AdmittedEntry,
        _ response: inout Response,
        _ received: ReceivedExchange,
        _ context: CallContext,
        delivered: @escaping @Sendable (Int) -> Void
    ) async -> HopOutcome {
        let (stored, tags, options) = (entry.stored, entry.description.tags, cache.options)
        let judge: @Sendable (Int, Bool) -> StoringBody.Ending = { received, isWhole in
            guard let ended = part.ended(after: Int64(received), isWhole: isWhole) else { return .abandon }
            if ended == part { return .commit }
            var cut = stored.withFields(of: ended.storedHead, options)
            cut.ranges = ended.ranges
            return .commitAs(cut.description(tags: tags, options))
        }
        let writer: any EntryWriter
        do throws(Unstored) {
            writer = try await self.writer(of: entry, response.body.bytesInMemory, received, context)
        } catch {
            return leave(&response, error.reason, received.lookup, context, delivered: delivered)
        }
        let finish = commit(entry, received, context)
        guard let source = response.body.source else {
            let count = response.body.length ?? 0
            delivered(count)
            switch judge(count, true) {
            case .commit: await finish(writer, nil)
            case .commitAs(let description): await finish(writer, description)
            case .abandon: writer.abandon()
            }
            return HopOutcome(storable: entry.stored, entry: entry, mayBeShared: entry.mayBeShared)
        }
        let storing = StoringBody(
            CountedBody(source, delivered: delivered),
            writer: writer,
            background: context.background,
            judge: judge,
            finish: finish,
            fail: { [self] error in await storingFailed(error, entry, of: received, in: context) }
        )
        response.body = ResponseBody(storing, length: response.body.length)
        return HopOutcome(storable: entry.stored, entry: entry, storing: storing, mayBeShared: entry.mayBeShared)
    }

    /// The body, whose bytes are told to `delivered` as they are handed out.
    func counted(_ body: ResponseBody, _ delivered: @escaping @Sendable (Int) -> Void) -> ResponseBody {
        guard let source = body.source else {
            delivered(body.length ?? 0)
            return body
        }
        return ResponseBody(CountedBody(source, delivered: delivered), length: body.length)
    }
}

extension ResponseBody {
    /// The body as a source, bytes in memory included.
    var anySource: any ByteSource { source ?? BytesSource(bytesInMemory ?? ByteChunk()) }
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
                ignoredCookies: options.ignored
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
