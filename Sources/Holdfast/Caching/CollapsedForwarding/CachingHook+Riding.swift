// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// How a call waits in a flight, and what it makes of the ending.
extension CachingHook {
    /// What came of a ride.
    enum Ride {
        case answer(Response)
        /// The response is none for this call, but another look or another flight may have one.
        case look(LookTrail)
        /// The response is for the first alone: the call must send for itself.
        case alone
    }

    private enum Landing {
        case ended(Flight.Ending)
        case patienceOver(HeldResponse)
    }

    /// What may stand in once the call has waited long enough.
    private struct Patience {
        let end: MonotonicInstant
        let held: HeldResponse
    }

    /// Waits in a flight and makes this call's response of what comes.
    func ride(_ seat: FlightTable.Seat, _ need: Need, _ context: inout CallContext) async throws -> Ride {
        let flight = seat.flight
        let landing: Landing
        do {
            landing = try await self.landing(of: flight, await patience(need, context), context)
        } catch {
            leave(seat, need)
            if let answer = await answer(after: error, wasSent: true, need, context) { return .answer(answer) }
            countMiss(need, context)
            throw error
        }
        switch landing {
        case .patienceOver(let held):
            if cache.flights.keepUp(flight, limit: cache.options.maximumBackgroundRevalidations) {
                need.lookup.tally.count { $0.backgroundRevalidations += 1 }
                context.emit(.backgroundRevalidationStarted)
            }
            leave(seat, need)
            return .answer(answerHit(held, to: need.lookup, need.request, .patience, .error, context))
        case .ended(.failed(let failure)):
            if seat.isFirst {
                (context.exchange, context.attempt) = (failure.exchange, failure.attempt)
            } else if isNotOurs(failure, context) {
                return retry(need)
            }
            if failure.error.isCancellation {
                countMiss(need, context)
                throw failure.error
            }
            let wasSent = failure.exchange != nil
            if let answer = await answer(after: failure.error, wasSent: wasSent, need, context) {
                return .answer(answer)
            }
            countMiss(need, context)
            let isOverdue = context.deadline.map { context.clock.now >= $0 } ?? false
            throw failure.wasCut && isOverdue ? CachingHook.deadlineExceeded(cause: failure.error) : failure.error
        case .ended(.answered(let answer)):
            return await use(answer, seat, need, &context)
        case .ended(.elsewhere(let elsewhere)):
            return .look(need.lookup.trail.beyond(elsewhere))
        }
    }

    private func use(
        _ answer: Flight.Answer,
        _ seat: FlightTable.Seat,
        _ need: Need,
        _ context: inout CallContext
    ) async -> Ride {
        if seat.isFirst {
            (context.exchange, context.attempt) = (answer.exchange, answer.attempt)
        } else {
            guard answer.isShared else { return .alone }
            let fits = answer.nominated?.matches(need.lookup.head.fields, secret: cache.store.secret) ?? true
            if !fits || seat.isLate && !isReusable(answer, need, context) {
                answer.body?.releaseSeat()
                return retry(need, nominated: fits ? [] : answer.nominated?.names ?? [], refusesLanded: true)
            }
        }
        if let stale = await standIn(for: answer.response, need, context) {
            answer.body?.releaseSeat()
            if seat.isFirst, answer.body == nil { answer.response.body.discard() }
            return .answer(stale)
        }
        return .answer(seat.isFirst ? first(answer, need, context) : collapsed(answer, need, context))
    }

    private func retry(_ need: Need, nominated: [String] = [], refusesLanded: Bool = false) -> Ride {
        let trail = need.lookup.trail
        return trail.goesOn ? .look(trail.further(nominated: nominated, refusesLanded: refusesLanded)) : .alone
    }

    private func leave(_ seat: FlightTable.Seat, _ need: Need) {
        if seat.flight.leave(isFirst: seat.isFirst) { cache.flights.close(seat.flight, for: need.lookup.key) }
    }

    /// Whether a response that was there before the call came can answer it without asking again, as a stored one could.
    private func isReusable(_ answer: Flight.Answer, _ need: Need, _ context: CallContext) -> Bool {
        guard let stored = answer.outcome.held?.stored ?? answer.outcome.storable else { return false }
        return if case .reuse = decision(on: stored, need.lookup, context) { true } else { false }
    }

    /// What a call like this one would make of a stored response.
    func decision(on stored: StoredResponse, _ lookup: CacheLookup, _ context: CallContext) -> ReuseDecision {
        ReuseDecision.decide(
            request: lookup.head,
            candidates: [stored],
            directive: lookup.directive,
            now: context.clock.timestamp,
            options: cache.options,
            secret: cache.store.secret
        )
    }

