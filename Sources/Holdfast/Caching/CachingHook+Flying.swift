// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Exchanges that equal calls share, and those that nobody waits for.
extension CachingHook {
    private enum Landing {
        case ended(Flight.Ending)
        case patienceOver
    }

    /// Answers through an exchange: one that is under way where an equal call has begun it, else a new one.
    func fly(_ need: Need, _ context: inout CallContext) async throws -> Response {
        let lookup = need.lookup
        let now = context.clock.now
        if cache.options.collapsesRequests, lookup.mayShare, !cache.unshared.contains(lookup.key, now: now) {
            let terms = FlightTerms(lookup, nominated: need.nominated, tags: context.options.tags)
            let seat = cache.flights.seat(for: lookup.key, terms, until: context.deadline)
            if case .opened(let flight) = seat { launch(flight, need, context) }
            if let response = try await ride(seat, need, &context) { return response }
        }
        let terms = FlightTerms(lookup, nominated: [], tags: [])
        let alone = Flight(terms, deadline: context.deadline, isBackground: false)
        launch(alone, need, context)
        guard let response = try await ride(.opened(alone), need, &context) else {
            throw ServiceError(.other, "The exchange ended without an answer; send the call again.")
        }
        return response
    }

    /// Revalidates in the background, unless that is under way, failed a moment ago, or too much is under way.
    func refresh(_ need: Need, _ context: CallContext) {
        let lookup = need.lookup
        guard !cache.paused.contains(lookup.key, now: context.clock.now) else { return }
        let terms = FlightTerms(lookup, nominated: need.nominated, tags: context.options.tags)
        let limit = cache.options.maximumBackgroundRevalidations
        guard let flight = cache.flights.background(for: lookup.key, terms, limit: limit) else { return }
        cache.count { $0.backgroundRevalidations += 1 }
        launch(flight, need, context, endsInBackground: true)
    }

    // MARK: The flight's side

    private func launch(_ flight: Flight, _ need: Need, _ context: CallContext, endsInBackground: Bool = false) {
        var context = context
        context.flight = flight
        let request = need.prepared(in: &context, cache)
        if endsInBackground {
            context.verdict = nil
            context.options.acceptance = nil
            context.options.onInterimResponse = nil
        }
        let begun = context
        let task = context.background.spawn { [self] in
            await run(flight, request, need, begun)
            if endsInBackground { cache.flights.endedInBackground() }
        }
        flight.adopt(task)
    }

    private func run(_ flight: Flight, _ request: URLRequest, _ need: Need, _ begun: CallContext) async {
        var context = begun
        let place = begun.currentHook
        let key = need.lookup.key
        do {
            guard let chain = begun.chain else { throw CancellationError() }
            let response = try await chain.forward(request, beneath: place, &context)
            context.currentHook = place
            let outcome = context[HopOutcome.self] ?? HopOutcome(notStored: .synthesized)
            if response.status.isOriginError, flight.isBackground { pause(key, context) }
            let body = await land(flight, response, outcome, need, context)
            await body?.pump()
        } catch {
            cache.flights.close(flight, for: key)
            if flight.isBackground { pause(key, context) }
            let wasSent = context.exchange != nil
            flight.land(isShared: true) { _, _, _ in .failed(error, wasSent: wasSent) }
        }
        cache.flights.close(flight, for: key)
    }

    /// Hands the response to those present: to all where it may answer all, else to the first alone.
    private func land(
        _ flight: Flight,
        _ response: Response,
        _ outcome: HopOutcome,
        _ need: Need,
        _ context: CallContext
    ) async -> SharedBody? {
        var response = response
        let key = need.lookup.key
        var isShared = outcome.isShareable
        if isShared {
            cache.unshared.forget(key)
        } else if response.status.isOriginError || response.status == .tooManyRequests {
            // One schedule of retries has failed for all who waited for it; each of them trying again would be a storm.
            isShared = await gather(&response)
        } else if need.lookup.mayShare {
            cache.unshared.note(key, until: context.clock.now.advanced(by: CachingHook.unsharedTime))
        }
        let isStream = response.body.source != nil && outcome.held == nil
        if !(isShared && isStream) { cache.flights.close(flight, for: key) }
        var body: SharedBody?
        let landed = response
        flight.land(isShared: isShared) { readers, firstIsPresent, isBackground in
            if isShared, isStream, let source = landed.body.source, readers > 0 || isBackground {
                body = SharedBody(
                    source,
                    length: landed.body.length,
                    storing: outcome.storing,
                    readers: readers,
                    goesOn: isBackground,
                    allowance: cache.options.abandonedBodyAllowance,
                    clock: context.clock
                )
            } else if isShared ? readers == 0 : !firstIsPresent {
                landed.body.discard()
            }
            return .answered(
                Flight.Answer(
                    response: landed,
                    outcome: outcome,
                    body: body,
                    exchange: context.exchange,
                    attempt: context.attempt
                )
            )
        }
        return body
    }

