// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import Testing

/// Holds the tables of docs/reference/defaults.md to the values that the types have.
@Suite("Page: Defaults")
struct DefaultsPageTests {
    private static func lines(of path: String) throws -> [Substring] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        return text.split(whereSeparator: \.isNewline)
    }

    private static func page() throws -> [Substring] { try lines(of: "docs/reference/defaults.md") }

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

    @Test(
        "Every public setting has a row, under the heading of its type",
        arguments: [
            ("HoldfastSemantics", "CacheOptions"), ("HoldfastSemantics", "RetryRules"),
            ("Holdfast", "PipelineConfiguration"),
        ]
    )
    func whole(_ module: String, _ type: String) throws {
        let declarations = try Self.lines(of: "docs/api/\(module).txt").drop { !$0.hasPrefix("struct \(type) ") }
        let members = declarations.dropFirst().prefix { $0.hasPrefix("  ") }
        let settings = members.filter { $0.hasPrefix("  var ") && $0.hasSuffix("{ get set }") }
            .compactMap { $0.dropFirst(6).split(separator: ":").first }
        #expect(settings.count > 8)
        let rows = try Self.page().drop { !$0.hasPrefix("## ") || !$0.contains("`\(type)`") }
            .dropFirst().prefix { !$0.hasPrefix("## ") }
        for setting in settings {
            #expect(
                rows.contains { $0.hasPrefix("| `\(setting)`") || $0.hasPrefix("| `\(setting).") },
                "\(type).\(setting) has no row"
            )
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
            ("query", options.query == QueryOptions() ? "the whole query" : "some"),
            ("ignoredCookies", options.ignoredCookies == IgnoredCookies.wellKnown.names ? ".wellKnown" : "others"),
            ("tagFields", options.tagFields.isEmpty ? "none" : "some"),
            ("targetedFields", options.targetedFields == nil ? "by mode" : "some"),
            ("cacheName", options.cacheName ?? "none"),
            ("showsKeyInCacheStatus", Self.text(options.showsKeyInCacheStatus)),
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
            ("countsFreeResends", Self.text(rules.countsFreeResends)),
            ("maxParking", Self.text(rules.maxParking)),
            ("vendorHints", rules.vendorHints.isEmpty ? "none" : "some"),
            ("pacesAdaptively", Self.text(rules.pacesAdaptively)),
            ("isGateway", Self.text(rules.isGateway)),
            ("repeatableMethods", rules.repeatableMethods == nil ? "the idempotent ones" : "some"),
            ("retryableStatuses", rules.retryableStatuses.isEmpty ? "none" : "some"),
            ("finalStatuses", rules.finalStatuses.isEmpty ? "none" : "some"),
            ("callTimeout", Self.text(rules.callTimeout)),
            ("attemptTimeout", Self.text(rules.attemptTimeout)),
            ("minimumAttemptTime", Self.text(rules.minimumAttemptTime)),
            ("attemptField", rules.attemptField?.rawName ?? "none"),
            ("leavesRetriesToCaller", Self.text(rules.leavesRetriesToCaller)),
            ("timeLeftField", rules.timeLeftField?.rawName ?? "none"),
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
            ("trustedOrigins", "none"),
            ("authorization", configuration.authorization == nil ? "none" : "some"),
            ("clock", "\(configuration.clock)"),
            ("observers", configuration.observers.isEmpty ? "none" : "some"),
            ("prepare", configuration.prepare.isEmpty ? "none" : "some"),
            ("executor", configuration.executor == nil ? "none" : "some"),
            ("Limits.bodyInMemory", Self.text(bytes: limits.bodyInMemory)),
            ("Limits.bodyOnDisk", Self.text(bytes: limits.bodyOnDisk)),
            ("Limits.requestBodyInMemory", Self.text(bytes: limits.requestBodyInMemory)),
        ])
    }
}
