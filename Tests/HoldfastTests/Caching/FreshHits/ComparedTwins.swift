// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Two pipelines that are asked the same, of which one answers plain requests the short way: nothing but time may tell them apart.
final class ComparedTwins {
    let short: ComparedSide
    let long: ComparedSide
    /// How many answers were ready.
    private(set) var byFactsCount = 0

    init(_ setting: ComparedSetting) {
        short = ComparedSide(setting, answersFreshHits: true)
        long = ComparedSide(setting, answersFreshHits: false)
    }

    /// Over an origin that numbers its answers in their bodies.
    convenience init(
        _ chain: ComparedChain = .lone,
        _ options: CacheOptions = CacheOptions(),
        store: StoreMaker = .memory,
        _ fields: @escaping @Sendable (URLRequest, Int) -> HeaderFields = { _, _ in ["Cache-Control": "max-age=60"] }
    ) {
        self.init(
            ComparedSetting(chain: chain, options: options, store: store) { request, number in
                .respond(200, fields(request, number), body: "\(number + 1)")
            }
        )
    }

    /// Asks both; what they see must be equal.
    ///
    /// - Parameter note: names the call where it is not.
    @discardableResult
    func ask(
        _ request: URLRequest = .get(),
        body: RequestBody? = nil,
        _ options: CallOptions = CallOptions(),
        note: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async -> ComparedAnswer {
        let seen = await short.ask(request, body: body, options)
        let expected = await long.ask(request, body: body, options)
        #expect(seen == expected, "\(note)", sourceLocation: sourceLocation)
        #expect(!expected.isByFacts, "\(note)", sourceLocation: sourceLocation)
        if seen.isByFacts { byFactsCount += 1 }
        return seen
    }

    /// Asks until the answer is ready: once for the origin, once for what is kept of the hit.
    @discardableResult
    func warm(
        _ request: URLRequest = .get(),
        _ options: CallOptions = CallOptions(),
        sourceLocation: SourceLocation = #_sourceLocation
    ) async -> ComparedAnswer {
        await ask(request, options, note: "first", sourceLocation: sourceLocation)
        await ask(request, options, note: "second", sourceLocation: sourceLocation)
        let seen = await ask(request, options, note: "third", sourceLocation: sourceLocation)
        #expect(seen.isByFacts, "the third answer is not ready", sourceLocation: sourceLocation)
        return seen
    }

    func change(_ change: (ComparedSide) async throws -> Void) async rethrows {
        try await change(short)
        try await change(long)
    }

    func advance(_ duration: Duration) {
        short.clock.advance(by: duration)
        long.clock.advance(by: duration)
    }

    func setClock(by duration: Duration) {
        short.clock.skewTimeOfDay(by: duration)
        long.clock.skewTimeOfDay(by: duration)
    }

    /// What the hook of a `.hooked` chain sets on each request from now on.
    func setEdit(_ fields: [String: String]) {
        short.edit.set(fields)
        long.edit.set(fields)
    }

    func setImplicit(_ fields: HeaderFields) {
        short.implicit.set(fields)
        long.implicit.set(fields)
    }

    /// Whether both have counted and told the same, as to which the time that hits spared is no exception while clocks stand still.
    func expectSameCounts(note: String = "", sourceLocation: SourceLocation = #_sourceLocation) {
        for (left, right) in zip(short.caches, long.caches) {
            #expect(left.statistics == right.statistics, "\(note)", sourceLocation: sourceLocation)
            #expect(left.originStatistics == right.originStatistics, "\(note)", sourceLocation: sourceLocation)
            let (now, hour) = (short.clock.now, Duration.seconds(3_600))
            #expect(
                left.statisticsByMinute(overLast: hour, now: now) == right.statisticsByMinute(overLast: hour, now: now),
                "\(note)",
                sourceLocation: sourceLocation
            )
            #expect(
                left.store.statistics.entryCount == right.store.statistics.entryCount,
                "\(note)",
                sourceLocation: sourceLocation
            )
        }
        // What goes on in the background goes on at the same time as the call, and each by itself in one order.
        for isBackground in [false, true] {
            let (left, right) = (told(short, isBackground), told(long, isBackground))
            #expect(left == right, "\(note)", sourceLocation: sourceLocation)
        }
    }

    /// What observers were told, without the numbers that calls have in a process.
    private func told(_ side: ComparedSide, _ isBackground: Bool) -> [String] {
        side.events.events.filter { $0.isBackground == isBackground }.map { event in
            let parts: [String?] = [
                "\(event.name)", "\(event.timestamp)", event.status.map { "\($0)" }, event.source.map { "\($0)" },
                event.cacheDecision.map { "\($0)" }, event.notStoredReason.map { "\($0)" }, event.errorCode,
                event.delay.map { "\($0)" }, event.bytes.map { "\($0)" }, event.attempt.map { "\($0)" },
                event.method.map { "\($0)" }, event.url.map { "\($0)" }, event.detail,
            ]
            return parts.map { $0 ?? "-" }.joined(separator: " ")
        }
    }
}
