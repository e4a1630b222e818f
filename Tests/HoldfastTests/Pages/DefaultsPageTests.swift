// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import Testing

/// Holds the tables of docs/reference/defaults.md to the values that the types have.
@Suite("Page: Defaults")
struct DefaultsPageTests {
    private static func page() throws -> [Substring] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = root.appendingPathComponent("docs/reference/defaults.md")
        return try String(contentsOf: page, encoding: .utf8).split(whereSeparator: \.isNewline)
    }

    private static func text(_ flag: Bool) -> String { flag ? "yes" : "no" }

    private static func text(bytes: Int) -> String {
        for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] where bytes >= 1 << shift {
            return "\(bytes >> shift) \(unit)"
        }
        return "\(bytes)"
    }

    private static func text(_ duration: Duration?) -> String {
        guard let duration, duration != .zero else { return "none" }
        let milliseconds = duration / .milliseconds(1)
        for (unit, length) in [("days", 86_400_000.0), ("s", 1_000)] where milliseconds >= length {
            let count = Int(milliseconds / length)
            return "\(count) \(count == 1 && unit == "days" ? "day" : unit)"
        }
        return "\(Int(milliseconds)) ms"
    }

    private func expect(_ rows: [(name: String, value: String)]) throws {
        let page = try Self.page()
        for row in rows {
            let start = "| `\(row.name)` | \(row.value) |"
            #expect(page.contains { $0.hasPrefix(start) }, "no row of the page begins with: \(start)")
        }
    }

    @Test("What CacheOptions() is")
    func caching() throws {
        let options = CacheOptions()
        #expect(options.mode == .private)
        try expect([
            ("mode", ".private"),
            ("heuristicFreshness", Self.text(options.heuristicFreshness)),
            ("heuristicFraction", "\(Int(options.heuristicFraction * 100)) %"),
            ("heuristicCap", Self.text(options.heuristicCap)),
            ("retention", Self.text(options.retention)),
            ("maximumLifetime", Self.text(options.maximumLifetime)),
            ("negativeLifetime", Self.text(options.negativeLifetime)),
            ("defaultLifetime", Self.text(options.defaultLifetime)),
            ("rules", options.rules == [] ? "none" : "some"),
            ("fixedLifetime", Self.text(options.fixedLifetime)),
            ("staleWhileRevalidate", Self.text(options.staleWhileRevalidate)),
            ("staleIfError", Self.text(options.staleIfError)),
            ("staleWhenDisconnected", Self.text(options.staleWhenDisconnected)),
            ("serveStaleAfter", Self.text(options.serveStaleAfter)),
            ("maximumBackgroundRevalidations", "\(options.maximumBackgroundRevalidations)"),
            ("collapsesRequests", Self.text(options.collapsesRequests)),
            ("maximumVariants", "\(options.maximumVariants)"),
            ("maximumKeyContent", Self.text(bytes: options.maximumKeyContent)),
            ("cookiesMayBorrow", Self.text(options.cookiesMayBorrow)),
            ("honorsClearSiteData", Self.text(options.honorsClearSiteData)),
            ("abandonedBodyAllowance", Self.text(bytes: options.abandonedBodyAllowance)),
            ("longestFillWait", Self.text(options.longestFillWait)),
            ("fillLease", Self.text(options.fillLease)),
        ])
    }

    @Test("What RetryRules() is")
    func retrying() throws {
        let rules = RetryRules()
        #expect(rules.backoff.jitter == .full && rules.budget == .pool)
        #expect(rules.hedging == nil && rules.circuit == nil)
        try expect([
            ("maxAttempts", "\(rules.maxAttempts)"),
            ("backoff.base", Self.text(rules.backoff.base)),
            ("backoff.multiplier", "\(Int(rules.backoff.multiplier))"),
            ("backoff.cap", Self.text(rules.backoff.cap)),
            ("backoff.jitter", ".full"),
            ("throttlingBackoff.base", Self.text(rules.throttlingBackoff.base)),
            ("budget", ".pool"),
            ("parks", Self.text(rules.parks)),
            ("maxWaiting", "1,000"),
            ("obeysRetryAfter", Self.text(rules.obeysRetryAfter)),
            ("maxServerDelay", Self.text(rules.maxServerDelay)),
            ("closesGate", Self.text(rules.closesGate)),
            ("obeysRateLimit", Self.text(rules.obeysRateLimit)),
            ("retriesUnsafeWhenThrottled", Self.text(rules.retriesUnsafeWhenThrottled)),
            ("retriesUnsafeOnStaleSocket", Self.text(rules.retriesUnsafeOnStaleSocket)),
            ("mintsIdempotencyKey", Self.text(rules.mintsIdempotencyKey)),
            ("replayLimit", Self.text(bytes: rules.replayLimit)),
            ("resumesBodies", Self.text(rules.resumesBodies)),
            ("respectsInnerRetries", Self.text(rules.respectsInnerRetries)),
            ("waitsForConnectivity", Self.text(rules.waitsForConnectivity)),
            ("hedging", "none"),
            ("circuit", "none"),
        ])
        #expect(rules.maxWaiting == 1_000)
    }

    @Test("What PipelineConfiguration() and URLSessionTransport.Limits() are")
    func pipelines() throws {
        let configuration = PipelineConfiguration()
        let limits = URLSessionTransport.Limits()
        try expect([
            ("attemptTimeout", Self.text(configuration.attemptTimeout)),
            ("callTimeout", Self.text(configuration.callTimeout)),
            ("redirects", ".follow(limit: \(configuration.redirects.limit))"),
            ("Limits.bodyInMemory", Self.text(bytes: limits.bodyInMemory)),
            ("Limits.bodyOnDisk", Self.text(bytes: limits.bodyOnDisk)),
            ("Limits.requestBodyInMemory", Self.text(bytes: limits.requestBodyInMemory)),
        ])
    }
}
