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
    /// The result of asking the origin.
    enum FetchResult {
        case answer(Response)
        /// No answer for this call, but what is stored now, or another exchange, may have one.
        case lookAgain(LookupHistory)
    }

    /// Answers through an exchange: the current one of an equal call, or a new one.
    func result(of fetchRequest: FetchRequest, context: inout CallContext) async throws -> FetchResult {
        let lookup = fetchRequest.lookup
        if mayShare(fetchRequest, context: context) {
            let names = fetchRequest.nominated + lookup.history.nominated.sorted()
            let terms = terms(lookup, nominated: names, tags: context.options.tags)
            let leases = mayLease(fetchRequest, context: context)
            guard let membership = cache.fetches.membership(for: lookup, terms: terms, leases: leases, context: context)
            else { return .lookAgain(lookup.history.further()) }
            if membership.isFirst {
                start(membership.fetch, fetchRequest: fetchRequest, context: context, leases: leases)
            }
            if let result = try await result(in: membership, fetchRequest: fetchRequest, context: &context) {
                return result
            }
        }
        let alone = Fetch(
            terms(lookup, nominated: [], tags: []),
            deadline: context.deadline,
            isBackground: false
        )
        start(alone, fetchRequest: fetchRequest, context: context, leases: false)
        guard let result = try await result(in: .opened(alone), fetchRequest: fetchRequest, context: &context) else {
            throw ServiceError(.other, "The exchange ended without a response. Send the request again.")
        }
        return result
    }

    private func terms(_ lookup: CacheLookup, nominated: [String], tags: Set<String>) -> FetchTerms {
        let pathMark = cache.writer.invalidations.pathMark(of: lookup.key.target)
        return FetchTerms(lookup, nominated: nominated, tags: tags, pathMark: pathMark)
    }

    private func mayShare(_ fetchRequest: FetchRequest, context: CallContext) -> Bool {
        guard cache.options.collapsesRequests, fetchRequest.lookup.mayShare else { return false }
        // What one caller rejects in an attempt is not a failure for the others.
        if context.options.acceptance?.checksAttempts ?? false { return false }
        return !cache.unshared.contains(fetchRequest.lookup.key, now: context.clock.now)
    }

    /// Revalidates in the background, unless that is already happening, failed a moment ago, or there are too many revalidations.
    func refresh(_ stale: FetchRequest, context: CallContext) {
        let fetchRequest = stale.forRefresh
        let lookup = fetchRequest.lookup
        guard !cache.paused.contains(lookup.key, now: context.clock.now) else { return }
        let terms = terms(lookup, nominated: fetchRequest.nominated, tags: context.options.tags)
        let limit = cache.options.maximumBackgroundRevalidations
        let leases = mayShare(fetchRequest, context: context) && mayLease(fetchRequest, context: context)
        let checks = refreshCheck(context) != nil
        let fetch = cache.fetches.background(
            for: lookup.key,
            terms,
            limit: limit,
            leases: leases,
            isExclusive: checks
        )
        guard let fetch else { return }
        var context = context
        // The call itself has its answer: what it rejects from now on only affects the store.
        context.verdict = checks ? Verdict() : nil
        context.options.storing = nil
        if checks { context.options.acceptance?.checksAttempts = false } else { context.options.acceptance = nil }
        context.options.onInterimResponse = nil
        if !leases { countRefresh(fetchRequest, context: context) }
        start(fetch, fetchRequest: fetchRequest, context: context, leases: leases)
    }

    private func countRefresh(_ fetchRequest: FetchRequest, context: CallContext) {
        fetchRequest.lookup.metrics.count { $0.backgroundRevalidations += 1 }
        context.emit(.backgroundRevalidationStarted)
    }

    /// - Parameter leases: whether to ask first if another process is fetching the same.
    private func start(_ fetch: Fetch, fetchRequest: FetchRequest, context: CallContext, leases: Bool) {
        var context = context
        context.fetch = fetch
        context.fetchPath.append(ObjectIdentifier(fetch))
        let request = fetchRequest.begin(in: &context, for: cache)
        let isRefresh = fetch.isBackground
        // What the caller thinks of something stale says nothing about the response to come: that has its own verdict.
        let callers = isRefresh ? nil : context.verdict
        let own = callers == nil ? context.verdict : Verdict()
        context.verdict = own
        let begun = context
        let task = context.background.spawn { [self] in
            var begun = begun
            await callers?.whenDecided { accepted in
                if !fetch.firstHasStale { await own?.decide(accepted && !fetch.firstIsAnsweredStale) }
            }
            var mayStart = true
            if leases {
                mayStart = await self.mayStart(fetch, fetchRequest: fetchRequest, context: &begun, isRefresh: isRefresh)
            }
            if mayStart { await run(fetch, request: request, fetchRequest: fetchRequest, begun: begun) }
            cache.fetches.ended(fetch, for: fetchRequest.lookup.key)
        }
        fetch.adopt(task)
    }

    /// Asks whether another process is fetching the same; if so, nothing is sent, and waiting calls look again.
    private func mayStart(
        _ fetch: Fetch,
        fetchRequest: FetchRequest,
        context: inout CallContext,
        isRefresh: Bool
    ) async -> Bool {
        do {
            let (leaseDecision, wasAwaited) = try await leaseDecision(
                of: fetch,
                fetchRequest: fetchRequest,
                context: context
            )
            switch leaseDecision {
            case .goAhead(let fillLease):
                fetch.goAhead()
                context.transaction?.fillLease = fillLease
                if isRefresh { countRefresh(fetchRequest, context: context) }
                return true
            case .elsewhere(let outcome):
                if isRefresh {
                    let end = context.clock.now.advanced(by: CachingHook.yieldPause)
                    cache.paused.note(fetchRequest.lookup.key, until: end)
                }
                cache.fetches.close(fetch, for: fetchRequest.lookup.key)
                fetch.finish(.elsewhere(Fetch.Elsewhere(outcome: outcome, wasAwaited: wasAwaited)))
            }
        } catch {
            cache.fetches.close(fetch, for: fetchRequest.lookup.key)
            fetch.finish(.failed(Fetch.Failure(error: error, exchange: nil, attempt: 0, wasCut: false)))
        }
        return false
    }

    private func run(_ fetch: Fetch, request: URLRequest, fetchRequest: FetchRequest, begun: CallContext) async {
        var context = begun
        let place = begun.currentHook
        let fillLease = begun.transaction?.fillLease
        defer { if let fillLease { end(fillLease, fetchRequest: fetchRequest, context: begun) } }
        do {
            guard let chain = begun.chain else { throw CancellationError() }
            fetch.send()
            var response = try await chain.forward(request, below: place, context: &context)
            context.currentHook = place
            fetch.arrive()
            let outcome = context.transaction?.outcome ?? ResponseOutcome(notStored: .synthesized)
            if let fillLease {
                conclude(fillLease, outcome: outcome, response: response, fetchRequest: fetchRequest, context: context)
            }
            if fetch.isExclusive || fetch.firstHasStale { try await check(&response, outcome: outcome, context: begun) }
            await finish(fetch, response: response, outcome: outcome, fetchRequest: fetchRequest, context: context)?
                .pump()
        } catch {
            // In this order, or the next call would find neither.
            if fetch.isBackground { pause(fetchRequest.lookup, context: context) }
            cache.fetches.close(fetch, for: fetchRequest.lookup.key)
            let code = (error as? ServiceError)?.code
            let failure = Fetch.Failure(
                error: error,
                exchange: context.exchange,
                attempt: context.attempt,
                wasCut: context.attemptIsCut && (code == .timeout || code == .deadlineExceeded)
            )
            fetch.finish(.failed(failure))
        }
    }

    /// What the call's acceptance lets replace a stored response that answered the call; nil: anything.
    private func refreshCheck(_ context: CallContext) -> (@Sendable (inout Response) async throws -> Void)? {
        if let chain = context.chain, !chain.passesUnchanged(from: context.currentHook) { return nil }
        return context.options.acceptance?.checkRefresh
    }

    /// Lets the response of an exchange whose caller has a stored one be rejected before it is stored.
    private func check(_ response: inout Response, outcome: ResponseOutcome, context: CallContext) async throws {
        guard let verdict = context.verdict else { return }
        // A 304 brings nothing that was not accepted before; the caller's acceptance does not apply to redirects.
        if outcome.loaded == nil, !response.status.isRedirection, let check = refreshCheck(context) {
            let unchecked = response
            do {
                try await check(&response)
            } catch {
                await verdict.decide(false)
                unchecked.body.discard()
                // Calls that have joined look again: another call's refusal is no failure for them.
                throw CancellationError()
            }
        }
        await verdict.decide(true)
    }

    /// Passes the response to the waiting calls: to all if it may answer all, else only to the first.
    private func finish(
        _ fetch: Fetch,
        response: Response,
        outcome: ResponseOutcome,
        fetchRequest: FetchRequest,
        context: CallContext
    ) async -> SharedBody? {
        let key = fetchRequest.lookup.key
        var isShared = outcome.isShareable
        if isShared {
            cache.unshared.forget(key)
        } else if CachingHook.isFailure(response, outcome: outcome) {
            // One series of retries has failed for all waiting calls; if each tried again, there would be a storm.
            isShared = true
        } else if fetchRequest.lookup.mayShare {
            cache.unshared.note(key, until: context.clock.now.advanced(by: CachingHook.unsharedTime))
        }
        if !outcome.isStorable, fetch.isBackground { pause(fetchRequest.lookup, context: context) }
        var body: SharedBody?
        if isShared, outcome.loaded == nil, let source = response.body.source {
            body = SharedBody(
                source,
                length: response.body.length,
                storing: outcome.storing,
                allowance: cache.options.abandonedBodyAllowance,
                clock: context.clock
            )
        }
        // Later calls can use a body that is still arriving if the response is being stored, and a response that will be stored
        // once its first caller has accepted it.
        let awaitsVerdict = context.verdict != nil && body == nil && outcome.notStored == nil && outcome.loaded == nil
        if !outcome.isShareable || body == nil && !awaitsVerdict { cache.fetches.close(fetch, for: key) }
        if awaitsVerdict { fetch.stayOpen() }
        // Before the caller that decides has the response, or what it refuses could answer its next call; and after the commit of
        // content that is complete, which also waits for the verdict and was registered first.
        await context.verdict?.whenDecided { [cache] isAccepted in
            if awaitsVerdict || !isAccepted { cache.fetches.close(fetch, for: key) }
        }
        let answer = Fetch.Answer(
            response: response,
            outcome: outcome,
            nominated: (outcome.loaded?.stored ?? outcome.storable)?.nominated
                ?? NominatedFields(
                    vary: response.fields,
                    request: fetchRequest.lookup.head.fields,
                    secret: cache.store.secret,
                    credentialFields: context.options.credentialFields
                ),
            isShared: isShared,
            body: body,
            exchange: context.exchange,
            attempt: context.attempt,
            leader: context.callID
        )
        if fetch.finish(.answered(answer)) { return body }
        response.body.discard()
        return nil
    }

    /// Whether the origin failed for everyone with the same request; it has not if its 304 confirms a stored error.
    static func isFailure(_ response: Response, outcome: ResponseOutcome) -> Bool {
        (response.status.isOriginError || response.status == .tooManyRequests) && outcome.loaded == nil
            && outcome.isForWhoAsked
    }

    private func pause(_ lookup: CacheLookup, context: CallContext) {
        lookup.metrics.count { $0.backgroundFailures += 1 }
        context.emit(.backgroundRevalidationFailed)
        cache.paused.note(lookup.key, until: context.clock.now.advanced(by: CachingHook.refreshPause))
    }

    /// For how long calls with a key whose response could not be shared are sent separately.
    static var unsharedTime: Duration { .seconds(60) }
    /// How long after a failed background revalidation the next one may begin.
    private static var refreshPause: Duration { .seconds(10) }
    /// How long after finding that another process revalidates it asks again.
    private static var yieldPause: Duration { .seconds(1) }
}

