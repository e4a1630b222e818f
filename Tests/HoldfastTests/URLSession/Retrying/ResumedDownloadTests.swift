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

@Suite("RETRY §1 row 46, E17: real sockets that break during a body", .timeLimit(.minutes(20)))
struct ResumedDownloadTests {
    private static let content = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    private static let rules: RetryRules = {
        var rules = RetryRules(backoff: Backoff(base: .milliseconds(1), cap: .milliseconds(4)))
        rules.resumesBodies = true
        rules.budget = .unlimited
        return rules
    }()

    /// Sends a half of what is asked for and ends the connection, as often as `breaks` says; then all of it.
    private static func reply(_ request: LoopbackRequest, breaks: Int, _ end: LoopbackReply.Step) -> LoopbackReply {
        let first = request.values(of: "Range").first.flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0
        let rest = Array(content[min(first, content.count)...])
        var fields = [("ETag", "\"a\"")]
        if first > 0 { fields.append(("Content-Range", "bytes \(first)-\(content.count - 1)/\(content.count)")) }
        let isBroken = request.number < breaks
        return LoopbackReply(
            first > 0 ? 206 : 200,
            fields: fields,
            framing: .length(rest.count),
            steps: isBroken ? [.send(Array(rest.prefix(rest.count / 2))), end] : [.send(rest)]
        )
    }

    @Test("A download whose connection is closed or reset twice arrives completely, with every byte in order")
    func resumes() async throws {
        for end in [LoopbackReply.Step.close, .reset] {
            let server = try LoopbackServer.start { Self.reply($0, breaks: 2, end) }
            defer { server.stop() }
            let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(Self.rules))
            let response = try await client.send(URLRequest(url: server.url("/")))
            #expect(response.status == .ok)
            #expect(try await response.body.collect().array == Self.content)
            #expect(server.requests.count == 3)
            let later = server.requests.dropFirst()
            #expect(later.allSatisfy { $0.values(of: "If-Range") == ["\"a\""] })
            let starts = later.compactMap { $0.values(of: "Range").first.flatMap { Int($0.dropFirst(6).dropLast()) } }
            #expect(starts.count == 2 && starts == starts.sorted())
        }
    }

    @Test("If the representation changed meanwhile, the original failure is thrown")
    func changed() async throws {
        let server = try LoopbackServer.start { request in
            request.number == 0
                ? Self.reply(request, breaks: 1, .close) : LoopbackReply(fields: [("ETag", "\"b\"")], body: "other")
        }
        defer { server.stop() }
        let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(Self.rules))
        let response = try await client.send(URLRequest(url: server.url("/")))
        do {
            _ = try await response.body.collect()
            Issue.record("the body should fail")
        } catch let error as ServiceError {
            #expect(error.code == .connectionLost)
        }
        #expect(server.requests.count == 2)
    }
}
