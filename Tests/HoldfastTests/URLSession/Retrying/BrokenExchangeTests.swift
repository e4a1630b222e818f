// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the transport says of an exchange that broke, and which class of RETRY.md §3.1 follows.
@Suite("E17: progress and class of broken exchanges", .timeLimit(.minutes(20)))
struct BrokenExchangeTests {
    struct Break: Sendable, CustomStringConvertible {
        let description: String
        var opening = LoopbackOpening.serve
        var reply = LoopbackReply()
    }

    static let breaks: [Break] = [
        Break(description: "closed on accept", opening: .close),
        Break(description: "reset on accept", opening: .reset),
        Break(description: "reset within the head", opening: .breaking(afterBytes: 10, resetting: true)),
        Break(description: "reset after the request", reply: LoopbackReply(before: [.reset])),
        Break(description: "closed after the request", reply: LoopbackReply(before: [.close])),
        Break(description: "half-closed after the request", reply: LoopbackReply(before: [.halfClose])),
        Break(description: "reset within the status line", reply: LoopbackReply(before: [.raw("HTTP/1."), .reset])),
    ]

    @Test("A new connection that breaks proves nothing: a POST is never sent again, a GET is", arguments: breaks)
    func fresh(_ way: Break) async throws {
        for (method, content) in [("GET", 0), ("POST", 0), ("POST", 10), ("POST", 300_000)] {
            let server = try LoopbackServer.start(opening: { _ in way.opening }) { _ in way.reply }
            defer { server.stop() }
            let failure = await failure(URLSessionTransport(), server, method, content)
            #expect(failure?.connectionReused == false, "\(method), \(content)")
            // A reset on accept may come while the connection is made, and then it was not.
            if failure?.kind == .connect {
                #expect(way.opening == .reset)
                #expect(failure?.progress == .notSent)
                continue
            }
            #expect(failure?.kind == .connectionLost, "\(method), \(content)")
            #expect(failure.map { $0.progress >= .headSent && $0.progress < .headReceived } == true)
            let expected: RetryClass = method == "GET" ? .ambiguous : .never(.notIdempotent)
            #expect(retryClass(method, failure) == expected, "\(method), \(content)")
        }
    }

    @Test(
        "Complaint 7 of 12: if a reused connection breaks before a response, a PUT is resent at once, a POST is not",
        arguments: breaks.filter { $0.opening == .serve }
    )
    func reused(_ way: Break) async throws {
        for method in ["PUT", "POST"] {
            let server = try LoopbackServer.start { $0.path == "/warm" ? LoopbackReply(body: "x") : way.reply }
            defer { server.stop() }
            let transport = URLSessionTransport()
            let warm = Pipeline(transport: transport)
            _ = try await warm.data(for: URLRequest(url: server.url("/warm")))
            let failure = await failure(transport, server, method, 10)
            #expect(failure?.kind == .connectionLost)
            #expect(server.requests.filter { $0.path == "/" }.count == 1, "\(method)")
            #if !canImport(Darwin)
                #expect(failure?.connectionReused == true)
                #expect(retryClass(method, failure) == (method == "PUT" ? .staleSocket : .never(.notIdempotent)))
            #endif
        }
    }

    @Test(
        "Complaint 7 of 12: a connection closed while idle is noticed before anything is sent",
        arguments: ["GET", "POST"]
    )
    func idle(_ method: String) async throws {
        let server = try LoopbackServer.start { request in
            var reply = LoopbackReply(body: "x")
            reply.closes = request.path == "/warm"
            return reply
        }
        defer { server.stop() }
        let client = Pipeline(transport: URLSessionTransport())
        _ = try await client.data(for: URLRequest(url: server.url("/warm")))
        try await server.connectionEnds(atLeast: 1)
        var request = URLRequest(url: server.url("/"))
        request.httpMethod = method
        if method == "POST" { request.httpBody = Data("content".utf8) }
        #expect(try await client.data(for: request).0 == Data("x".utf8))
        #expect(server.requests.count == 2)
    }

    private func failure(
        _ transport: URLSessionTransport,
        _ server: LoopbackServer,
        _ method: String,
        _ content: Int
    ) async -> AttemptFailure? {
        var request = URLRequest(url: server.url("/"))
        request.httpMethod = method
        let body: RequestBody = content == 0 ? .none : .data(Data(repeating: 65, count: content))
        do {
            _ = try await transport.send(request, body: body, context: CallContext())
            Issue.record("\(method) with \(content) bytes should fail")
            return nil
        } catch let error as ServiceError {
            let kinds: [ServiceError.Code: AttemptFailure.Kind] = [
                .connectionLost: .connectionLost, .connect: .connect,
            ]
            return AttemptFailure(
                kind: kinds[error.code] ?? .other,
                progress: error.progress ?? .notSent,
                connectionReused: error.connectionReused
            )
        } catch {
            Issue.record("\(error)")
            return nil
        }
    }

    private func retryClass(_ method: String, _ failure: AttemptFailure?) -> RetryClass? {
        failure.map { failure in
            RetryRules.default.classify(
                FailedExchange(
                    .failure(failure),
                    method: RequestMethod(rawValue: method),
                    receivedAt: Timestamp(secondsSinceEpoch: 0)
                )
            )
        }
    }
}
