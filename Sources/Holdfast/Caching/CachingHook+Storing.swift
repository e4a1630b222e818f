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
    /// Answers with the stored response that a 304 selects, freshened (RFC 9111 §4.3.3, §4.3.4).
    func useOffered(
        _ offered: [HeldResponse],
        for response: inout Response,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) async {
        let now = context.clock.timestamp
        let index = Validation.selected(by: response.head, among: offered.map(\.stored))
        var held = offered[index ?? 0]
        if index != nil {
            held.stored = held.stored.freshened(
                by: response.head,
                requestTime: response.requestTime ?? now,
                responseTime: response.responseTime ?? now
            )
            await replaceDescription(of: held, context)
        }
        cache.count { $0.revalidated += 1 }
        response.body.discard()
        var answer = held.response(to: lookup, source: .revalidated, now: now) { [cache] bytes in
            cache.count { $0.revalidatedBytes += bytes }
        }
        answer.url = response.url
        answer.requestTime = response.requestTime
        answer.responseTime = response.responseTime
        answer.attempts = response.attempts
        response = answer
    }

    /// Stores a response while its body passes through, where the rules allow it.
    func store(_ response: inout Response, _ lookup: CacheLookup, _ context: CallContext) async {
        guard let exchange = context.exchange, response.source != .synthesized else { return }
        let wasLookedUp = lookup.bypassReason == nil
        let delivered: @Sendable (Int) -> Void = { [cache] bytes in
            if wasLookedUp { cache.count { $0.networkBytes += bytes } }
        }
        let plan = StoragePlan(response, lookup, exchange, context, cache)
        guard let entry = plan.entry else {
            context.emit(.responseNotStored) { $0.detail = plan.reason }
            if let source = response.body.source {
                response.body = ResponseBody(CountedBody(source, delivered: delivered), length: response.body.length)
            } else {
                delivered(response.body.length ?? 0)
            }
            return
        }

        let now = StoreInstant(context.clock.timestamp)
        let writer: any EntryWriter
        do throws(StoreError) {
            writer = try await cache.store.write(
                entry.key,
                variant: entry.variant,
                description: entry.description,
                expectedLength: response.body.length,
                now: now
            )
            if let bytes = response.body.bytesInMemory, !bytes.isEmpty { try await writer.append(bytes) }
        } catch {
            storeFailed(error, context)
            return
        }
        let finish = commit(in: context)
        if let source = response.body.source {
            let storing = StoringBody(
                source,
                expectedLength: response.body.length,
                writer: writer,
                finish: finish,
                fail: { [self] error in storeFailed(error, context) },
                delivered: delivered
            )
            response.body = ResponseBody(storing, length: response.body.length)
        } else {
            delivered(response.body.length ?? 0)
            await finish(writer)
        }
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
                context.emit(.responseNotStored) { $0.detail = "invalidated meanwhile" }
            } else {
                storeFailed(error, context)
            }
        }
    }
}