/// How a call waits in a fetch, and how it uses the result.
extension CachingHook {
    private enum FetchWait {
        case ended(Fetch.Ending)
        case patienceOver(LoadedResponse)
    }

    /// What may be served stale once the call has waited long enough.
    private struct Patience {
        let end: MonotonicInstant
        let loaded: LoadedResponse
    }

    /// Waits for a fetch and makes this call's response of its result; nil if the response is only for the first caller, so that
    /// this call must send its own request.
    private func result(
        in membership: FetchCoalescer.Membership,
        fetchRequest: FetchRequest,
        context: inout CallContext
    ) async throws -> FetchResult? {
        let fetch = membership.fetch
        let fetchWait: FetchWait
        do {
            fetchWait = try await self.fetchWait(
                of: fetch,
                isFirst: membership.isFirst,
                patience: await patience(fetchRequest, context: context),
                fetchRequest: fetchRequest,
                context: context
            )
        } catch {
            leave(membership, fetchRequest: fetchRequest)
            if let answer = await answer(after: error, wasSent: true, fetchRequest: fetchRequest, context: context) {
                // If the response has arrived already, the call's verdict is about something else.
                if membership.isFirst, !fetch.leavesFirstStale() { fetch.answersFirstStale() }
                return .answer(answer)
            }
            countMiss(fetchRequest, context: context)
            throw error
        }
        switch fetchWait {
        case .patienceOver(let loaded):
            if cache.fetches.keepRunning(fetch, limit: cache.options.maximumBackgroundRevalidations) {
                fetchRequest.lookup.metrics.count { $0.backgroundRevalidations += 1 }
                context.emit(.backgroundRevalidationStarted)
            }
            leave(membership, fetchRequest: fetchRequest)
            return .answer(answerStale(loaded, to: fetchRequest, reason: .patience, context: context))
        case .ended(.failed(let failure)):
            if membership.isFirst {
                (context.exchange, context.attempt) = (failure.exchange, failure.attempt)
            } else if isNotOurs(failure, context: context) {
                return retry(fetchRequest)
            }
            if failure.error.isCancellation {
                countMiss(fetchRequest, context: context)
                throw failure.error
            }
            let wasSent = failure.exchange != nil
            if let answer = await answer(
                after: failure.error,
                wasSent: wasSent,
                fetchRequest: fetchRequest,
                context: context
            ) {
                return .answer(answer)
            }
            countMiss(fetchRequest, context: context)
            let isOverdue = context.deadline.map { context.clock.now >= $0 } ?? false
            guard failure.wasCut, isOverdue else { throw failure.error }
            throw CachingHook.deadlineExceeded(cause: failure.error, isFirst: membership.isFirst, context)
        case .ended(.answered(let answer)):
            return await use(answer, membership: membership, fetchRequest: fetchRequest, context: &context)
        case .ended(.elsewhere(let elsewhere)):
            return .lookAgain(fetchRequest.lookup.history.beyond(elsewhere))
        }
    }