    /// Reads the body of a failure into memory; whether it could be had whole.
    private func gather(_ response: inout Response) async -> Bool {
        guard response.body.source != nil else { return true }
        guard let length = response.body.length, length <= CachingHook.longestSharedFailure else { return false }
        do {
            response.body = ResponseBody(try await response.body.collect(upTo: CachingHook.longestSharedFailure))
        } catch {
            response.body = ResponseBody()
        }
        return true
    }

    private func pause(_ key: CacheKey, _ context: CallContext) {
        cache.count { $0.backgroundFailures += 1 }
        cache.paused.note(key, until: context.clock.now.advanced(by: CachingHook.refreshPause))
    }

    /// How long a key whose response could not be shared makes its calls go out alone.
    private static var unsharedTime: Duration { .seconds(60) }
    /// How long after a failed revalidation in the background the next one may begin.
    private static var refreshPause: Duration { .seconds(10) }
    private static var longestSharedFailure: Int { 64 << 10 }

    // MARK: The reader's side

    /// Waits in a flight and makes this call's response of what comes; nil: the call must send for itself.
    private func ride(_ seat: FlightTable.Seat, _ need: Need, _ context: inout CallContext) async throws -> Response? {
        let flight = seat.flight
        let isFirst = if case .opened = seat { true } else { false }
        let landing: Landing
        do {
            landing = try await self.landing(of: flight, need, context)
        } catch {
            flight.leave(isFirst: isFirst)
            if !error.isCancellation, let stale = await standIn(need, .disconnected, context) { return stale }
            countMiss(need, context)
            throw error
        }
        switch landing {
        case .patienceOver:
            flight.leave(isFirst: isFirst, staysUp: true)
            if let stale = await standIn(need, .patience, context) { return stale }
            return nil
        case .ended(.failed(let error, let wasSent)):
            if !isFirst, needsMoreTime(after: error, flight, context) { return nil }
            if error.isCancellation { throw error }
            let failure = ServiceError.attemptFailure(of: error)
            if wasSent, failure.isDisconnection, let stale = await standIn(need, .disconnected, context) {
                return stale
            }
            countMiss(need, context)
            throw error
        case .ended(.answered(let answer)):
            if isFirst { (context.exchange, context.attempt) = (answer.exchange, answer.attempt) }
            guard isFirst || flight.isShared && fits(answer, need) else {
                answer.body?.releaseSeat()
                return nil
            }
            if answer.response.status.isOriginError, let stale = await standIn(need, .staleIfError, context) {
                answer.body?.releaseSeat()
                if isFirst, answer.body == nil { answer.response.body.discard() }
                return stale
            }
            return isFirst ? first(answer, need, context) : collapsed(answer, need, context)
        }
    }

    private func landing(of flight: Flight, _ need: Need, _ context: CallContext) async throws -> Landing {
        let clock = context.clock
        let patience = patience(need, context).map { clock.now.advanced(by: $0) }
        while true {
            if let patience {
                if clock.now >= patience { return .patienceOver }
                if let rest = flight.restsUntil, rest > patience { return .patienceOver }
            }
            // The flight itself keeps the latest deadline of all; a reader with an earlier one looks at the clock.
            var end = patience
            if let own = context.deadline, flight.deadline.map({ $0 > own }) ?? true {
                if clock.now >= own { throw CachingHook.deadlineExceeded }
                end = end.map { min($0, own) } ?? own
            }
            let turn: Flight.Turn
            if let end {
                do {
                    turn = try await withDeadline(end, on: clock, discard: { _ in }) { await flight.wait() }
                } catch {
                    if error.isCancellation { throw error }
                    continue
                }
            } else {
                turn = await flight.wait()
            }
            switch turn {
            case .landed(let ending): return .ended(ending)
            case .again: continue
            case .cancelled: throw CancellationError()
            }
        }
    }

