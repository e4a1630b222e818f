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
    /// Answers through an exchange: one that is under way where an equal call has begun it, else a new one.
    func fly(_ need: Need, _ context: inout CallContext) async throws -> Response? {
        let lookup = need.lookup
        if mayShare(need, context) {
            let names = need.nominated + lookup.trail.nominated.sorted()
            let terms = terms(lookup, nominated: names, tags: context.options.tags)
            let boarding = FlightTable.Boarding(
                deadline: context.deadline,
                path: context.flightPath,
                landings: lookup.landings,
                trail: lookup.trail,
                leases: mayLease(need, context),
                asksValidation: lookup.asksValidation,
                newestOrder: lookup.newestOrder
            )
            guard let seat = cache.flights.seat(for: lookup.key, terms, boarding) else {
                return try await look(need.request, lookup.trail.further(), &context)
            }
            if seat.isFirst { launch(seat.flight, need, context, leases: boarding.leases) }
            switch try await ride(seat, need, &context) {
            case .answer(let response): return response
            case .look(let trail): return try await look(need.request, trail, &context)
            case .alone: break
            }
        }
        let alone = Flight(
            terms(lookup, nominated: [], tags: []),
            deadline: context.deadline,
            isBackground: false
        )
        launch(alone, need, context, leases: false)
        guard case .answer(let response) = try await ride(.opened(alone), need, &context) else {
            throw ServiceError(.other, "The exchange ended without an answer; send the call again.")
        }
        return response
    }

    private func terms(_ lookup: CacheLookup, nominated: [String], tags: Set<String>) -> FlightTerms {
        let pathMark = cache.writer.invalidations.pathMark(of: lookup.key.target)
        return FlightTerms(lookup, nominated: nominated, tags: tags, pathMark: pathMark)
    }

    private func mayShare(_ need: Need, _ context: CallContext) -> Bool {
        guard cache.options.collapsesRequests, need.lookup.mayShare else { return false }
        // What one caller refuses in an attempt is no failure to the others.
        if context.options.acceptance?.judgesAttempts ?? false { return false }
        return !cache.unshared.contains(need.lookup.key, now: context.clock.now)
    }

    /// Revalidates in the background, unless that is under way, failed a moment ago, or too much is under way.
    func refresh(_ stale: Need, _ context: CallContext) {
        let need = stale.withoutOwnValidators
        let lookup = need.lookup
        guard !cache.paused.contains(lookup.key, now: context.clock.now) else { return }
        let terms = terms(lookup, nominated: need.nominated, tags: context.options.tags)
        let limit = cache.options.maximumBackgroundRevalidations
        let leases = mayShare(need, context) && mayLease(need, context)
        var judge = context.options.acceptance?.judgeRefresh
        if let chain = context.chain, !chain.handsUpUnchanged(from: context.currentHook) { judge = nil }
        let flight = cache.flights.background(
            for: lookup.key,
            terms,
            limit: limit,
            leases: leases,
            isExclusive: judge != nil
        )
        guard let flight else { return }
        var context = context
        // The call itself has its answer: what it refuses from now on concerns the store alone.
        context.verdict = judge.map { _ in Verdict() }
        context.options.storing = nil
        context.options.acceptance = judge.map { Acceptance($0) }
        context.options.onInterimResponse = nil
        if !leases { refreshes(need, context) }
        launch(flight, need, context, leases: leases)
    }

    private func refreshes(_ need: Need, _ context: CallContext) {
        need.lookup.tally.count { $0.backgroundRevalidations += 1 }
        context.emit(.backgroundRevalidationStarted)
    }

    /// - Parameter leases: whether to ask first if another process is at it.
    private func launch(_ flight: Flight, _ need: Need, _ context: CallContext, leases: Bool) {
        var context = context
        context.flight = flight
        context.flightPath.append(ObjectIdentifier(flight))
        let request = need.prepared(in: &context, cache)
        if let status = need.standIn?.stored.head.status, status.rawValue < 400 {
            context[HoldsUsable.self] = HoldsUsable()
        }
        let begun = context
        let isRefresh = flight.isBackground
        let task = context.background.spawn { [self] in
            var begun = begun
            var takesOff = true
            if leases { takesOff = await self.takesOff(flight, need, &begun, isRefresh: isRefresh) }
            if takesOff { await run(flight, request, need, begun) }
            cache.flights.ended(flight, for: need.lookup.key)
        }
        flight.adopt(task)
    }

    /// Asks whether another process is at it; where one is, nothing is sent, and those who wait look again.
    private func takesOff(
        _ flight: Flight,
        _ need: Need,
        _ context: inout CallContext,
        isRefresh: Bool
    ) async -> Bool {
        do {
            let (clearance, wasAwaited) = try await clearance(of: flight, need, context)
            switch clearance {
            case .goAhead(let filling):
                flight.goAhead()
                context[Filling.self] = filling
                if isRefresh { refreshes(need, context) }
                return true
            case .elsewhere(let outcome):
                if isRefresh {
                    let end = context.clock.now.advanced(by: CachingHook.yieldPause)
                    cache.paused.note(need.lookup.key, until: end)
                }
                cache.flights.close(flight, for: need.lookup.key)
                flight.land(.elsewhere(Flight.Elsewhere(outcome: outcome, wasAwaited: wasAwaited)))
            }
        } catch {
            cache.flights.close(flight, for: need.lookup.key)
            flight.land(.failed(Flight.Failure(error: error, exchange: nil, attempt: 0, wasCut: false)))
        }
        return false
    }

    private func run(_ flight: Flight, _ request: URLRequest, _ need: Need, _ begun: CallContext) async {
        var context = begun
        let place = begun.currentHook
        let filling = begun[Filling.self]
        defer { if let filling { end(filling, need, begun) } }
        do {
            guard let chain = begun.chain else { throw CancellationError() }
            flight.send()
            var response = try await chain.forward(request, beneath: place, &context)
            context.currentHook = place
            let outcome = context[HopOutcome.self] ?? HopOutcome(notStored: .synthesized)
            if let filling { conclude(filling, outcome, response, need, context) }
            if flight.isExclusive { try await judge(&response, outcome, context) }
            await land(flight, response, outcome, need, context)?.pump()
        } catch {
            // In this order, or the next call would find neither.
            if flight.isBackground { pause(need.lookup, context) }
            cache.flights.close(flight, for: need.lookup.key)
            let code = (error as? ServiceError)?.code
            let failure = Flight.Failure(
                error: error,
                exchange: context.exchange,
                attempt: context.attempt,
                wasCut: context.attemptIsCut && (code == .timeout || code == .deadlineExceeded)
            )
            flight.land(.failed(failure))
        }
    }

    /// Lets what a refresh has brought be refused before it is stored.
    private func judge(_ response: inout Response, _ outcome: HopOutcome, _ context: CallContext) async throws {
        guard let acceptance = context.options.acceptance, let verdict = context.verdict else { return }
        // A 304 brings nothing that was not accepted before; a redirect is not what the caller judges.
        if outcome.held == nil, !response.status.isRedirection {
            let unjudged = response
            do {
                try await acceptance.judge(&response)
            } catch {
                await verdict.decide(false)
                unjudged.body.discard()
                throw error
            }
        }
        await verdict.decide(true)
    }

    /// Hands the response to those present: to all where it may answer all, else to the first alone.
    private func land(
        _ flight: Flight,
        _ response: Response,
        _ outcome: HopOutcome,
        _ need: Need,
        _ context: CallContext
    ) -> SharedBody? {
        let key = need.lookup.key
        var isShared = outcome.isShareable
        if isShared {
            cache.unshared.forget(key)
        } else if CachingHook.isFailure(response, outcome) {
            // One schedule of retries has failed for all who waited for it; each of them trying again would be a storm.
            isShared = true
        } else if need.lookup.mayShare {
            cache.unshared.note(key, until: context.clock.now.advanced(by: CachingHook.unsharedTime))
        }
        if !outcome.isStorable, flight.isBackground { pause(need.lookup, context) }
        var body: SharedBody?
        if isShared, outcome.held == nil, let source = response.body.source {
            body = SharedBody(
                source,
                length: response.body.length,
                storing: outcome.storing,
                allowance: cache.options.abandonedBodyAllowance,
                clock: context.clock
            )
        }
        // Only a body that is still to come, of a response that is being stored, is of use to those who come later.
        if body == nil || !outcome.isShareable { cache.flights.close(flight, for: key) }
        let answer = Flight.Answer(
            response: response,
            outcome: outcome,
            nominated: (outcome.held?.stored ?? outcome.storable)?.nominated
                ?? NominatedFields(
                    vary: response.fields,
                    request: need.lookup.head.fields,
                    secret: cache.store.secret,
                    credentialFields: context.options.credentialFields
                ),
            isShared: isShared,
            body: body,
            exchange: context.exchange,
            attempt: context.attempt,
            leader: context.callID
        )
        if flight.land(.answered(answer)) { return body }
        response.body.discard()
        return nil
    }

    /// Whether the origin failed for all who ask the same.
    static func isFailure(_ response: Response, _ outcome: HopOutcome) -> Bool {
        (response.status.isOriginError || response.status == .tooManyRequests) && outcome.isForWhoAsked
    }

    private func pause(_ lookup: CacheLookup, _ context: CallContext) {
        lookup.tally.count { $0.backgroundFailures += 1 }
        context.emit(.backgroundRevalidationFailed)
        cache.paused.note(lookup.key, until: context.clock.now.advanced(by: CachingHook.refreshPause))
    }

    /// How long a key whose response could not be shared makes its calls go out alone.
    static var unsharedTime: Duration { .seconds(60) }
    /// How long after a failed revalidation in the background the next one may begin.
    private static var refreshPause: Duration { .seconds(10) }
    /// How long after it was found that another process revalidates it is asked again whether one does.
    private static var yieldPause: Duration { .seconds(1) }
}