    private func use(
        _ answer: Fetch.Answer,
        membership: FetchCoalescer.Membership,
        fetchRequest: FetchRequest,
        context: inout CallContext
    ) async -> FetchResult? {
        if membership.isFirst {
            (context.exchange, context.attempt) = (answer.exchange, answer.attempt)
        } else {
            guard answer.isShared else { return nil }
            let fits = answer.nominated?.matches(fetchRequest.lookup.head.fields, secret: cache.store.secret) ?? true
            if !fits || membership.isLate && !isReusable(answer, fetchRequest: fetchRequest, context: context) {
                answer.body?.releaseReader()
                return retry(fetchRequest, nominated: fits ? [] : answer.nominated?.names ?? [], refusesFinished: true)
            }
        }
        // A 304 is no failure, whatever the status of the response that it confirms.
        if answer.outcome.loaded == nil,
            let stale = await staleAnswer(insteadOf: answer.response, fetchRequest: fetchRequest, context: context)
        {
            if membership.isFirst { membership.fetch.answersFirstStale() }
            answer.body?.releaseReader()
            if membership.isFirst, answer.body == nil { answer.response.body.discard() }
            return .answer(stale)
        }
        return .answer(
            await membership.isFirst
                ? first(answer, fetchRequest: fetchRequest, context: context)
                : collapsed(answer, isLate: membership.isLate, fetchRequest: fetchRequest, context: context)
        )
    }

