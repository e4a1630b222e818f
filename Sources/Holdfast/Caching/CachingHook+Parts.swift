// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A stored part that a request of the cache's own is to complete (RFC 9111 §3.4).
struct Completion: Sendable {
    let held: HeldResponse
    let missing: Range<Int64>
    let fields: HeaderFields

    /// Whether a response joins what is stored, and brings all that was asked for.
    func fits(_ response: ResponseHead, to request: RequestHead, at time: Timestamp, contentDecoded: Bool) -> Bool {
        guard
            let part = ReceivedPart(response, to: request, receivedAt: time, contentDecoded: contentDecoded),
            let ranges = held.stored.ranges,
            PartCombination(
                of: part,
                head: response,
                with: held.stored,
                ranges: ranges,
                asked: missing,
                requestTime: time,
                responseTime: time,
                mode: .private
            ) != nil
        else { return false }
        return part.interval.upperBound == missing.upperBound || part.interval.upperBound == part.completeLength
    }
}

/// Parts on their way into the store, and answers made of stored and new bytes.
extension CachingHook {
    /// A stored response, the part that joins it, and what both make.
    private struct Join {
        let base: HeldResponse
        let part: ReceivedPart
        let combination: PartCombination

        /// The joined response as it is stored: without ranges once nothing is missing.
        var stored: StoredResponse {
            var stored = combination.response
            stored.ranges = combination.ranges.isComplete ? nil : combination.ranges
            return stored
        }

        /// What is made of the joined content's intervals, in order: stored bytes around the new ones.
        func sources(
            _ network: any ByteSource,
            failed: @escaping @Sendable (StoreError) async -> Void
        ) -> [any ByteSource] {
            let read = base.pieces(failed)
            var sources: [any ByteSource] = []
            for interval in combination.ranges.intervals {
                let new = combination.interval.clamped(to: interval)
                guard !new.isEmpty else {
                    sources.append(read(interval))
                    continue
                }
                if interval.lowerBound < new.lowerBound { sources.append(read(interval.lowerBound..<new.lowerBound)) }
                sources.append(network)
                if new.upperBound < interval.upperBound { sources.append(read(new.upperBound..<interval.upperBound)) }
            }
            return sources
        }

        /// How many bytes of the joined intervals stand before a position.
        func offset(of position: Int64) -> Int {
            combination.ranges.intervals.reduce(0) { sum, interval in
                sum + Int(clamping: max(0, min(position, interval.upperBound) - interval.lowerBound))
            }
        }

        var length: Int { offset(of: .max) }
    }

    /// Answers from stored bytes together with the ones that were missing.
    func complete(
        _ completion: Completion,
        with response: inout Response,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) async throws -> HopOutcome {
        let now = context.clock.timestamp
        guard let exchange = context.exchange,
            let sent = RequestHead(exchange.request, fields: exchange.presentedFields),
            StoragePlan.principal(of: response, lookup, context, cache) == lookup.principal,
            let join = join(response, to: sent, with: completion.held, asked: completion.missing, now: now)
        else {
            throw ServiceError(
                .protocolError,
                "The server answered a request for the missing part with another one; send the call again with `.reload`.",
                progress: .headReceived,
                response: response
            )
        }
        let delivered: @Sendable (Int) -> Void = { [cache] bytes in cache.count { $0.networkBytes += bytes } }
        let (source, outcome) = await store(join, response, lookup, sent, exchange, context, delivered: delivered)
        let stored = join.stored
        var wanted = 0..<(join.combination.ranges.completeLength ?? .max)
        var head = stored.responseHead(now: now)
        let asked = PartialReuse.decide(request: lookup.head, stored: stored, ranges: join.combination.ranges)
        if case .answer(.part(let interval)) = asked,
            let range = ContentRange(interval, completeLength: join.combination.ranges.completeLength)
        {
            wanted = interval
            head = PartialContent.head(of: stored, range: range, now: now)
        }
        response.head = head
        let skip = join.offset(of: wanted.lowerBound)
        let count = join.offset(of: wanted.upperBound) - skip
        let isWhole = skip == 0 && count == join.length
        response.body = ResponseBody(
            isWhole ? source : StretchOfBody(source, skip: skip, count: count),
            length: count
        )
        return outcome
    }

