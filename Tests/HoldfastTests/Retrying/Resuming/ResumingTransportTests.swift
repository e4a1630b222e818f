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

@Suite("RETRY §1 row 46: broken response bodies are resumed without a cache", .timeLimit(.minutes(20)))
struct ResumingTransportTests {
    let clock = ManualClock(autoAdvances: true)

    private func response(
        _ origin: BreakingOrigin,
        _ request: URLRequest = .get(),
        body: RequestBody = .none,
        maxResumes: Int = 3,
        governor: RetryGovernor? = nil,
        options: CallOptions = CallOptions()
    ) async throws -> Response {
        let transport = ResumingTransport(origin, maxResumes: maxResumes, governor: governor)
        let deadline = clock.now.advanced(by: .seconds(1))
        let context = CallContext(clock: clock, deadline: deadline, options: options)
        return try await transport.send(request, body: body, context: context)
    }

    /// Reads to the end or the failure: what came, and whether that was whole.
    private func read(_ body: ResponseBody) async throws -> (bytes: [UInt8], failure: ServiceError?) {
        var bytes: [UInt8] = []
        do {
            for try await chunk in body { bytes += chunk.array }
            return (bytes, nil)
        } catch let error as ServiceError {
            return (bytes, error)
        }
    }

    @Test("Range from where it broke off, If-Range, the original fields, and a separate timeout for each resume")
    func resumes() async throws {
        let origin = BreakingOrigin([.breaks(after: 10), .fails(.connect), .breaks(after: 30), .whole])
        var rules = RetryRules(backoff: Backoff(jitter: .none))
        rules.attemptTimeout = .seconds(5)
        rules.budget = .unlimited
        rules.timeLeftField = "Time-Left"
        let fields = ["X-Own": "1", "If-None-Match": "\"0\"", "Time-Left": "1000"]
        let response = try await response(
            origin,
            .get("http://origin.example/a", fields),
            governor: RetryGovernor(rules)
        )
        #expect(response.status == .ok)
        #expect(response.body.length == 100)
        let result = try await read(response.body)
        #expect(result.failure == nil)
        #expect(result.bytes == origin.content)
        #expect(origin.ranges == [nil, "bytes=10-", "bytes=10-", "bytes=40-"])
        #expect(origin.times == [.zero, .milliseconds(100), .milliseconds(300), .milliseconds(700)])
        #expect(origin.deadlines == [.seconds(1), .milliseconds(5100), .milliseconds(5300), .milliseconds(5700)])
        for request in origin.requests.dropFirst() {
            #expect(request.value(forHTTPHeaderField: "If-Range") == "\"a\"")
            #expect(request.value(forHTTPHeaderField: "X-Own") == "1")
            #expect(request.value(forHTTPHeaderField: "Accept-Encoding") == "identity")
            #expect(request.value(forHTTPHeaderField: "If-None-Match") == nil)
            #expect(request.value(forHTTPHeaderField: "Time-Left") == nil)
        }
        #expect(origin.openBodies == 0)
    }

    @Test("Whatever breaks where: identical bytes, or the first of them and the original error", arguments: 1...8)
    func fuzz(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        for round in 0..<150 {
            let content = (0..<Int.random(in: 1...300, using: &generator)).map { UInt8(truncatingIfNeeded: $0) }
            let breaks = Int.random(in: 0...5, using: &generator)
            let courses: [BreakingOrigin.Course] = (0..<breaks).map { number in
                switch Int.random(in: 0..<(number == 0 ? 1 : 8), using: &generator) {
                case 6: .fails(.timeout)
                case 7: .answers(Response(status: .badGateway))
                default: .breaks(after: Int.random(in: 0..<content.count, using: &generator))
                }
            }
            var fields: HeaderFields = ["ETag": "\"a\""]
            if Bool.random(using: &generator) { fields[.contentLength] = String(content.count) }
            let size = Int.random(in: 1...40, using: &generator)
            let enforces = Bool.random(using: &generator)
            let origin = BreakingOrigin(
                courses,
                content: content,
                fields: fields,
                chunkSize: size,
                enforcesDeadline: enforces
            )
            let note: Comment = "seed \(seed), round \(round): \(content.count) bytes, \(courses)"
            // The pipeline's timer would win at once against a clock that jumps.
            let context = CallContext(clock: enforces ? clock : ManualClock())
            var rules = RetryRules(backoff: Backoff(base: .zero))
            rules.budget = .unlimited
            let transport = ResumingTransport(origin, governor: RetryGovernor(rules))
            let response = try await transport.send(.get(), body: .none, context: context)
            let result = try await read(response.body)
            #expect(content.starts(with: result.bytes), note)
            #expect((result.failure == nil) == (result.bytes.count == content.count), note)
            if let failure = result.failure {
                #expect(failure.code == .connectionLost && failure.cause is BreakingOrigin.Broken, note)
            }
            #expect(origin.requests.count <= 4, note)
            #expect(origin.openBodies == 0, note)
        }
    }