    private func retry(_ fetchRequest: FetchRequest, nominated: [String] = [], refusesFinished: Bool = false)
        -> FetchResult?
    {
        let history = fetchRequest.lookup.history
        return history.goesOn
            ? .lookAgain(history.further(nominated: nominated, refusesFinished: refusesFinished)) : nil
    }

    private func leave(_ membership: FetchCoalescer.Membership, fetchRequest: FetchRequest) {
        if membership.fetch.leave(isFirst: membership.isFirst) {
            cache.fetches.close(membership.fetch, for: fetchRequest.lookup.key)
        }
    }

    /// Whether a response that arrived before the call began can answer it without asking again, as a stored one could.
    private func isReusable(_ answer: Fetch.Answer, fetchRequest: FetchRequest, context: CallContext) -> Bool {
        guard let stored = answer.outcome.loaded?.stored ?? answer.outcome.storable else { return false }
        return if case .reuse = decision(on: stored, lookup: fetchRequest.lookup, context: context) { true } else {
            false
        }
    }

    /// What a call like this one would do with a stored response.
    func decision(on stored: StoredResponse, lookup: CacheLookup, context: CallContext) -> ReuseDecision {
        ReasonedReuseDecision(
            request: lookup.head,
            lookup.cacheControl,
            candidates: [stored],
            directive: lookup.directive,
            now: context.clock.timestamp,
            options: cache.options,
            secret: cache.store.secret,
            hasContentKey: lookup.content != nil
        ).decision
    }

