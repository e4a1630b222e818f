// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// Evaluates the lines of an access log, which has no header fields: responses are kept if RFC 9111 allows a cache
    /// to estimate their lifetime.
    struct AccessLogEvaluator: Sendable {
        /// The decision for a status, the same for each line.
        private enum Verdict {
            case fresh(milliseconds: Int64)
            case unstored(String)
        }

        private let options: CacheOptions
        /// How long a response counts as fresh; nil: forever.
        private let lifetime: Duration?
        private var verdicts: [Int: Verdict] = [:]

        /// - Parameters:
        ///   - lifetime: how long a response counts as fresh if its lifetime may be estimated; nil: forever.
        ///   - errorLifetime: the same for errors.
        ///   - rules: the rules of the cache. A lifetime that one has for a route takes precedence over those above.
        init(lifetime: Duration?, errorLifetime: Duration, rules: CacheRules = CacheRules()) {
            self.lifetime = lifetime
            var options = CacheOptions(mode: .shared, retention: .zero)
            options.rules = rules
            if errorLifetime > .zero { options.negativeLifetime = errorLifetime }
            self.options = options
        }

        /// Counts a line, and adds its request to the replayed ones if such a response is kept.
        mutating func evaluate(_ line: AccessLogLine, account: inout InputStatistics, requests: inout SampledRequests) {
            account.requests += 1
            account.note(line.time)
            guard let method = line.method else {
                account.methods.add("none")
                account.bypassed.add("no request line")
                return
            }
            account.methods.add(method)
            guard method == RequestMethod.get.rawValue else {
                account.bypassed.add(
                    method == RequestMethod.head.rawValue ? "HEAD" : "\(CacheReason.method), \(method)"
                )
                return
            }
            guard let target = target(of: line) else {
                account.bypassed.add("\(CacheReason.target)")
                return
            }
            let key = RequestTrace.hash(of: options.keyTarget(of: target).canonical.utf8)
            // The client's copy was still valid: a request for the same object, whose size another line has.
            if line.status == .notModified {
                let end = fresh(from: line.time, verdict(StatusCode.ok, of: target))
                requests.append(key: key, size: nil, at: line.time, freshUntil: end)
                return
            }
            let verdict = verdict(line.status, of: target)
            if case .unstored(let reason) = verdict {
                account.addUnstored(reason, bytes: line.bytes ?? 0)
                return
            }
            let size = UInt32(clamping: line.bytes ?? 0)
            requests.append(key: key, size: size, at: line.time, freshUntil: fresh(from: line.time, verdict))
        }

        private func fresh(from time: Timestamp, _ verdict: Verdict) -> Timestamp {
            guard case .fresh(let milliseconds) = verdict, milliseconds < .max else { return .distantFuture }
            return time.advanced(by: .milliseconds(milliseconds))
        }

        private mutating func target(of line: AccessLogLine) -> TargetURI? {
            guard line.target.hasPrefix("/") else { return try? TargetURI(tolerating: line.target) }
            // The host makes no difference if the log has only one.
            return try? TargetURI(tolerating: "http://\(line.host ?? "log.invalid")\(line.target)")
        }

        /// The library's own decision about a response of which only the status is known.
        private mutating func verdict(_ status: StatusCode, of target: TargetURI) -> Verdict {
            if let ruled = options.ruled(for: target, fields: HeaderFields()) {
                return verdict(status, of: target, by: ruled)
            }
            if let known = verdicts[status.rawValue] { return known }
            let verdict = verdict(status, of: target, by: options)
            verdicts[status.rawValue] = verdict
            return verdict
        }

        private func verdict(_ status: StatusCode, of target: TargetURI, by options: CacheOptions) -> Verdict {
            let (request, response) = (RequestHead(target: target), ResponseHead(status: status))
            let hasLifetime = options.defaultLifetime != nil || options.fixedLifetime != nil
            let assumed = lifetime?.wholeSeconds ?? CacheControl.maximumDeltaSeconds
            switch Storability.decide(request: request, response: response, directive: .default, options: options) {
            case .doNotStore(let reason):
                return .unstored(reason == .neverStore ? "\(reason)" : "\(reason), status \(status)")
            case .store:
                let now = Timestamp(millisecondsSinceEpoch: 0)
                let stored = StoredResponse(
                    target: target,
                    head: response,
                    requestTime: now,
                    responseTime: now,
                    givenLifetime: hasLifetime ? nil : assumed
                )
                let left = now.millisecondsUntil(stored.uselessAfter(options))
                guard left > 0 else { return .unstored("\(CacheReason.noFreshness), status \(status)") }
                let isForEver = lifetime == nil && !hasLifetime && stored.freshnessLifetime(options).source == .given
                return .fresh(milliseconds: isForEver ? .max : left)
            }
        }
    }

    /// The requests to replay: all of them or, if they exceed the memory limit, those of a sample of the objects.
    ///
    /// The sample is chosen by a hash of the key, so that it has all requests for an object or none. A cache of size s
    /// does to all requests what one of rate · s does to the sample (SHARDS, Waldspurger et al., FAST 2015). The sample
    /// is halved as often as necessary.
    struct SampledRequests: Sendable {
        /// The share of all objects that is kept.
        private(set) var rate = 1.0
        /// Requests offered, kept or not.
        private(set) var seen = 0
        /// Requests left out because there are too many for too few objects.
        private(set) var cut = 0
        private let limit: Int
        /// Whether an object has one size, the largest seen; otherwise each request has its own.
        private let sizesAreOfObjects: Bool
        private let hasLives: Bool
        private var threshold = UInt64.max
        private var keys: [UInt64] = []
        private var sizes: [UInt32] = []
        private var instants: [Int64] = []
        private var freshUntil: [Int64] = []
        private var largest: [UInt64: UInt32] = [:]

        /// - Parameters:
        ///   - limit: the most requests to keep; at least 2.
        ///   - sizesAreOfObjects: whether the largest size of an object counts for all its requests.
        ///   - hasLives: whether requests have times and lifetimes.
        init(limit: Int, sizesAreOfObjects: Bool, hasLives: Bool) {
            self.limit = max(2, limit)
            self.sizesAreOfObjects = sizesAreOfObjects
            self.hasLives = hasLives
        }

        /// How many requests are kept.
        var count: Int { keys.count }

        /// Adds a request.
        ///
        /// - Parameters:
        ///   - key: a well-mixed hash.
        ///   - size: bytes of the body; nil if the request does not say.
        ///   - instant: when it was made.
        ///   - end: when its response becomes stale.
        mutating func append(
            key: UInt64,
            size: UInt32?,
            at instant: Timestamp = .distantPast,
            freshUntil end: Timestamp = .distantFuture
        ) {
            seen += 1
            guard key <= threshold else { return }
            if keys.count >= limit {
                guard cut == 0, thin() else {
                    cut += 1
                    return
                }
                guard key <= threshold else { return }
            }
            keys.append(key)
            if sizesAreOfObjects {
                if let size { largest[key] = max(largest[key] ?? 0, size) }
            } else {
                sizes.append(size ?? 0)
            }
            if hasLives {
                instants.append(instant.millisecondsSinceEpoch)
                freshUntil.append(end.millisecondsSinceEpoch)
            }
        }

        /// The requests as a trace; requests for objects of unknown size are left out.
        ///
        /// - Returns: the trace, and how many requests of the sample were left out.
        consuming func trace() -> (trace: RequestTrace, unsized: Int) {
            var trace = RequestTrace()
            var unsized = 0
            for index in keys.indices {
                let key = keys[index]
                guard let size = sizesAreOfObjects ? largest[key] : sizes[index] else {
                    unsized += 1
                    continue
                }
                trace.append(
                    key: key,
                    size: size,
                    at: hasLives ? StoreInstant(milliseconds: instants[index]) : nil,
                    freshUntil: hasLives ? StoreInstant(milliseconds: freshUntil[index]) : nil
                )
            }
            return (trace, unsized)
        }

        /// Drops the requests for about half of the objects.
        ///
        /// - Returns: false if too few objects would be left; then nothing was dropped.
        private mutating func thin() -> Bool {
            let next = threshold / 2
            let kept = keys.indices.filter { keys[$0] <= next }
            guard Set(kept.map { keys[$0] }).count >= Self.fewestObjects, kept.count < keys.count else {
                return false
            }
            threshold = next
            rate /= 2
            if !sizes.isEmpty { sizes = kept.map { sizes[$0] } }
            if hasLives {
                instants = kept.map { instants[$0] }
                freshUntil = kept.map { freshUntil[$0] }
            }
            keys = kept.map { keys[$0] }
            largest = largest.filter { $0.key <= next }
            return true
        }

        private static let fewestObjects = 64
    }
#endif