    /// Stores a part that the caller asked for, joined with what is stored of the same content.
    func storePart(
        _ response: inout Response,
        _ lookup: CacheLookup,
        _ exchange: SentExchange,
        _ context: CallContext,
        delivered: @escaping @Sendable (Int) -> Void
    ) async -> HopOutcome {
        let now = response.responseTime ?? context.clock.timestamp
        guard case .fields(let presented) = response.presentation,
            let sent = RequestHead(exchange.request, fields: presented),
            let part = ReceivedPart(response.head, to: sent, receivedAt: now, contentDecoded: response.contentDecoded)
        else { return leave(&response, .partialContent, context, delivered: delivered) }
        let plan = StoragePlan.judge(response, part: part, lookup, exchange, context, cache)
        let entry: StoragePlan.Entry
        do throws(Unstored) {
            entry = try plan.entry()
        } catch {
            return leave(&response, error.reason, context, delivered: delivered)
        }
        for candidate in await candidates(for: lookup, context)
        where candidate.isOwn
            && candidate.stored.nominated.matches(lookup.head.fields, secret: cache.store.secret)
        {
            guard let held = await hold(candidate, context),
                let join = join(response, to: sent, with: held, asked: nil, now: now)
            else { continue }
            if candidate.stored.ranges == nil {
                // All of it is stored already: the part brings newer fields and nothing else.
                _ = await replaceDescription(of: held.entry, as: join.stored, context)
                response.body = counted(response.body, delivered)
                return HopOutcome(nominated: entry.nominated)
            }
            let length = response.body.length
            let (source, outcome) = await store(join, response, lookup, sent, exchange, context, delivered: delivered)
            let skip = join.offset(of: part.interval.lowerBound)
            let count = Int(clamping: part.interval.upperBound - part.interval.lowerBound)
            response.body = ResponseBody(StretchOfBody(source, skip: skip, count: count), length: length)
            return outcome
        }
        return await storeAlone(part, entry, &response, lookup, context, delivered: delivered)
    }

    private func join(
        _ response: Response,
        to sent: RequestHead,
        with held: HeldResponse,
        asked: Range<Int64>?,
        now: Timestamp
    ) -> Join? {
        let length = Int64(held.entry.bodyLength)
        guard
            let part = ReceivedPart(
                response.head,
                to: sent,
                receivedAt: response.responseTime ?? now,
                contentDecoded: response.contentDecoded
            ),
            let ranges = held.stored.ranges ?? StoredRanges(intervals: [0..<length], completeLength: length),
            let combination = PartCombination(
                of: part,
                head: response.head,
                with: held.stored,
                ranges: ranges,
                asked: asked,
                requestTime: response.requestTime ?? now,
                responseTime: response.responseTime ?? now,
                mode: cache.options.mode
            )
        else { return nil }
        return Join(base: held, part: part, combination: combination)
    }

