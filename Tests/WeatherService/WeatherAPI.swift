// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Synchronization

/// Answers requests as a weather service does: freshness, validators, variants, rate limits and short failures.
///
/// Deterministic: only the rate limits know a time.
final class WeatherAPI: Sendable {
    private struct State {
        var ledger = Ledger()
        var buckets: [String: TokenBucket] = [:]
        var reports: [Int: Int] = [:]
        var admitted = 0
    }

    private let options: ServiceOptions
    private let seconds: @Sendable () -> Double
    private let state = Mutex(State())

    init(_ options: ServiceOptions, seconds: @escaping @Sendable () -> Double) {
        self.options = options
        self.seconds = seconds
    }

    /// The answer to a request.
    func answer(_ request: LoopbackRequest) -> LoopbackReply {
        let route = WeatherRoute(request)
        let now = seconds()
        return state.withLock { state in
            if route == .ledger { return WeatherAPI.json(state.ledger) }
            WeatherAPI.count(route, in: &state.ledger)
            let client = request.values(of: "X-API-Key").first ?? ""
            let fresh = TokenBucket(capacity: options.capacity, refill: options.refill, now: now)
            let wait = state.buckets[client, default: fresh].take(now: now)
            let left = state.buckets[client]?.left ?? 0
            let limits = [
                ("RateLimit-Policy", "\"key\";q=\(options.capacity);w=\(options.window)"),
                ("RateLimit", "\"key\";r=\(left);t=\(wait ?? 1)"),
            ]
            if let wait {
                state.ledger.tooManyRequests += 1
                return LoopbackReply(429, fields: [("Retry-After", "\(wait)")] + limits)
            }
            state.admitted += 1
            if options.failEvery > 0 && state.admitted % options.failEvery == 0 {
                state.ledger.unavailable += 1
                return LoopbackReply(503, fields: [("Retry-After", "\(options.retryAfter)")] + limits)
            }
            return content(route, request, limits, &state)
        }
    }

    private func content(
        _ route: WeatherRoute,
        _ request: LoopbackRequest,
        _ limits: [(String, String)],
        _ state: inout State
    ) -> LoopbackReply {
        var fields = [("Content-Type", "application/json")] + limits
        let text: String
        switch route {
        case .stations:
            text = WeatherContent.list
            fields.append(("Cache-Control", "max-age=3600"))
        case .current(let station):
            let language = WeatherContent.language(for: request.values(of: "Accept-Language").first)
            text = WeatherContent.current(station, language: language, reports: state.reports[station, default: 0])
            fields += [
                ("Cache-Control", "max-age=\(options.currentAge)"), ("Vary", "Accept-Language"),
                ("Content-Language", language), ("Cache-Groups", "\"station-\(station)\""),
            ]
        case .forecast(let station, let days):
            text = WeatherContent.forecast(station, days: days)
            fields.append(("Cache-Control", "max-age=600, stale-while-revalidate=600"))
        case .report(let station):
            state.reports[station, default: 0] += 1
            let groups = ("Cache-Group-Invalidation", "\"station-\(station)\"")
            return LoopbackReply(201, fields: limits + [("Location", "/stations/\(station)/current"), groups])
        case .ledger, .unknown:
            return LoopbackReply(404, fields: limits)
        }
        let tag = WeatherAPI.entityTag(of: text)
        fields.append(("ETag", tag))
        if request.values(of: "If-None-Match").contains(where: { $0.contains(tag) }) {
            state.ledger.notModified += 1
            return LoopbackReply(304, fields: fields)
        }
        state.ledger.bytes += text.utf8.count
        return LoopbackReply(fields: fields, body: text)
    }

    private static func count(_ route: WeatherRoute, in ledger: inout Ledger) {
        switch route {
        case .stations: ledger.stations += 1
        case .current: ledger.current += 1
        case .forecast: ledger.forecast += 1
        case .report: ledger.reports += 1
        case .ledger, .unknown: ledger.other += 1
        }
    }

    private static func json(_ ledger: Ledger) -> LoopbackReply {
        let content = (try? JSONEncoder().encode(ledger)) ?? Data()
        let fields = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
        return LoopbackReply(fields: fields, bytes: Array(content))
    }

    /// FNV-1a of the text: the same in every process.
    private static func entityTag(of text: String) -> String {
        let hash = text.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return "\"\(String(hash, radix: 16))\""
    }
}

extension ServiceOptions {
    /// The seconds in which an empty bucket fills.
    var window: Int { refill > 0 ? max(1, capacity / refill) : 60 }
}
