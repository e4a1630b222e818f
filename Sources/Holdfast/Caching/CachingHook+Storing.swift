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
    func answer(
        _ held: HeldResponse,
        to lookup: CacheLookup,
        source: ResponseSource,
        _ context: CallContext,
        delivered: @escaping @Sendable (Int) -> Void
    ) -> Response {
        let entry = held.entry
        var response = held.response(
            to: lookup,
            source: source,
            now: context.clock.timestamp,
            delivered: delivered,
            failed: { [self] error in
                storeFailed(error, context)
                await remove(entry, context)
            }
        )
        response.removeStored = { [self] in await remove(entry, context) }
        return response
    }

    /// Answers with the stored response that a 304 selects, freshened (RFC 9111 §4.3.3, §4.3.4).
    func useOffered(
        _ offered: [HeldResponse],
        for response: inout Response,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) async throws -> HopOutcome {
        guard let index = Validation.selected(by: response.head, among: offered.map(\.stored)) else {
            throw ServiceError(
                .protocolError,
                "The server answered 304 to a request without conditions; send the call again with another `cachePolicy`.",
                progress: .headReceived,
                response: response
            )
        }
        var held = offered[index]
        let now = context.clock.timestamp
        // What another principal was told of the response is no news about this one's.
        if StoragePlan.principal(of: response, lookup, context, cache) == lookup.principal {
            held.stored = held.stored.freshened(
                by: response.head,
                requestTime: response.requestTime ?? now,
                responseTime: response.responseTime ?? now,
                mode: cache.options.mode
            )
            if let entry = await replaceDescription(of: held.entry, as: held.stored, context) { held.entry = entry }
        }
        response.body.discard()
        var answer = answer(held, to: lookup, source: .revalidated, context) { [cache] bytes in
            cache.count { $0.revalidatedBytes += bytes }
        }
        answer.url = response.url
        answer.requestTime = response.requestTime
        answer.responseTime = response.responseTime
        answer.attempts = response.attempts
        answer.presentation = response.presentation
        response = answer
        return HopOutcome(held: held)
    }

    /// Stores a response while its body passes through, where the rules allow it.
    func store(_ response: inout Response, _ lookup: CacheLookup, _ context: CallContext) async -> HopOutcome {
        guard let exchange = context.exchange, response.source != .synthesized else {
            return HopOutcome(notStored: .synthesized)
        }
        let wasLookedUp = lookup.bypassReason == nil
        let delivered: @Sendable (Int) -> Void = { [cache] bytes in
            if wasLookedUp { cache.count { $0.networkBytes += bytes } }
        }
        let plan = StoragePlan.judge(response, lookup, exchange, context, cache)
        // What outlives the exchange must not hold on to the flight, which holds the response.
        let context = context.detached
        var storable: StoredResponse?
        let entry: StoragePlan.Entry
        let writer: any EntryWriter
        do throws(Unstored) {
            entry = try plan.entry()
            storable = entry.stored
            writer = try await self.writer(of: entry, response, lookup, context)
        } catch {
            context.emit(.responseNotStored) { $0.detail = error.reason.description }
            cache.count(error.reason)
            if let source = response.body.source {
                response.body = ResponseBody(CountedBody(source, delivered: delivered), length: response.body.length)
            } else {
                delivered(response.body.length ?? 0)
            }
            return HopOutcome(storable: storable, notStored: error.reason)
        }
        let finish = commit(in: context)
        guard let source = response.body.source else {
            delivered(response.body.length ?? 0)
            await finish(writer)
            return HopOutcome(storable: entry.stored)
        }
        let storing = StoringBody(
            source,
            expectedLength: entry.bodyLength,
            writer: writer,
            finish: finish,
            fail: { [self] error in storeFailed(error, context) },
            delivered: delivered
        )
        response.body = ResponseBody(storing, length: response.body.length)
        return HopOutcome(storable: entry.stored, storing: storing)
    }

    /// A writer for an entry, with the bytes that are there already.
    private func writer(
        of entry: StoragePlan.Entry,
        _ response: Response,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) async throws(Unstored) -> any EntryWriter {
        let writer: any EntryWriter
        do throws(StoreError) {
            writer = try await cache.store.write(
                entry.key,
                variant: entry.variant,
                description: entry.description,
                expectedLength: entry.bodyLength,
                now: StoreInstant(context.clock.timestamp)
            )
            if let bytes = response.body.bytesInMemory, !bytes.isEmpty { try await writer.append(bytes) }
        } catch {
            storeFailed(error, context)
            throw Unstored(reason: error.code == .tooLarge ? .tooLarge : .storeFailure)
        }
        // From here on the store itself watches for invalidations.
        guard cache.invalidations.mark(of: lookup.head.target) == lookup.mark else {
            writer.abandon()
            throw Unstored(reason: .overtaken)
        }
        return writer
    }

    /// Commits a whole entry: at once, or once the caller's acceptance has taken the response.
    private func commit(in context: CallContext) -> @Sendable (any EntryWriter) async -> Void {
        { [self] writer in
            guard let verdict = context.verdict else { return await commit(writer, context) }
            await verdict.whenDecided { [self] accepted in
                if accepted {
                    await commit(writer, context)
                } else {
                    writer.abandon()
                }
            }
        }
    }

    private func commit(_ writer: any EntryWriter, _ context: CallContext) async {
        do throws(StoreError) {
            try await writer.commit(nil, now: StoreInstant(context.clock.timestamp))
            cache.count { $0.stored += 1 }
            context.emit(.responseStored)
        } catch {
            // Invalidated meanwhile: not a fault of the store, the response was merely overtaken.
            if error.code == .superseded {
                context.emit(.responseNotStored) { $0.detail = CacheReason.overtaken.description }
            } else {
                storeFailed(error, context)
            }
        }
    }
}