    private func landing(of flight: Flight, _ patience: Patience?, _ context: CallContext) async throws -> Landing {
        let clock = context.clock
        while true {
            let prospects = flight.prospects
            var heeds: Flight.Heed = []
            if let patience {
                if clock.now >= patience.end { return .patienceOver(patience.held) }
                if let rest = prospects.restsUntil, rest > patience.end { return .patienceOver(patience.held) }
                heeds.insert(.rests)
            }
            // The flight itself keeps the latest deadline of all; a reader with an earlier one looks at the clock.
            var end = patience?.end
            if let own = context.deadline {
                if prospects.deadline.map({ $0 > own }) ?? true {
                    if clock.now >= own { throw CachingHook.deadlineExceeded() }
                    end = end.map { min($0, own) } ?? own
                } else {
                    heeds.insert(.deadline)
                }
            }
            let turn: Flight.Turn
            if let end {
                do {
                    turn = try await withDeadline(end, on: clock, discard: { _ in }) { [heeds] in
                        await flight.wait(heeding: heeds, since: prospects)
                    }
                } catch {
                    if error.isCancellation { throw error }
                    continue
                }
            } else {
                turn = await flight.wait(heeding: heeds, since: prospects)
            }
            switch turn {
            case .landed(let ending): return .ended(ending)
            case .again: continue
            case .cancelled: throw CancellationError()
            }
        }
    }

    /// How long the call waits for the origin while something stale is at hand; nil: as long as it takes.
    private func patience(_ need: Need, _ context: CallContext) async -> Patience? {
        guard let length = patience(need) else { return nil }
        let end = context.clock.now.advanced(by: length)
        return await held(need, .patience, context).map { Patience(end: end, held: $0) }
    }

    /// Whether the exchange failed for a reason that is not this call's: another one's time was over, or something beneath was
    /// cancelled.
    private func isNotOurs(_ failure: Flight.Failure, _ context: CallContext) -> Bool {
        guard failure.wasCut else { return failure.error.isCancellation }
        return context.deadline.map { context.clock.now < $0 } ?? true
    }

    private func first(_ answer: Flight.Answer, _ need: Need, _ context: CallContext) -> Response {
        var response = answer.response
        if let body = answer.body { response.body = ResponseBody(body.reader { _ in }, length: body.length) }
        let decision: CacheDecision
        if let held = answer.outcome.held {
            decision = self.decision(.revalidated, need.reason, held, context, storage: answer.outcome.storage)
            need.lookup.tally.count(decision) { $0.revalidated += 1 }
        } else {
            decision = CacheDecision(.miss, need.reason, storage: answer.outcome.storage)
            need.lookup.tally.count(decision) { $0.misses += 1 }
        }
        response.cacheDecision = decision
        record(answer.outcome, &response)
        explain(decision, context)
        return response
    }

    private func collapsed(_ answer: Flight.Answer, _ need: Need, _ context: CallContext) -> Response {
        let delivered: @Sendable (Int) -> Void = { [tally = need.lookup.tally] in tally.count($0, .collapsed) }
        var response: Response
        let decision: CacheDecision
        if let held = answer.outcome.held {
            response = self.answer(
                held,
                to: need.lookup,
                need.request,
                source: .collapsed,
                context,
                counted: .collapsed
            )
            decision = self.decision(.collapsed, need.reason, held, context)
        } else {
            response = answer.response
            response.source = .collapsed
            response.storedOrigin = nil
            // As from the store: what may not be stored is for the client that it was sent to (RFC 9111 §5.2.2.7).
            if let stored = answer.outcome.storable {
                response.fields.removeAll { $0.name != .age && !stored.head.fields.contains($0.name) }
            }
            response.fields = cache.options.ignored.withoutSetCookies(response.fields)
            if answer.outcome.storable == nil, isForItsClientAlone(answer) {
                // That the origin failed is told to all, so that they do not all try again; how, to the client that asked.
                response.fields.removeAll { ![.retryAfter, .date, .age].contains($0.name) }
                response.body = ResponseBody()
            } else if let body = answer.body {
                response.body = ResponseBody(body.reader(delivered: delivered), length: body.length)
            } else {
                delivered(response.body.length ?? 0)
            }
            decision = CacheDecision(.collapsed, need.reason, storage: answer.outcome.storage)
        }
        need.lookup.tally.count(decision) { $0.collapsed += 1 }
        record(answer.outcome, &response)
        response.url = need.request.url
        response.cacheDecision = decision
        explain(decision, context, leader: answer.leader)
        return response
    }

    /// Whether what came with a failure is no other client's (RFC 9111 §3, §4.1, §5.2.2.5, §5.2.2.7); in private mode all are one client's.
    private func isForItsClientAlone(_ answer: Flight.Answer) -> Bool {
        let control = CacheControl(answer.response.fields)
        if control.noStore || answer.nominated == nil { return true }
        guard cache.options.mode == .shared else { return false }
        return control.private != .absent || answer.response.fields.contains(.setCookie)
    }

    private func countMiss(_ need: Need, _ context: CallContext) {
        let decision = CacheDecision(.miss, need.reason)
        need.lookup.tally.count(decision) { $0.misses += 1 }
        explain(decision, context)
    }

    private static func deadlineExceeded(cause: (any Error)? = nil) -> any Error {
        if let cause = cause as? ServiceError, cause.code == .deadlineExceeded { return cause }
        var error = ServiceError(
            .deadlineExceeded,
            "The time for this call was over before a response came; allow more time, or find out what took it.",
            cause: cause,
            progress: .bodySent
        )
        error.attempts = (cause as? ServiceError)?.attempts ?? []
        return error
    }
}
