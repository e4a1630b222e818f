// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// Judges recorded exchanges by the library's rules for caches: a cache without a bound, in memory for as long as the file lasts.
    ///
    /// What it answers, asks again and keeps is what RFC 9111 says of the fields. Each request becomes one of a key (URI, principal,
    /// variant) that is fresh until its own response would be, so that a cache of any size and policy can be replayed.
    struct HARJudge: Sendable {
        private let options: CacheOptions
        /// The same, but an entry is useless once it is stale: to read off how long a response is fresh.
        private let freshnessOptions: CacheOptions
        private var stored: [CacheKey: [StoredResponse]] = [:]
        /// How often a URI was invalidated: what was kept of it before is found no more.
        private var epochs: [TargetURI: UInt32] = [:]

        init(mode: CacheOptions.Mode) {
            options = CacheOptions(mode: mode)
            freshnessOptions = CacheOptions(mode: mode, retention: .zero)
        }

        /// Counts an exchange, and adds its request to those that are replayed where its response is kept.
        mutating func judge(
            _ exchange: RecordedExchange,
            _ account: inout InputAccount,
            _ requests: inout SampledRequests
        ) {
            var exchange = exchange
            exchange.request.fields = options.ignored.view(of: exchange.request.fields)
            let request = exchange.request
            account.requests += 1
            account.methods.add(request.method.rawValue)
            account.note(exchange.requestTime)
            invalidate(exchange)
            if let reason = ReuseDecision.bypassReason(request: request, directive: .default) {
                account.bypassed.add(reason == .method ? "\(reason), \(request.method)" : "\(reason)")
                return
            }
            guard request.method == .get else {
                account.bypassed.add(request.method.rawValue)
                return
            }
            let place = place(of: request)
            let candidates = candidates(for: request, place, now: exchange.requestTime)
            let judgement = judgement(request, candidates.map(\.response), at: exchange.requestTime)
            account.unbounded.add("\(judgement.reason)")
            let selected = judgement.selected.map { candidates[$0] }
            let kept = kept(exchange, selected?.response, place)
            if case .reuse = judgement.decision, let selected {
                // A smaller cache may have to ask, and then keeps what the origin says this time, if that may be kept.
                let freshUntil = kept.map { end(of: $0.response) } ?? exchange.requestTime
                append(exchange, selected, freshUntil: freshUntil, &requests)
                return
            }
            guard let kept else {
                account.addUnstored(unstoredReason(exchange), bytes: exchange.size ?? 0)
                return
            }
            if demandsValidation(request, selected?.response, at: exchange.requestTime) {
                account.addUnstored("\(CacheReason.mustValidate), by the request", bytes: exchange.size ?? 0)
            } else {
                append(exchange, kept, freshUntil: end(of: kept.response), &requests)
            }
            keep(kept)
        }

        // MARK: Whose and where

        private struct Place {
            let own: CacheKey
            let shared: CacheKey
            let mayReadShared: Bool
        }

        private struct Entry {
            let key: CacheKey
            let response: StoredResponse
        }

        private func place(of request: RequestHead) -> Place {
            let userinfo = request.target.userinfo
            let principal = CachePrincipal.digest(of: request.fields, userinfo: userinfo, secret: [])
            let isCookieOnly = CachePrincipal.isCookieOnly(request.fields, userinfo: userinfo, explicit: nil)
            return Place(
                own: CacheKey(partition: principal, method: .get, target: request.target),
                shared: CacheKey(method: .get, target: request.target),
                mayReadShared: !principal.isEmpty
                    && (options.mode == .shared || options.cookiesMayBorrow && isCookieOnly)
            )
        }

        private func candidates(for request: RequestHead, _ place: Place, now: Timestamp) -> [Entry] {
            let own = (stored[place.own] ?? []).map { Entry(key: place.own, response: $0) }
            guard place.mayReadShared else { return own }
            let others = (stored[place.shared] ?? []).filter {
                options.mode == .shared || $0.mayAnswerCookies(now: now, options: options)
            }
            return own + others.map { Entry(key: place.shared, response: $0) }
        }

        private mutating func keep(_ entry: Entry) {
            var variants = stored[entry.key] ?? []
            variants.removeAll { $0.nominated == entry.response.nominated }
            variants.append(entry.response)
            if variants.count > options.maximumVariants { variants.removeFirst() }
            stored[entry.key] = variants
        }

        /// Takes away what an unsafe request makes invalid (RFC 9111 §4.4).
        private mutating func invalidate(_ exchange: RecordedExchange) {
            let targets = Invalidation.targets(request: exchange.request, response: exchange.response)
            guard !targets.isEmpty else { return }
            for target in targets { epochs[target, default: 0] &+= 1 }
            stored = stored.filter { !targets.contains($0.key.target) }
        }

        // MARK: Judging

        private func judgement(
            _ request: RequestHead,
            _ candidates: [StoredResponse],
            at now: Timestamp
        ) -> ReuseJudgement {
            ReuseJudgement(
                request: request,
                candidates: candidates,
                directive: .default,
                now: now,
                options: options,
                secret: []
            )
        }

        /// What is kept of an exchange: its response, or the stored one that a 304 confirms; nil where nothing is.
        private func kept(_ exchange: RecordedExchange, _ selected: StoredResponse?, _ place: Place) -> Entry? {
            var response: StoredResponse?
            if exchange.response.status == .notModified {
                response = selected?.freshened(
                    by: exchange.response,
                    requestTime: exchange.requestTime,
                    responseTime: exchange.responseTime,
                    mode: options.mode,
                    ignoredCookies: options.ignored
                )
            } else if let nominated = NominatedFields(
                vary: exchange.response.fields,
                request: exchange.request.fields,
                secret: []
            ) {
                response = StoredResponse(
                    target: exchange.request.target,
                    nominated: nominated,
                    head: FieldUpdate.storable(
                        exchange.response,
                        contentDecoded: false,
                        mode: options.mode,
                        targetedFields: options.targets,
                        ignoredCookies: options.ignored
                    ),
                    requestTime: exchange.requestTime,
                    responseTime: exchange.responseTime,
                    targetedFields: options.targets
                )
            }
            guard let response else { return nil }
            let head =
                exchange.response.status == .notModified
                ? response.head : exchange.response
            guard let scope = scope(exchange.request, head) else { return nil }
            return Entry(
                key: options.mode == .shared && scope == .shared ? place.shared : place.own,
                response: response
            )
        }

        private func scope(_ request: RequestHead, _ response: ResponseHead) -> Storability.Scope? {
            guard
                case .store(let scope) = Storability.judge(
                    request: request,
                    response: response,
                    directive: .default,
                    options: options
                )
            else { return nil }
            return scope
        }

        private func unstoredReason(_ exchange: RecordedExchange) -> String {
            let verdict = Storability.judge(
                request: exchange.request,
                response: exchange.response,
                directive: .default,
                options: options
            )
            guard case .doNotStore(let reason) = verdict else { return "\(CacheReason.varyStar)" }
            return reason.section.isEmpty || exchange.response.status == .ok
                ? "\(reason)" : "\(reason), status \(exchange.response.status)"
        }

        /// Whether the request itself keeps the cache from answering with something fresh, so that no cache of any size would.
        private func demandsValidation(
            _ request: RequestHead,
            _ selected: StoredResponse?,
            at now: Timestamp
        ) -> Bool {
            guard let selected else { return false }
            var plain = request
            plain.fields.removeAll(.cacheControl)
            plain.fields.removeAll(.pragma)
            guard case .reuse = self.judgement(plain, [selected], at: now).decision else { return false }
            return true
        }

        /// When a response ceases to answer without the origin: at once where it says no-cache.
        private func end(of response: StoredResponse) -> Timestamp {
            let request = RequestHead(target: response.target)
            guard
                case .reuse = ReuseDecision.decide(
                    request: request,
                    candidates: [response.answeringAnyone],
                    directive: .default,
                    now: response.responseTime,
                    options: options,
                    secret: []
                )
            else { return response.requestTime }
            return response.uselessAfter(freshnessOptions)
        }

        private func append(
            _ exchange: RecordedExchange,
            _ entry: Entry,
            freshUntil end: Timestamp,
            _ requests: inout SampledRequests
        ) {
            var bytes = entry.key.framed + entry.response.nominated.framed
            withUnsafeBytes(of: epochs[exchange.request.target, default: 0].littleEndian) { bytes += $0 }
            requests.append(
                key: RequestTrace.hash(of: bytes),
                size: exchange.size.map { UInt32(clamping: $0) },
                at: exchange.requestTime,
                freshUntil: end
            )
        }
    }

    extension StoredResponse {
        /// The same response without the fields of the request that it is for.
        fileprivate var answeringAnyone: StoredResponse {
            StoredResponse(
                target: target,
                head: head,
                requestTime: requestTime,
                responseTime: responseTime,
                targetedFields: targetedFields
            )
        }
    }
#endif