    private func fetchWait(
        of fetch: Fetch,
        isFirst: Bool,
        patience: Patience?,
        fetchRequest: FetchRequest,
        context: CallContext
    ) async throws -> FetchWait {
        let clock = context.clock
        var patience = patience
        while true {
            let waitState = fetch.waitState
            var wakeReasons: Fetch.WakeReason = []
            if let known = patience {
                if clock.now >= known.end || waitState.backsOffUntil.map({ $0 > known.end }) ?? false {
                    guard fetchRequest.allowsStale(.patience, now: context.clock.timestamp, options: cache.options),
                        await isStillStored(known.loaded.entry, lookup: fetchRequest.lookup, context: context)
                    else {
                        patience = nil
                        continue
                    }
                    let decides = isFirst && context.verdict != nil
                    if !decides || fetch.leavesFirstStale() { return .patienceOver(known.loaded) }
                    // The response is here, and its storing waits for this call.
                    patience = nil
                }
                wakeReasons.insert(.backoff)
            }
            // The fetch itself has the latest deadline of all; a reader with an earlier one watches the clock.
            var end = patience?.end
            if let own = context.deadline {
                if waitState.deadline.map({ $0 > own }) ?? true {
                    if clock.now >= own { throw context.deadlineExceeded(progress: .bodySent) }
                    end = end.map { min($0, own) } ?? own
                } else {
                    wakeReasons.insert(.deadline)
                }
            }
            let turn: Fetch.WaitResult
            if let end {
                do {
                    turn = try await withDeadline(end, on: clock, discard: { _ in }) { [wakeReasons] in
                        await fetch.wait(wakingOn: wakeReasons, since: waitState)
                    }
                } catch {
                    if error.isCancellation { throw error }
                    continue
                }
            } else {
                turn = await fetch.wait(wakingOn: wakeReasons, since: waitState)
            }
            switch turn {
            case .ended(let ending): return .ended(ending)
            case .again: continue
            case .cancelled: throw CancellationError()
            }
        }
    }