    @Test("If the rest is of another representation, the original failure is thrown", arguments: [0, 10])
    func refusals(_ offset: Int) async throws {
        let part: HeaderFields = ["ETag": "\"a\"", "Content-Range": "bytes \(offset)-99/100"]
        var others: [Response] = []
        others.append(Response(status: .ok, fields: ["ETag": "\"b\""]))
        others.append(Response(status: .ok, fields: ["ETag": "\"a\"", "Content-Length": "100"]))
        others.append(Response(status: .partialContent, fields: part.merging(["ETag": "\"b\""])))
        others.append(Response(status: .partialContent, fields: part.merging(["Content-Range": "bytes 11-99/100"])))
        others.append(Response(status: .partialContent, fields: part, contentDecoded: true))
        others.append(Response(status: .rangeNotSatisfiable))
        others.append(Response(status: .serviceUnavailable, fields: ["Retry-After": "0"]))
        for var other in others {
            other.body = ResponseBody(ByteChunk([UInt8](repeating: 7, count: 100 - offset)))
            let origin = BreakingOrigin([.breaks(after: offset), .answers(other)])
            let body = try await response(origin).body
            let result = try await read(body)
            #expect(result.bytes == Array(origin.content.prefix(offset)), "\(other.head)")
            #expect(result.failure?.cause is BreakingOrigin.Broken, "\(other.head)")
            #expect(origin.requests.count == 2, "\(other.head)")
            // It stays failed: nothing is asked for again.
            await #expect(throws: ServiceError.self) { try await body.source?.next() }
            #expect(origin.requests.count == 2, "\(other.head)")
        }
    }

    @Test(
        "RFC 9110 §14.4: a rest that is shorter or longer than announced ends in the original failure",
        arguments: [89, 91]
    )
    func miscounted(_ count: Int) async throws {
        let fields: HeaderFields = ["ETag": "\"a\"", "Content-Range": "bytes 10-99/100"]
        let rest = ResponseBody(ByteChunk([UInt8](repeating: 7, count: count)))
        let origin = BreakingOrigin([
            .breaks(after: 10), .answers(Response(status: .partialContent, fields: fields, body: rest)),
        ])
        let result = try await read(try await response(origin).body)
        #expect(result.bytes.count == min(10 + count, 100))
        #expect(result.failure?.cause is BreakingOrigin.Broken)
    }

    @Test("A local limit, a response that is not HTTP, and a cancellation are not resumed")
    func incurable() async throws {
        let failures: [any Error] = [
            ServiceError(.bodyTooLarge, "scripted"), ServiceError(.protocolError, "scripted"), CancellationError(),
            BreakingOrigin.Broken(),
        ]
        for failure in failures {
            let step = ScriptedTransport.Step.stream(200, ["ETag": "\"a\""], chunks: ["abc"], failure: failure)
            let transport = ScriptedTransport([step], repeatsLastStep: true)
            let response = try await ResumingTransport(transport)
                .send(.get(), body: .none, context: CallContext(clock: clock))
            let error = await #expect(throws: (any Error).self) { try await response.body.collect() }
            #expect(error.map { "\($0)" } == "\(failure)")
            #expect(transport.sent.count == 1, "\(failure)")
        }
    }

    /// An exchange whose body is handed up as it broke.
    struct Refusal: Sendable, CustomStringConvertible {
        let description: String
        var request = URLRequest.get()
        var body = RequestBody.none
        var fields: HeaderFields = ["ETag": "\"a\"", "Content-Length": "100"]
        var options = CallOptions()
        var maxResumes = 3
    }