    /// How long the call waits for the origin while something stale is at hand; nil: as long as it takes.
    private func patience(_ need: Need, _ context: CallContext) -> Duration? {
        guard need.standIn != nil, need.staleAllowance.whenDisconnected else { return nil }
        return need.lookup.directive.staleAfter ?? cache.options.staleAfter
    }

    /// Whether the exchange ended with a time limit that is not this call's.
    private func needsMoreTime(after error: any Error, _ flight: Flight, _ context: CallContext) -> Bool {
        guard let code = (error as? ServiceError)?.code, code == .timeout || code == .deadlineExceeded else {
            return error.isCancellation
        }
        return context.deadline.map { context.clock.now < $0 } ?? (flight.deadline != nil)
    }

    /// Whether a shared answer is this call's variant too (RFC 9111 §4.1).
    private func fits(_ answer: Flight.Answer, _ need: Need) -> Bool {
        guard let nominated = answer.outcome.held?.stored.nominated ?? answer.outcome.nominated else { return true }
        return nominated.matches(need.lookup.head.fields, secret: cache.store.secret)
    }

    private func first(_ answer: Flight.Answer, _ need: Need, _ context: CallContext) -> Response {
        var response = answer.response
        if let body = answer.body { response.body = ResponseBody(body.reader { _ in }, length: body.length) }
        let decision: CacheDecision
        if let held = answer.outcome.held {
            decision = self.decision(.revalidated, need.reason, held, context)
            cache.count(decision) { $0.revalidated += 1 }
        } else {
            decision = CacheDecision(.miss, need.reason, storage: answer.outcome.storage)
            cache.count(decision) { $0.misses += 1 }
        }
        response.cacheDecision = decision
        explain(decision, context)
        return response
    }

    private func collapsed(_ answer: Flight.Answer, _ need: Need, _ context: CallContext) -> Response {
        let delivered: @Sendable (Int) -> Void = { [cache] bytes in cache.count { $0.collapsedBytes += bytes } }
        var response: Response
        let decision: CacheDecision
        if let held = answer.outcome.held {
            response = self.answer(
                held,
                to: need.lookup,
                need.request,
                source: .collapsed,
                context,
                delivered: delivered
            )
            decision = self.decision(.collapsed, need.reason, held, context)
        } else {
            response = answer.response
            response.source = .collapsed
            response.removeStored = nil
            if let body = answer.body {
                response.body = ResponseBody(body.reader(delivered: delivered), length: body.length)
            } else {
                delivered(response.body.length ?? 0)
            }
            decision = CacheDecision(.collapsed, need.reason, storage: answer.outcome.storage)
        }
        cache.count(decision) { $0.collapsed += 1 }
        response.url = need.request.url
        response.cacheDecision = decision
        explain(decision, context)
        return response
    }

    /// Serves what is stale, where that is allowed for this reason.
    private func standIn(_ need: Need, _ reason: CacheReason, _ context: CallContext) async -> Response? {
        let isAllowed = reason == .staleIfError ? need.staleAllowance.onError : need.staleAllowance.whenDisconnected
        guard isAllowed, let candidate = need.standIn else { return nil }
        var held = need.heldStandIn
        if held == nil { held = await hold(candidate, context) }
        guard let held else { return nil }
        cache.count { $0.errorHits += 1 }
        var response = answer(held, to: need.lookup, need.request, source: .stale, context) { [cache] bytes in
            cache.count { $0.hitBytes += bytes }
        }
        let decision = decision(.hit, reason, held, context)
        cache.count(decision) { _ in }
        response.cacheDecision = decision
        explain(decision, context)
        return response
    }

    private func countMiss(_ need: Need, _ context: CallContext) {
        let decision = CacheDecision(.miss, need.reason)
        cache.count(decision) { $0.misses += 1 }
        explain(decision, context)
    }

    private static var deadlineExceeded: ServiceError {
        ServiceError(
            .deadlineExceeded,
            "The time for this call was over before a response came; allow more time, or find out what took it.",
            progress: .bodySent
        )
    }
}