    /// How long the call waits for the origin if there is something stale to serve; nil: as long as it takes.
    private func patience(_ fetchRequest: FetchRequest, context: CallContext) async -> Patience? {
        guard let length = patience(fetchRequest) else { return nil }
        let end = context.clock.now.advanced(by: length)
        return await loaded(fetchRequest, reason: .patience, context: context).map { Patience(end: end, loaded: $0) }
    }

    /// Whether the exchange failed for a reason outside this call: another call's deadline passed, or something below was
    /// cancelled.
    private func isNotOurs(_ failure: Fetch.Failure, context: CallContext) -> Bool {
        guard failure.wasCut else { return failure.error.isCancellation }
        return context.deadline.map { context.clock.now < $0 } ?? true
    }

    private func first(_ answer: Fetch.Answer, fetchRequest: FetchRequest, context: CallContext) async -> Response {
        var response = answer.response
        if let body = answer.body { response.body = ResponseBody(body.reader(), length: body.length) }
        response.body = await counted(
            response.body,
            interval: answer.outcome.networkInterval,
            as: .network,
            by: fetchRequest.lookup.metrics,
            context: context
        )
        let decision: CacheDecision
        if let loaded = answer.outcome.loaded {
            decision = self.decision(
                .revalidated,
                reason: fetchRequest.reason,
                loaded: loaded,
                context: context,
                storage: answer.outcome.storage
            )
            fetchRequest.lookup.metrics.count(decision) { $0.revalidated += 1 }
        } else {
            decision = CacheDecision(.miss, reason: fetchRequest.reason, storage: answer.outcome.storage)
            fetchRequest.lookup.metrics.count(decision) { $0.misses += 1 }
        }
        response.cacheDecision = decision
        record(answer.outcome, response: &response)
        explain(decision, context: context)
        return response
    }

    /// - Parameter isLate: whether the head had arrived before the call began.
    private func collapsed(
        _ answer: Fetch.Answer,
        isLate: Bool,
        fetchRequest: FetchRequest,
        context: CallContext
    ) async -> Response {
        if let loaded = answer.outcome.loaded {
            var response = answerCollapsed(
                loaded,
                to: fetchRequest.lookup,
                request: fetchRequest.request,
                reason: fetchRequest.reason,
                leader: answer.leader,
                context: context
            )
            response.url = fetchRequest.request.url
            return response
        }
        var response = answer.response
        response.source = .collapsed
        response.storedOrigin = nil
        // As from the store: fields that may not be stored are for the client that they were sent to (RFC 9111 §5.2.2.7).
        if let stored = answer.outcome.storable {
            response.fields.removeAll { $0.name != .age && !stored.head.fields.contains($0.name) }
            if isLate {
                // It is used as a stored response is, so it is given with its age (RFC 9111 §4).
                response.fields.removeAll(.age)
                stored.facts.writeAge(into: &response.fields, now: context.clock.timestamp)
                response.hasAgeDeducted = true
            }
        }
        response.fields = cache.options.ignoredCookies(for: fetchRequest.lookup.head.target)
            .withoutSetCookies(response.fields)
        if answer.outcome.storable == nil, isForItsClientAlone(answer) {
            // All waiting calls learn that the origin failed, so that they do not all try again; only the client that asked
            // learns the details.
            response.fields.removeAll { ![.retryAfter, .date, .age].contains($0.name) }
            // A place that nobody takes would keep the transfer open.
            answer.body?.releaseReader()
            response.body = ResponseBody()
        } else if let body = answer.body {
            response.body = ResponseBody(body.reader(), length: body.length)
        }
        response.body = await counted(
            response.body,
            interval: 0..<Int.max,
            as: .collapsed,
            by: fetchRequest.lookup.metrics,
            context: context
        )
        let decision = CacheDecision(.collapsed, reason: fetchRequest.reason, storage: answer.outcome.storage)
        fetchRequest.lookup.metrics.count(decision) { $0.collapsed += 1 }
        record(answer.outcome, response: &response)
        response.url = fetchRequest.request.url
        response.cacheDecision = decision
        explain(decision, context: context, leader: answer.leader)
        return response
    }

