// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting

/// RETRY.md §3.1 to §3.3 written down straight, for one call: what the judgement is compared with (E14).
///
/// It shares no code with the judgement but the backoff's curve and the reading of dates and numbers.
struct RetryOracle {
    let call: RetryCall
    private var attempt = 0
    private var policyRetries = 0
    private var transient = 0
    private var throttled = 0
    private var cured: Set<String> = []
    private var source: SeededGenerator

    init(_ call: RetryCall) {
        self.call = call
        source = call.source
    }

    /// What follows the next attempt, and what it costs: `free`, a cause's name, or nothing where the call stops.
    mutating func next(_ outcome: AttemptOutcome) -> (decision: RetryDecision, cost: String) {
        let rules = call.rules
        attempt += 1
        var kind = "", status = 0, progress = TransportProgress.bodySent, reused = false, answer = HeaderFields()
        switch outcome {
        case .failure(let failure):
            (kind, progress, reused) = (failure.kind.rawValue, failure.progress, failure.connectionReused)
        case .response(let head): (status, answer) = (head.status.rawValue, head.fields)
        }
        let key = call.fields["Idempotency-Key"] != nil
        var idempotent = ["GET", "PUT", "DELETE"].contains(call.method.rawValue)
        if rules.isGateway {
            if call.declared == false { idempotent = false }
        } else {
            idempotent = call.declared ?? (idempotent || key)
        }

        // What it proves.
        var letter: Character = "N", cure = ""
        if status == 0 {
            if kind == "cancelled" { return (.stop(.cancelled), "") }
            let isFinal = ["certificate", "bad-request", "too-large"].contains(kind)
            let isStale = kind == "connection-lost" && reused && progress < .headReceived
            if !isFinal { letter = progress == .notSent ? "U" : isStale ? "S" : "A" }
            if kind == "refused" { (letter, cure) = ("U", "refused") }
            if letter == "S" { cure = "stale" }
        } else {
            if [408, 500, 502, 503, 504].contains(status) { letter = "A" }
            let isAdvised = [413, 503].contains(status) && answer["Retry-After"] != nil
            if status == 429 || isAdvised || status == 409 && key { letter = "T" }
            if [421, 425].contains(status) || status == 417 && call.fields["Expect"] != nil {
                (letter, cure) = ("U", "\(status)")
            }
            if letter == "N", rules.retryableStatuses.contains(StatusCode(status)), status != 422 || !key {
                letter = "A"
            }
            if rules.finalStatuses.contains(StatusCode(status)) { letter = "N" }
        }
        if letter == "N" { return (.stop(.notRetryable), "") }

        // Whether it can be and may be sent again.
        let unsent = status == 0 && progress == .notSent
        if call.fields["Upgrade"] != nil, !unsent { return (.stop(.committed), "") }
        if !call.replayable, !unsent { return (.stop(.notReplayable), "") }
        let isOptIn =
            !rules.isGateway
            && (letter == "S" && rules.retriesUnsafeOnStaleSocket
                || letter == "T" && rules.retriesUnsafeWhenThrottled && status != 409)
        if letter != "U", !idempotent, !isOptIn { return (.stop(.notIdempotent), "") }
        let below = call.wasRetriedBelow && rules.respectsInnerRetries
        var isFree = cure != "" && !cured.contains(cure)
        if letter == "S", below { isFree = false }
        if letter == "S", !isFree, !idempotent { return (.stop(.notIdempotent), "") }
        if rules.leavesRetriesToCaller, call.fields["x-retry-attempt"] != nil { return (.stop(.retriedAbove), "") }
        if rules.vendorHints.contains(.shouldRetry), answer["x-should-retry"] == "false" {
            return (.stop(.serverForbids), "")
        }
        if !isFree, below { return (.stop(.retriedBelow), "") }
        if !isFree, cure != "", status != 0 { return (.stop(.notRetryable), "") }
        let counted = policyRetries + (rules.countsFreeResends ? cured.count : 0)
        if rules.maxAttempts < 2 || counted + 1 >= rules.maxAttempts && (!isFree || rules.countsFreeResends) {
            return (.stop(.attemptsExhausted), "")
        }

        // How long.
        var delay = Duration.zero
        if !isFree, letter == "T" { delay = rules.throttlingBackoff.delay(retry: throttled, using: &source) }
        if !isFree, letter != "T" { delay = rules.backoff.delay(retry: transient, using: &source) }
        var asked: Int?
        if rules.obeysRetryAfter { asked = answer["Retry-After"].flatMap { Int($0) } }
        if asked == nil, rules.obeysRateLimit, answer["RateLimit"] != nil { asked = 7 }
        if let asked {
            if .seconds(asked) > rules.maxServerDelay { return (.stop(.serverDelayTooLong), "") }
            let more = Double.random(in: 0..<1, using: &source) * min(Double(asked) / 2, 5)
            let least = max(delay, .seconds(asked))
            var spread = Duration.nanoseconds(Int64(more * 1e9 + 0.5))
            if let left = call.timeLeft, least < left, least + rules.minimumAttemptTime <= left {
                spread = max(.zero, min(spread, left - least - max(rules.minimumAttemptTime, .milliseconds(1))))
            }
            delay = least + spread
        }
        if let left = call.timeLeft, delay >= left || delay + rules.minimumAttemptTime > left {
            return (.stop(.deadline), "")
        }
        if isFree {
            cured.insert(cure)
            return (.retry(after: delay), "free")
        }
        policyRetries += 1
        if letter == "T" { throttled += 1 } else { transient += 1 }
        return (.retry(after: delay), letter == "T" ? "throttling" : kind == "timeout" ? "timeout" : "transient")
    }
}
