// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// Judges the lines of an access log, which has no header fields: what is kept is what RFC 9111 lets a cache guess at.
    struct AccessLogEvaluator: Sendable {
        /// What is made of a status, the same for each line.
        private enum Verdict {
            case fresh(milliseconds: Int64)
            case unstored(String)
        }

        private let options: CacheOptions
        /// How long an answer counts as fresh; nil: for ever.
        private let lifetime: Duration?
        private var verdicts: [Int: Verdict] = [:]

        /// - Parameters:
        ///   - lifetime: how long an answer that may be guessed at counts as fresh; nil: for ever.
        ///   - errorLifetime: the same for errors.
        init(lifetime: Duration?, errorLifetime: Duration) {
            self.lifetime = lifetime
            var options = CacheOptions(mode: .shared, retention: .zero)
            if errorLifetime > .zero { options.negativeLifetime = errorLifetime }
            self.options = options
        }

        /// Counts a line, and adds its request to those that are replayed where an answer like this one is kept.
        mutating func judge(_ line: AccessLogLine, account: inout InputStatistics, requests: inout SampledRequests) {
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
            let key = RequestTrace.hash(of: target.canonical.utf8)
            // The client's copy was still good: a request for the same object, whose size another line tells.
            if line.status == .notModified {
                let end = fresh(from: line.time, verdict(StatusCode.ok))
                requests.append(key: key, size: nil, at: line.time, freshUntil: end)
                return
            }
            let verdict = verdict(line.status)
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
            // What host it is makes no difference where the log has but one.
            return try? TargetURI(tolerating: "http://\(line.host ?? "log.invalid")\(line.target)")
        }

        /// The library's own judgement of a response of which the status is all that is known.
        private mutating func verdict(_ status: StatusCode) -> Verdict {
            if let known = verdicts[status.rawValue] { return known }
            guard let target = try? TargetURI("http://log.invalid/") else { return .unstored("") }
            let (request, response) = (RequestHead(target: target), ResponseHead(status: status))
            let seconds = lifetime?.wholeSeconds ?? CacheControl.maximumDeltaSeconds
            let verdict: Verdict
            switch Storability.judge(request: request, response: response, directive: .default, options: options) {
            case .doNotStore(let reason):
                verdict = .unstored("\(reason), status \(status)")
            case .store:
                let now = Timestamp(millisecondsSinceEpoch: 0)
                let stored = StoredResponse(
                    target: target,
                    head: response,
                    requestTime: now,
                    responseTime: now,
                    givenLifetime: seconds
                )
                let left = now.millisecondsUntil(stored.uselessAfter(options))
                if left <= 0 {
                    verdict = .unstored("\(CacheReason.noFreshness), status \(status)")
                } else {
                    let isForEver = lifetime == nil && stored.freshnessLifetime(options).source == .given
                    verdict = .fresh(milliseconds: isForEver ? .max : left)
                }
            }
            verdicts[status.rawValue] = verdict
            return verdict
        }
    }

    /// The requests to replay, all of them or, once there are more than memory is meant for, those of a part of the objects.
    ///
    /// The part is chosen by a hash of the key, so that all requests for an object are in it or none; a cache of size s does to all
    /// requests what one of rate · s does to the sample (SHARDS, Waldspurger et al., FAST 2015). The part is halved as often as need be.
    struct SampledRequests: Sendable {
        /// The share of all objects that is kept.
        private(set) var rate = 1.0
        /// Requests offered, kept or not.
        private(set) var seen = 0
        /// Requests left out because there are too many for too few objects to choose among.
        private(set) var cut = 0
        private let limit: Int
        /// Whether an object has one size, the largest that was seen; else each request has its own.
        private let sizesAreOfObjects: Bool
        private let hasLives: Bool
        private var threshold = UInt64.max
        private var keys: [UInt64] = []
        private var sizes: [UInt32] = []
        private var instants: [Int64] = []
        private var freshUntil: [Int64] = []
        private var largest: [UInt64: UInt32] = [:]

        /// - Parameters:
        ///   - limit: how many requests are kept at most; at least 2.
        ///   - sizesAreOfObjects: whether the largest size seen of an object counts for all its requests.
        ///   - hasLives: whether requests have times and lives.
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
        ///   - key: a hash, its bits well mixed.
        ///   - size: bytes of the body; nil where the request does not tell.
        ///   - instant: when it was made.
        ///   - end: until when its response is fresh.
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

        /// The requests as a trace; those of objects whose size nothing tells are left out.
        ///
        /// - Returns: the trace, and how many requests were left out, as the sample has them.
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
        /// - Returns: false where too few objects would be left to say anything; then nothing was dropped.
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
