// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("E17: broken sockets, and what reaches the server twice", .timeLimit(.minutes(20)))
struct DuplicateTests {
    private static let rules: RetryRules = {
        let quick = Backoff(base: .milliseconds(1), cap: .milliseconds(4))
        var rules = RetryRules(backoff: quick, maxAttempts: 6)
        rules.throttlingBackoff = quick
        // What is shown here is that proof decides, also where there is budget for anything.
        rules.budget = .unlimited
        return rules
    }()

    private static let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "POST", "POST"]

    @Test(
        "Complaint 4 of 12: 200 mixed calls over breaking connections: no POST is acted on twice, every GET survives",
        arguments: [17, 18] as [UInt64]
    )
    func mixed(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let treatments = (0..<200).map { _ in
            DuplicateCounter.Treatment.allCases.randomElement(using: &generator) ?? .good
        }
        let openings = (0..<40).map { _ in
            [
                LoopbackOpening.serve, .serve, .serve, .reset, .close, .breaking(afterBytes: 40, resetting: true),
            ].randomElement(using: &generator) ?? .serve
        }
        let counter = DuplicateCounter { treatments[$0] }
        let server = try LoopbackServer.start(opening: { $0 % 3 == 2 ? openings[$0 % 40] : .serve }) {
            counter.answer($0)
        }
        defer { server.stop() }
        var rules = DuplicateTests.rules
        // Four lanes may fall into step, so that each third connection, which may break, is the same call's every time.
        rules.maxAttempts = 60
        let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(rules))
        let outcomes = await withTaskGroup(of: [(Int, Outcome)].self) { group in
            for lane in 0..<4 {
                group.addTask {
                    var outcomes: [(Int, Outcome)] = []
                    for number in stride(from: lane, to: 200, by: 4) {
                        outcomes.append((number, await outcome(number, client, server)))
                    }
                    return outcomes
                }
            }
            return await group.reduce(into: [Int: Outcome]()) { all, some in
                for (number, outcome) in some { all[number] = outcome }
            }
        }
        #expect(counter.spoiledCount == 0, "seed \(seed): contents that are not what was given")
        for number in 0..<200 {
            let method = DuplicateTests.methods[number % 8]
            let note: Comment = "seed \(seed), request \(number): \(method), \(treatments[number])"
            if ["POST", "PATCH"].contains(method) {
                #expect(counter.applied(number) <= 1, note)
                if outcomes[number] == .answered(200) { #expect(counter.applied(number) == 1, note) }
            } else {
                #expect(outcomes[number] == .answered(200), note)
            }
        }
    }

    private enum Outcome: Equatable {
        case answered(Int)
        case failed(String)
    }

    private func outcome(_ number: Int, _ client: Pipeline, _ server: LoopbackServer) async -> Outcome {
        do {
            return .answered(try await send(number, client, server).status.rawValue)
        } catch {
            return .failed("\(error) \((error as? ServiceError)?.attempts ?? [])")
        }
    }

    private func send(_ number: Int, _ client: Pipeline, _ server: LoopbackServer) async throws -> Response {
        let method = DuplicateTests.methods[number % 8]
        var request = URLRequest(url: server.url("/\(number)"))
        request.httpMethod = method
        request.setValue("\(number)", forHTTPHeaderField: DuplicateCounter.field)
        // Every third request with content has it in a file or a stream instead of in memory.
        let isBare = ["GET", "HEAD", "DELETE"].contains(method) || number % 16 == 1
        let content = Data(DuplicateCounter.content(number).utf8)
        let body: RequestBody =
            isBare
            ? .none : number % 3 == 0 ? .oneShot(ListSource([ByteChunk(copying: Array(content))])) : .data(content)
        let response = try await client.send(request, body: body)
        if response.status == .ok { _ = try await response.body.collect() }
        return response
    }

    @Test(
        "§3.1: if nobody accepts connections nothing was sent, so even a POST is retried",
        arguments: ["POST", "GET"]
    )
    func refused(_ method: String) async throws {
        let port = try LoopbackServer.refusingPort()
        let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(DuplicateTests.rules))
        var request = URLRequest.request(method, "http://127.0.0.1:\(port)/")
        request.timeoutInterval = 30
        do {
            let body: RequestBody = method == "POST" ? .data(Data("x".utf8)) : .none
            _ = try await client.send(request, body: body)
            Issue.record("nobody should answer")
        } catch let error as ServiceError {
            #expect(error.code == .connect)
            #expect(error.progress == .notSent)
            #expect(error.attempts.count == 6)
            #expect(error.attempts.last?.stopReason == .attemptsExhausted)
        }
    }

    @Test("§3.1: after 421 and 425 a request is resent once, even a POST", arguments: [421, 425], ["POST", "GET"])
    func unprocessed(_ status: Int, _ method: String) async throws {
        let server = try LoopbackServer.start { request in
            request.number == 0 ? LoopbackReply(status) : LoopbackReply(body: request.text)
        }
        defer { server.stop() }
        let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(DuplicateTests.rules))
        var request = URLRequest(url: server.url("/"))
        request.httpMethod = method
        let body: RequestBody = method == "POST" ? .data(Data("content".utf8)) : .none
        let response = try await client.send(request, body: body)
        #expect(response.status == .ok)
        #expect(response.attempts.map(\.status?.rawValue) == [status, 200])
        #expect(try await response.read == (method == "POST" ? "content" : ""))
    }

    @Test(
        "§3.1: once bytes of a response arrived, a broken connection is an error for the reader, and nothing is resent"
    )
    func brokenBody() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .length(10), steps: [.send("abc"), .reset])
        }
        defer { server.stop() }
        let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(DuplicateTests.rules))
        let response = try await client.send(URLRequest(url: server.url("/")))
        do {
            _ = try await response.body.collect()
            Issue.record("the body should break")
        } catch let error as ServiceError {
            #expect(error.code == .connectionLost)
            #expect(error.progress == .bytesReceived)
        }
        #expect(server.requests.count == 1)
    }
}