    /// The body of a response that a call gets. Bytes in the interval are counted when they are read, those of a body in memory
    /// when the call accepts the response.
    private func counted(
        _ body: ResponseBody,
        interval: Range<Int>,
        as bodySource: BodySource,
        by metrics: CallMetrics,
        context: CallContext
    ) async -> ResponseBody {
        guard !interval.isEmpty else { return body }
        let delivered: @Sendable (Int) -> Void = { metrics.count($0, bodySource: bodySource) }
        if let source = body.source {
            let watched = WatchedBody(source, received: { delivered($0.clamped(to: interval).count) })
            return ResponseBody(watched, length: body.length)
        }
        let count = body.length ?? 0
        if let verdict = context.verdict {
            await verdict.whenDecided { if $0 { delivered(count) } }
        } else {
            delivered(count)
        }
        return body
    }

    /// Whether the response of a failure is for one client only (RFC 9111 §3, §4.1, §5.2.2.5, §5.2.2.7); in private mode there is
    /// only one.
    private func isForItsClientAlone(_ answer: Fetch.Answer) -> Bool {
        let control = RulingCacheControl(answer.response.fields, targets: cache.options.targets).cacheControl
        if control.noStore || answer.nominated == nil { return true }
        guard cache.options.mode == .shared else { return false }
        return control.private != .absent || answer.response.fields.contains(.setCookie)
    }

    private func countMiss(_ fetchRequest: FetchRequest, context: CallContext) {
        let decision = CacheDecision(.miss, reason: fetchRequest.reason)
        fetchRequest.lookup.metrics.count(decision) { $0.misses += 1 }
        explain(decision, context: context)
    }

    /// - Parameter isFirst: whether the exchange was this call's own, so that its error names this call's limit.
    private static func deadlineExceeded(cause: any Error, isFirst: Bool, _ context: CallContext) -> any Error {
        let known = cause as? ServiceError
        if isFirst, let known, known.code == .deadlineExceeded { return known }
        var error = context.deadlineExceeded(
            cause: known?.code == .deadlineExceeded ? known?.cause : cause,
            progress: known?.progress ?? .bodySent
        )
        error.attempts = known?.attempts ?? []
        return error
    }
}

/// What answers a call whose exchange failed for good: a stale response if allowed, or a 504 if that is forbidden.
extension CachingHook {
    /// The stale response, if it may be served for this reason.
    func loaded(_ fetchRequest: FetchRequest, reason: CacheReason, context: CallContext) async -> LoadedResponse? {
        guard let candidate = fetchRequest.staleCandidate,
            fetchRequest.allowsStale(reason, now: context.clock.timestamp, options: cache.options),
            await isStillStored(candidate.entry, lookup: fetchRequest.lookup, context: context)
        else { return nil }
        if let loaded = fetchRequest.loadedStale { return loaded }
        return await load(candidate, context: context)
    }

    /// Whether no invalidation or purge since the lookup has removed or marked a stored response; what was only evicted may still
    /// be used.
    private func isStillStored(_ entry: StoredEntry, lookup: CacheLookup, context: CallContext) async -> Bool {
        // As at a lookup: a cancelled unsafe call may not have removed yet what it invalidates.
        if cache.writer.hasPendingInvalidations { await cache.writer.waitForInvalidations(of: lookup.key.target) }
        // One that answers several queries may be stored, and was perhaps invalidated, under another one of them.
        let answersQueries = cache.response(of: entry)?.head.fields.contains(.noVarySearch) ?? true
        if cache.writer.holds(lookup.generation, for: lookup.key.target, answersQueries: answersQueries) {
            return true
        }
        return await entries(for: entry.key, context).contains {
            $0.variant == entry.variant && $0.storedAt == entry.storedAt
                && cache.response(of: $0)?.needsConfirmation == false
        }
    }

