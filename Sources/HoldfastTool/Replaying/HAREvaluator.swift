// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// Evaluates recorded exchanges by the library's caching rules, for an unlimited cache that lasts as long as the
    /// file.
    ///
    /// RFC 9111 and the fields decide what it answers, revalidates and keeps. Each request becomes one for a key (URI,
    /// principal, variant) that is fresh until its own response would be stale, so that a cache of any size and policy
    /// can be replayed.
    struct HAREvaluator: Sendable {
        private let options: CacheOptions
        /// The same, but an entry is useless once it is stale; used to find out how long a response is fresh.
        private let freshnessOptions: CacheOptions
        private var stored: [CacheKey: [StoredResponse]] = [:]
        /// How often a URI was invalidated: entries from before are no longer found.
        private var epochs: [TargetURI: UInt32] = [:]
        private var steps: [Step] = []

        /// A request to replay, or a reload, which no cache answers but which renews the copy.
        private struct Step: Sendable {
            let key: UInt64
            /// Bytes of the body; nil if the file does not say.
            let size: UInt32?
            let time: Timestamp
            var freshUntil: Timestamp
            let isReload: Bool
        }

        init(mode: CacheOptions.Mode, rules: CacheRules = CacheRules()) {
            options = CacheOptions(mode: mode).replacing(rules: rules)
            freshnessOptions = CacheOptions(mode: mode, retention: .zero).replacing(rules: rules)
        }

        /// Adds the requests to the replayed ones, after all exchanges were evaluated.
        func add(to requests: inout SampledRequests) {
            var renewals: [UInt64: (time: Timestamp, freshUntil: Timestamp)] = [:]
            var replayed: [Step] = []
            // From the end, so that a reload before another one is renewed too.
            for var step in steps.reversed() {
                if let next = renewals[step.key], next.time < step.freshUntil { step.freshUntil = next.freshUntil }
                if step.isReload {
                    renewals[step.key] = (step.time, step.freshUntil)
                } else {
                    replayed.append(step)
                }
            }
            for step in replayed.reversed() {
                requests.append(key: step.key, size: step.size, at: step.time, freshUntil: step.freshUntil)
            }
        }

        /// Counts an exchange; its request is replayed if its response is kept.
        mutating func evaluate(_ exchange: RecordedExchange, account: inout InputStatistics) {
            var exchange = exchange
            let cookies = options.ignoredCookies(for: exchange.request.target)
            exchange.request.fields = cookies.view(of: exchange.request.fields)
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
            let reuse = decide(request, candidates: candidates.map(\.response), at: exchange.requestTime)
            account.unbounded.add("\(reuse.reason)")
            let selected = reuse.selected.map { candidates[$0] }
            let kept = kept(exchange, selected: selected?.response, place: place)
            if case .reuse = reuse.decision, let selected {
                // A smaller cache may have to ask, and then keeps the origin's response of this time, if it may be kept.
                let freshUntil = kept.map { end(of: $0.response) } ?? exchange.requestTime
                append(exchange, entry: selected, freshUntil: freshUntil)
                return
            }
            guard let kept else {
                account.addUnstored(unstoredReason(exchange), bytes: exchange.size ?? 0)
                return
            }
            if demandsValidation(request, selected: selected?.response, at: exchange.requestTime) {
                account.addUnstored("\(CacheReason.mustValidate), by the request", bytes: exchange.size ?? 0)
                append(exchange, entry: kept, freshUntil: end(of: kept.response), isReload: true)
            } else {
                append(exchange, entry: kept, freshUntil: end(of: kept.response))
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
            let target = options.keyTarget(of: request.target)
            let fields = options.keyFieldText(of: request.fields, to: request.target, secret: [])
            return Place(
                own: CacheKey(partition: principal, method: .get, target: target, contentType: fields),
                shared: CacheKey(method: .get, target: target, contentType: fields),
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

        /// Removes what an unsafe request invalidates (RFC 9111 §4.4).
        private mutating func invalidate(_ exchange: RecordedExchange) {
            let targets = Invalidation.targets(request: exchange.request, response: exchange.response).map {
                options.keyTarget(of: $0)
            }
            guard !targets.isEmpty else { return }
            for target in targets { epochs[target, default: 0] &+= 1 }
            stored = stored.filter { !targets.contains($0.key.target) }
        }

        // MARK: Decisions

        private func decide(
            _ request: RequestHead,
            candidates: [StoredResponse],
            at now: Timestamp
        ) -> ReasonedReuseDecision {
            ReasonedReuseDecision(
                request: request,
                candidates: candidates,
                directive: .default,
                now: now,
                options: options,
                secret: []
            )
        }

        /// The entry that is kept for an exchange: its response, or the stored one that a 304 confirms; nil if there is
        /// none.
        private func kept(_ exchange: RecordedExchange, selected: StoredResponse?, place: Place) -> Entry? {
            var response: StoredResponse?
            if exchange.response.status == .notModified {
                response = selected?.freshened(
                    by: exchange.response,
                    requestTime: exchange.requestTime,
                    responseTime: exchange.responseTime,
                    mode: options.mode,
                    ignoredCookies: options.ignoredCookies(for: exchange.request.target)
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
                        ignoredCookies: options.ignoredCookies(for: exchange.request.target)
                    ),
                    requestTime: exchange.requestTime,
                    responseTime: exchange.responseTime,
                    targetedFields: options.targets
                )
            }
            guard let response else { return nil }
            let head = exchange.response.status == .notModified ? response.head : exchange.response
            guard case .store(let scope) = verdict(exchange.request, response: head) else { return nil }
            return Entry(
                key: options.mode == .shared && scope == .shared ? place.shared : place.own,
                response: response
            )
        }

        private func verdict(_ request: RequestHead, response: ResponseHead) -> Storability {
            Storability.decide(request: request, response: response, directive: .default, options: options)
        }

        private func unstoredReason(_ exchange: RecordedExchange) -> String {
            guard case .doNotStore(let reason) = verdict(exchange.request, response: exchange.response) else {
                return "\(CacheReason.varyStar)"
            }
            return reason.section.isEmpty || exchange.response.status == .ok
                ? "\(reason)" : "\(reason), status \(exchange.response.status)"
        }

        /// Whether the request itself prevents a fresh response from the cache, so that no cache of any size would
        /// answer it.
        private func demandsValidation(
            _ request: RequestHead,
            selected: StoredResponse?,
            at now: Timestamp
        ) -> Bool {
            guard let selected else { return false }
            var plain = request
            plain.fields.removeAll(.cacheControl)
            plain.fields.removeAll(.pragma)
            guard case .reuse = decide(plain, candidates: [selected], at: now).decision else { return false }
            return true
        }

        /// When a response can no longer be used without the origin: at once if it says no-cache.
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

        private mutating func append(
            _ exchange: RecordedExchange,
            entry: Entry,
            freshUntil end: Timestamp,
            isReload: Bool = false
        ) {
            var bytes = entry.key.framed + entry.response.nominated.framed
            withUnsafeBytes(of: epochs[entry.key.target, default: 0].littleEndian) { bytes += $0 }
            steps.append(
                Step(
                    key: RequestTrace.hash(of: bytes),
                    size: exchange.size.map { UInt32(clamping: $0) },
                    time: exchange.requestTime,
                    freshUntil: end,
                    isReload: isReload
                )
            )
        }
    }

    extension StoredResponse {
        /// The same response without the request fields that it is for.
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

    /// A request and its response with all their fields, as a HAR file has them.
    struct RecordedExchange: Sendable {
        var request: RequestHead
        let response: ResponseHead
        let requestTime: Timestamp
        let responseTime: Timestamp
        /// Bytes of the body; nil if the file does not say.
        let size: Int?

        /// What a file has instead of an exchange.
        enum Failure: Error, Hashable {
            /// It is malformed, with the reason.
            case malformed(String)
            /// It is a request that no cache looks up, with the reason and its method.
            case bypass(String, method: String)
        }

        /// Reads an entry.
        ///
        /// - Parameters:
        ///   - entry: one exchange of a HAR file.
        ///   - ignoresReloads: whether to remove Cache-Control, Pragma and conditions from the request.
        init(_ entry: HARFile.Entry, ignoresReloads: Bool) throws(Failure) {
            guard let start = LogTime.iso8601(Array(entry.startedDateTime.utf8)[...]) else {
                throw .malformed("startedDateTime is not a time")
            }
            guard let method = RequestMethod(validating: entry.request.method) else {
                throw .malformed("request.method is not a method")
            }
            guard let target = try? TargetURI(tolerating: entry.request.url) else {
                throw .bypass("\(CacheReason.target)", method: method.rawValue)
            }
            let status = Int(exactly: entry.response.status.rounded()) ?? 0
            if status == 0 { throw .bypass("no answer", method: method.rawValue) }
            var fields = Self.fields(entry.request.headers)
            if ignoresReloads {
                for name in [FieldName.cacheControl, .pragma, .ifNoneMatch, .ifModifiedSince] { fields.removeAll(name) }
            }
            request = RequestHead(method: method, target: target, fields: fields)
            response = ResponseHead(status: StatusCode(status), fields: Self.fields(entry.response.headers))
            requestTime = start
            let waited = (entry.time ?? 0) - max(0, entry.timings?.receive ?? 0)
            responseTime = start.advanced(by: .milliseconds(Int64(min(max(0, waited.isFinite ? waited : 0), 1e12))))
            size =
                [entry.response.bodySize, entry.response.content?.size]
                .compactMap { $0.flatMap { Int(exactly: $0.rounded()) } }.first { $0 > 0 }
                ?? (status == StatusCode.notModified.rawValue ? nil : 0)
        }

        /// The fields of a message; pseudo-header fields of HTTP/2 and invalid names are left out.
        private static func fields(_ list: [HARFile.Field]?) -> HeaderFields {
            var fields = HeaderFields()
            for field in list ?? [] { fields.append(rawName: field.name, value: field.value) }
            return fields
        }
    }

    /// The contents of a HAR file (1.1, 1.2) that matter to a cache.
    struct HARFile: Decodable {
        struct Log: Decodable {
            let entries: [Item]
        }

        /// An entry, or why it is invalid, so that a broken entry does not affect others.
        struct Item: Decodable {
            let entry: Result<Entry, any Error>

            init(from decoder: any Decoder) {
                entry = Result { try Entry(from: decoder) }
            }
        }

        struct Entry: Decodable {
            let startedDateTime: String
            /// Milliseconds from the start to the last byte.
            let time: Double?
            let request: Request
            let response: Response
            let timings: Timings?
        }

        struct Request: Decodable {
            let method: String
            let url: String
            let headers: [Field]?
        }

        struct Response: Decodable {
            let status: Double
            let headers: [Field]?
            /// Bytes of the body as it was sent; -1 or 0 if it came from a cache or is unknown.
            let bodySize: Double?
            let content: Content?
        }

        struct Content: Decodable {
            /// Bytes of the body after decoding.
            let size: Double?
        }

        struct Field: Decodable {
            let name: String
            let value: String
        }

        struct Timings: Decodable {
            let receive: Double?
        }

        let log: Log

        /// Where invalid JSON goes wrong: where it was cut off, or what the parser says; empty for other errors.
        static func place(of error: any Error, in data: Data) -> String {
            guard case .dataCorrupted(let context) = error as? DecodingError else { return "" }
            // Depth by brackets outside strings: what is open at the end was cut off there.
            var (depth, isText, isEscaped) = (0, false, false)
            for byte in data {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = isText
                } else if byte
                    == UInt8(ascii: "\"")
                {
                    isText.toggle()
                } else if !isText {
                    if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") { depth += 1 }
                    if byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") { depth -= 1 }
                }
            }
            if depth > 0 || isText {
                let lines = data.reduce(1) { $1 == UInt8(ascii: "\n") ? $0 + 1 : $0 }
                return "; it ends unexpectedly at byte \(data.count), line \(lines)"
            }
            let told = (context.underlyingError as NSError?)?.userInfo[NSDebugDescriptionErrorKey] as? String
            return told.map { "; \($0)" } ?? ""
        }

        /// Why a part of a file is invalid: its path, in a few words.
        static func words(_ error: any Error) -> String {
            func path(_ context: DecodingError.Context, last: String? = nil) -> String {
                let names = context.codingPath.filter {
                    $0.intValue == nil && !["log", "entries"].contains($0.stringValue)
                }
                let text = (names.map(\.stringValue) + [last].compactMap { $0 }).joined(separator: ".")
                return text.isEmpty ? "the entry" : text
            }
            switch error as? DecodingError {
            case .keyNotFound(let key, let context): return "no \(path(context, last: key.stringValue))"
            case .typeMismatch(_, let context), .valueNotFound(_, let context):
                return "\(path(context)) has the wrong type"
            case .dataCorrupted(let context): return "\(path(context)) cannot be read"
            default: return "\(error)"
            }
        }
    }
#endif