    static let untouchables: [Refusal] = [
        Refusal(description: "a POST", request: .request("POST", "http://origin.example/a")),
        Refusal(
            description: "a Range of its own",
            request: .get("http://origin.example/a", ["Range": "bytes=0-"])
        ),
        Refusal(description: "a weak tag", fields: ["ETag": "W/\"a\""]),
        Refusal(description: "no tag", fields: [:]),
        Refusal(description: "content read once", body: .oneShot(BreakingBody([], chunkSize: 1, .ends, CountWatch()))),
        Refusal(description: "none allowed", maxResumes: 0),
        Refusal(description: "not to be repeated", options: options { $0.isIdempotent = false }),
        Refusal(description: "retries off", options: options { $0.retryRules = RetryRules.never }),
        Refusal(description: "rules that do not resume", options: options { $0.retryRules = .default }),
        Refusal(description: "one attempt", options: options { $0.retryRules = resuming(maxAttempts: 1) }),
        Refusal(description: "no retrier", options: options { $0.retrierFactory = .backoff(.never) }),
    ]

    static func resuming(maxAttempts: Int) -> RetryRules {
        var rules = RetryRules(maxAttempts: maxAttempts)
        rules.resumesBodies = true
        return rules
    }

    static func options(_ change: (inout CallOptions) -> Void) -> CallOptions {
        var options = CallOptions()
        change(&options)
        return options
    }

    @Test("A body that is not resumed fails as it broke, and costs no request", arguments: untouchables)
    func untouched(_ refusal: Refusal) async throws {
        let origin = BreakingOrigin([.breaks(after: 10)], fields: refusal.fields)
        let response = try await response(
            origin,
            refusal.request,
            body: refusal.body,
            maxResumes: refusal.maxResumes,
            options: refusal.options
        )
        #expect(response.body.source is BreakingBody)
        #expect(try await read(response.body).failure?.cause is BreakingOrigin.Broken)
        #expect(origin.requests.count == 1)
    }

    @Test("An unanswered resume ends with its own timeout, and another follows")
    func unanswered() async throws {
        let clock = ManualClock()
        var rules = RetryRules(backoff: Backoff(base: .zero))
        rules.attemptTimeout = .seconds(5)
        rules.budget = .unlimited
        let origin = BreakingOrigin([.breaks(after: 10), .silent], enforcesDeadline: false)
        let response = try await ResumingTransport(origin, governor: RetryGovernor(rules))
            .send(.get(), body: .none, context: CallContext(clock: clock))
        let reader = Task { try await response.body.collect() }
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(5))
        #expect(try await reader.value.array == origin.content)
        #expect(origin.times == [.zero, .zero, .seconds(5)])
        #expect(origin.deadlines == [nil, .seconds(5), .seconds(10)])
    }

    @Test(
        "A pipeline resumes if its rules say so, and a cache above stores one complete 200",
        arguments: [true, false]
    )
    func pipeline(_ resumes: Bool) async throws {
        let origin = BreakingOrigin(
            [.breaks(after: 30), .breaks(after: 0)],
            fields: ["ETag": "\"a\"", "Content-Length": "100", "Cache-Control": "max-age=60"]
        )
        var rules = RetryRules()
        rules.resumesBodies = resumes
        rules.budget = .unlimited
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let pipeline = Pipeline(
            transport: origin,
            cache: HTTPCache(store: MemoryStore(capacity: 1 << 20)),
            retrierFactory: .backoff(rules),
            configuration: configuration
        )
        let first = try await read(try await pipeline.send(.get()).body)
        #expect(first.bytes == Array(origin.content.prefix(resumes ? 100 : 30)))
        #expect((first.failure == nil) == resumes)
        guard resumes else { return }
        #expect(origin.ranges == [nil, "bytes=30-", "bytes=30-"])
        let second = try await pipeline.send(.get())
        #expect(second.source == .fresh)
        #expect(second.status == .ok)
        #expect(second.fields[.contentLength] == "100")
        #expect(try await read(second.body).bytes == origin.content)
        #expect(origin.requests.count == 3)
    }
}
