// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// Judges the lines of an access log, which has no header fields: what is kept is what RFC 9111 lets a cache guess at.
    struct AccessLogJudge: Sendable {
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
        mutating func judge(_ line: AccessLogLine, _ account: inout InputAccount, _ requests: inout SampledRequests) {
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
            guard line.target.hasPrefix("/") else { return try? TargetURI(mapping: line.target) }
            // What host it is makes no difference where the log has but one.
            return try? TargetURI(mapping: "http://\(line.host ?? "log.invalid")\(line.target)")
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
#endif