    /// The joined content as one body, on its way into the store where it may be stored.
    private func store(
        _ join: Join,
        _ response: Response,
        _ lookup: CacheLookup,
        _ sent: RequestHead,
        _ exchange: SentExchange,
        _ context: CallContext,
        delivered: @escaping @Sendable (Int) -> Void
    ) async -> (any ByteSource, HopOutcome) {
        let network = counted(response.body, delivered).anySource
        let held = join.base
        let joined = JoinedBody(
            join.sources(network) { [self] error in
                storeFailed(error, context)
                await remove(held.entry, context)
            }
        )
        let (stored, tags, options) = (join.stored, held.entry.description.tags, cache.options)
        let layout = join.combination.ranges.intervals
        do throws(Unstored) {
            // What may be stored is judged by the newest response, whatever the old one allowed.
            let planned = try StoragePlan.judge(response, part: join.part, lookup, exchange, context, cache).entry()
            // A part that is for one principal joins nothing that is for all.
            guard planned.key == held.entry.key else { throw Unstored(reason: .otherPrincipal) }
            let entry = StoragePlan.Entry(
                key: held.entry.key,
                variant: held.entry.variant,
                nominated: planned.nominated,
                stored: stored,
                description: stored.description(tags: tags, options),
                bodyLength: join.length
            )
            let writer = try await writer(of: entry, nil, lookup, context)
            let storing = StoringBody(
                joined,
                writer: writer,
                background: context.background,
                judge: { received, isWhole in
                    if isWhole, received == entry.bodyLength { return .commit }
                    // Less than there was before is not worth replacing it.
                    guard received > held.entry.bodyLength, let cut = stored.cutOff(after: received, of: layout) else {
                        return .abandon
                    }
                    return .commitAs(cut.description(tags: tags, options))
                },
                finish: commit(in: context),
                fail: { [self] error in storeFailed(error, context) }
            )
            return (storing, HopOutcome(nominated: stored.nominated, storing: storing))
        } catch {
            context.emit(.responseNotStored) { $0.detail = error.reason.description }
            cache.count(error.reason)
            return (joined, HopOutcome(notStored: error.reason))
        }
    }

    /// Stores a part that joins nothing.
    private func storeAlone(
        _ part: ReceivedPart,
        _ entry: StoragePlan.Entry,
        _ response: inout Response,
        _ lookup: CacheLookup,
        _ context: CallContext,
        delivered: @escaping @Sendable (Int) -> Void
    ) async -> HopOutcome {
        let (stored, tags, options) = (entry.stored, context.options.tags, cache.options)
        let judge: @Sendable (Int, Bool) -> StoringBody.Ending = { received, isWhole in
            guard let ended = part.ended(after: Int64(received), isWhole: isWhole) else { return .abandon }
            if ended == part { return .commit }
            var cut = stored.withFields(of: ended.storedHead, options.mode)
            cut.ranges = ended.ranges
            return .commitAs(cut.description(tags: tags, options))
        }
        let writer: any EntryWriter
        do throws(Unstored) {
            writer = try await self.writer(of: entry, response.body.bytesInMemory, lookup, context)
        } catch {
            return leave(&response, error.reason, context, delivered: delivered)
        }
        let finish = commit(in: context)
        guard let source = response.body.source else {
            let count = response.body.length ?? 0
            delivered(count)
            switch judge(count, true) {
            case .commit: await finish(writer, nil)
            case .commitAs(let description): await finish(writer, description)
            case .abandon: writer.abandon()
            }
            return HopOutcome(nominated: entry.nominated)
        }
        let storing = StoringBody(
            CountedBody(source, delivered: delivered),
            writer: writer,
            background: context.background,
            judge: judge,
            finish: finish,
            fail: { [self] error in storeFailed(error, context) }
        )
        response.body = ResponseBody(storing, length: response.body.length)
        return HopOutcome(nominated: entry.nominated, storing: storing)
    }

    private func counted(_ body: ResponseBody, _ delivered: @escaping @Sendable (Int) -> Void) -> ResponseBody {
        guard let source = body.source else {
            delivered(body.length ?? 0)
            return body
        }
        return ResponseBody(CountedBody(source, delivered: delivered), length: body.length)
    }
}

extension ResponseBody {
    /// The body as a source, bytes in memory included.
    fileprivate var anySource: any ByteSource { source ?? BytesSource(bytesInMemory ?? ByteChunk()) }
}

extension StoredResponse {
    /// The same response with the fields of another head.
    fileprivate func withFields(of head: ResponseHead, _ mode: CacheOptions.Mode) -> StoredResponse {
        StoredResponse(
            target: target,
            method: method,
            nominated: nominated,
            head: FieldUpdate.storable(
                head,
                contentDecoded: contentDecoded,
                mode: mode,
                targetedFields: targetedFields
            ),
            requestTime: requestTime,
            responseTime: responseTime,
            contentDecoded: contentDecoded,
            givenLifetime: givenLifetime,
            needsConfirmation: needsConfirmation,
            targetedFields: targetedFields
        )
    }
}
