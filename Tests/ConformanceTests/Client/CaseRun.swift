// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Carries the requests of one case to a cache of the case's own, and its answers back.
protocol CaseCourier: Sendable {
    /// Sends a request; a call that fails is a response with a failure.
    func receive(_ request: URLRequest, returnsRedirects: Bool) async -> ReceivedResponse

    /// Lets what a call left running in the background reach its end; none of it waits for anything but its turn.
    func settle() async

    /// Ends what carries.
    func end() async
}

extension CaseCourier {
    func end() async {}
}

/// How the requests of a case travel: made anew for each, with an origin and a clock that are the case's own.
typealias CourierFactory =
    @Sendable (_ origin: CaseOrigin, _ clock: ManualClock, _ mode: ConformanceMode?) async throws -> any CaseCourier

/// Sends the requests of one case and has them judged.
struct CaseRun {
    private let test: CacheCase
    private let origin: CaseOrigin
    private let clock = ManualClock()
    private let courier: any CaseCourier
    private let target: String

    /// - Parameters:
    ///   - test: the case.
    ///   - mode: the cache's mode; nil for no cache at all.
    ///   - makeCourier: what carries the requests; by default a pipeline of this process.
    init(
        _ test: CacheCase,
        mode: ConformanceMode?,
        by makeCourier: CourierFactory = { PipelineCourier($0, clock: $1, mode: $2) }
    ) async throws {
        self.test = test
        target = "http://origin.example/test/\(test.id)"
        origin = CaseOrigin(test.requests, marker: "body of \(test.id)", clock: clock)
        courier = try await makeCourier(origin, clock, mode)
    }

    /// What came of the case, and what was sent and received, line by line.
    func run() async -> (verdict: Verdict, transcript: [String]) {
        let outcome = await verdict()
        await courier.end()
        return outcome
    }

    private func verdict() async -> (verdict: Verdict, transcript: [String]) {
        let check = CaseCheck(requests: test.requests, marker: origin.marker)
        var responses: [ReceivedResponse] = []
        var transcript: [String] = []
        for (index, config) in test.requests.enumerated() {
            let request: URLRequest
            do {
                request = try self.request(config, number: index + 1, after: responses.last)
            } catch {
                return (.setupFailed("request \(index + 1): \(error)"), transcript)
            }
            let seenBefore = origin.exchanges.count
            let response = await courier.receive(request, returnsRedirects: config.returnsRedirects)
            await courier.settle()
            responses.append(response)
            transcript += lines(index + 1, request, origin.exchanges.dropFirst(seenBefore), response)
            if let verdict = check.response(response, to: index) { return (verdict, transcript) }
            if config.pausesAfter { clock.advance(by: .seconds(3)) }
        }
        let exchanges = origin.exchanges
        for (index, response) in responses.enumerated() {
            let exchange = exchanges.last { $0.number == index + 1 }
            if let verdict = check.exchange(exchange, response, of: index) { return (verdict, transcript) }
        }
        return (.passed, transcript)
    }

    private struct BadTarget: Error {}

    private func request(
        _ config: CaseRequest,
        number: Int,
        after previous: ReceivedResponse?
    ) throws -> URLRequest {
        let text = target + (config.filename.map { "/\($0)" } ?? "") + (config.query.map { "?\($0)" } ?? "")
        guard let url = URL(string: text) else { throw BadTarget() }
        var request = URLRequest(url: url)
        request.httpMethod = config.method
        let serverNow = previous?.number("Server-Now").map { Timestamp(millisecondsSinceEpoch: Int64($0)) }
        let now = config.countsFromServerNow ? serverNow ?? clock.timestamp : clock.timestamp
        for field in config.fields {
            let isOld = config.oldDateNames.contains(field.name.lowercased())
            let value = field.value.spelled(for: field.name, now: now, inOldForm: isOld)
            request.addValue(value, forHTTPHeaderField: field.name)
        }
        request.setValue(String(number), forHTTPHeaderField: CaseOrigin.numberField)
        request.httpBody = config.body.map { Data($0.utf8) }
        // What the Fetch standard has a client send in its cache mode no-cache (HTTP-network-or-cache fetch).
        if config.forcesRevalidation { request.setValue("max-age=0", forHTTPHeaderField: "Cache-Control") }
        return request
    }

    private func lines(
        _ number: Int,
        _ request: URLRequest,
        _ exchanges: ArraySlice<CaseOrigin.Exchange>,
        _ response: ReceivedResponse
    ) -> [String] {
        var lines = ["\(number) \(request.httpMethod ?? "GET") \(request.url?.absoluteString ?? "")"]
        let fields = HeaderFields(request.allHTTPHeaderFields ?? [:])
        lines += fields.map { "    > \($0.name.rawName): \($0.value)" }
        for exchange in exchanges {
            lines.append("    origin saw \(exchange.number) \(exchange.method), answered \(exchange.status)")
            lines += exchange.requestFields.map { "      > \($0.name.rawName): \($0.value)" }
            lines += exchange.responseFields.map { "      < \($0.name.rawName): \($0.value)" }
        }
        lines += response.interim.map { "    < interim \($0.status)" }
        lines.append("    < \(response.status.map(String.init) ?? response.failure ?? "nothing")")
        lines += response.fields.map { "    < \($0.name.rawName): \($0.value)" }
        return lines
    }
}
