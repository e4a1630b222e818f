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

/// Sends the requests of one case through a pipeline of its own and has them judged.
struct CaseRun {
    private let test: CacheCase
    private let origin: CaseOrigin
    private let clock = ManualClock()
    private let following: Pipeline
    private let handingUp: Pipeline
    private let target: String

    /// - Parameters:
    ///   - test: the case.
    ///   - mode: the cache's mode; nil for no cache at all.
    init(_ test: CacheCase, mode: ConformanceMode?) {
        self.test = test
        target = "http://origin.example/test/\(test.id)"
        origin = CaseOrigin(test.requests, marker: "body of \(test.id)", clock: clock)
        var cache: HTTPCache?
        if let mode {
            let options: CacheOptions = mode == .shared ? .shared : .private
            cache = HTTPCache(store: MemoryStore(capacity: 1 << 20), options: options)
        }
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        // The origin answers in no time, and a pause of its own moves the clock.
        configuration.attemptTimeout = nil
        following = Pipeline(transport: origin, cache: cache, configuration: configuration)
        configuration.redirects = .handUp
        handingUp = Pipeline(transport: origin, cache: cache, configuration: configuration)
    }

    /// What came of the case, and what was sent and received, line by line.
    func run() async -> (verdict: Verdict, transcript: [String]) {
        let judge = CaseJudge(requests: test.requests, marker: origin.marker)
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
            let response = await receive(request, config)
            await settle()
            responses.append(response)
            transcript += lines(index + 1, request, origin.exchanges.dropFirst(seenBefore), response)
            if let verdict = judge.response(response, to: index) { return (verdict, transcript) }
            if config.pausesAfter { clock.advance(by: .seconds(3)) }
        }
        let exchanges = origin.exchanges
        for (index, response) in responses.enumerated() {
            let exchange = exchanges.last { $0.number == index + 1 }
            if let verdict = judge.exchange(exchange, response, of: index) { return (verdict, transcript) }
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

    private func receive(_ request: URLRequest, _ config: CaseRequest) async -> ReceivedResponse {
        let interim = InterimLog()
        var options = CallOptions()
        options.onInterimResponse = { interim.append(InterimHead($0)) }
        var received = ReceivedResponse()
        do {
            let pipeline = config.handsRedirectsUp ? handingUp : following
            let response = try await pipeline.send(request, options: options)
            received.body = String(decoding: try await response.body.collect().array, as: UTF8.self)
            received.status = response.status.rawValue
            received.fields = response.fields
        } catch {
            received.failure = String(describing: error)
        }
        received.interim = interim.heads
        return received
    }

    /// Lets what a call left running in the background reach its end; none of it waits for anything but its turn.
    private func settle() async {
        await following.drain()
        await handingUp.drain()
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

/// The interim responses of one call, from whatever thread they come on.
private final class InterimLog: Sendable {
    private let received = Mutex<[InterimHead]>([])

    var heads: [InterimHead] { received.withLock { $0 } }

    func append(_ head: InterimHead) {
        received.withLock { $0.append(head) }
    }
}