    /// How long the call waits for the origin if there is something stale to serve; nil: as long as it takes.
    func patience(_ fetchRequest: FetchRequest) -> Duration? {
        fetchRequest.lookup.directive.serveStaleAfter ?? cache.options.serveStaleAfter
    }

    /// The stale response in place of a response that reports a failure.
    ///
    /// If there was no time for the wait before the next attempt, that wait would have exceeded any patience too.
    func staleAnswer(insteadOf answer: Response, fetchRequest: FetchRequest, context: CallContext) async -> Response? {
        var reason: CacheReason?
        if answer.status.isOriginError, fetchRequest.staleAllowance.onError {
            reason = .staleIfError
        } else if answer.status.isOriginError || answer.status == .tooManyRequests,
            answer.attempts.last?.stopReason?.isForLackOfTime ?? false, patience(fetchRequest) != nil
        {
            reason = .patience
        }
        guard let reason, let loaded = await loaded(fetchRequest, reason: reason, context: context) else { return nil }
        var response = answerStale(loaded, to: fetchRequest, reason: reason, context: context)
        response.cacheDecision?.originStatus = answer.status
        response.attempts = answer.attempts
        return response
    }

    private func answerStale(
        _ loaded: LoadedResponse,
        to fetchRequest: FetchRequest,
        reason: CacheReason,
        context: CallContext
    ) -> Response {
        answerHit(
            loaded,
            to: fetchRequest.lookup,
            request: fetchRequest.request,
            reason: reason,
            kind: .onError,
            context: context
        )
    }

    /// The answer in place of a failure, or of a response that did not arrive in time; nil: the failure is reported.
    ///
    /// - Parameter wasSent: whether anything was sent; a local error must not be hidden behind a stored response.
    func answer(
        after error: any Error,
        wasSent: Bool,
        fetchRequest: FetchRequest,
        context: CallContext
    ) async -> Response? {
        guard !error.isCancellation else { return nil }
        let failure = ServiceError.attemptFailure(of: error)
        guard wasSent || failure.kind == .throttled else { return nil }
        // A response arrived and was rejected: a stored one is no better.
        if context.options.acceptance?.checksAttempts ?? false, context.exchange?.responseTime != nil,
            failure.kind != .throttled
        {
            return nil
        }
        let attempts = (error as? ServiceError)?.attempts ?? []
        let isImpatient = patience(fetchRequest) != nil
        if let reason = fetchRequest.staleAllowance.reason(after: failure, isImpatient: isImpatient),
            let loaded = await loaded(fetchRequest, reason: reason, context: context)
        {
            var response = answerStale(loaded, to: fetchRequest, reason: reason, context: context)
            response.attempts = attempts
            return response
        }
        // With a fixed lifetime, the response's own directives do not count, and the failure says more.
        guard failure.isDisconnection, let stored = fetchRequest.staleCandidate?.stored,
            !stored.hasFixedLifetime(cache.options), stored.forbidsStale(cache.options)
        else { return nil }
        // It is disconnected, and must not use what is stored (RFC 9111 §5.2.2.2).
        var response = gatewayTimeout(
            .mustValidate,
            to: fetchRequest.request,
            lookup: fetchRequest.lookup,
            context: context
        )
        response.attempts = attempts
        return response
    }
}

extension StopReason {
    /// Whether another attempt would have been made if there had been time to wait for it.
    fileprivate var isForLackOfTime: Bool {
        self == .serverDelayTooLong || self == .deadline || self == .gateClosed
    }
}
