// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct Greeting: Codable, Sendable, Equatable {
    var text: String
    var at: Date
}

@Suite("A proxy over real sockets", .timeLimit(.minutes(20)))
struct ProxyLoopbackTests {
    /// Answers as the service of the seed's example does, after one 503.
    private func fibonacciServer() throws -> LoopbackServer {
        let calls = Mutex(0)
        return try LoopbackServer.start { request in
            let call = calls.withLock { calls in
                calls += 1
                return calls
            }
            guard call > 1 else { return LoopbackReply(503) }
            let count = URLComponents(string: request.target)?.queryItems?.first { $0.name == "count" }?.value
            var numbers = [0, 1]
            while numbers.count < count.flatMap({ Int($0) }) ?? 0 { numbers.append(numbers.suffix(2).reduce(0, +)) }
            return LoopbackReply(
                fields: [("Content-Type", "application/json"), ("Cache-Control", "max-age=60")],
                body: "\(numbers)"
            )
        }
    }

    @Test("E16, E-T28: the Fibonacci example, through one retry and then from the cache")
    func fibonacci() async throws {
        let server = try fibonacciServer()
        defer { server.stop() }
        let webServiceProxy = WebServiceProxy(
            session: URLSession.shared,
            baseURL: server.url("/"),
            cache: .inMemory(),
            retrierFactory: .default
        )
        for _ in 1...2 {
            let response: [Int] = try await webServiceProxy.invoke(
                .get,
                path: "test/fibonacci",
                arguments: [
                    "count": 8
                ]
            )
            #expect(response == [0, 1, 1, 2, 3, 5, 8, 13])
        }
        #expect(server.requests.map(\.target) == ["/test/fibonacci?count=8", "/test/fibonacci?count=8"])
    }

    @Test("E-T16: a POST with arguments and a body arrives complete, through a custom transport")
    func post() async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(fields: [("Content-Type", "application/json")], bytes: request.body)
        }
        defer { server.stop() }
        let proxy = WebServiceProxy(baseURL: server.url("/api")).with(headers: ["X-Client": "1"])
        let greeting = Greeting(text: "naïve +", at: Date(timeIntervalSince1970: 1_700_000_000.123))
        let tags = ["a&b", "c+d"]
        let answer: Greeting = try await proxy.invoke(
            .post,
            path: "greetings",
            arguments: ["tags": tags],
            body: greeting
        )
        #expect(answer == greeting)
        let request = try #require(server.requests.first)
        #expect(request.method == "POST")
        #expect(request.target == "/api/greetings?tags=a%26b&tags=c%2Bd")
        #expect(request.values(of: "Content-Type") == ["application/json"])
        #expect(request.values(of: "X-Client") == ["1"])
        #expect(request.text == #"{"at":1700000000123,"text":"naïve +"}"#)
    }

    @Test("E-T19: a text/plain error, over a session and over a custom transport", arguments: [false, true])
    func plainError(usesSession: Bool) async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(404, fields: [("Content-Type", "text/plain; charset=utf-8")], body: "no such thing")
        }
        defer { server.stop() }
        let proxy =
            usesSession
            ? WebServiceProxy(session: .shared, baseURL: server.url())
            : WebServiceProxy(baseURL: server.url())
        do {
            try await proxy.invoke(.delete, path: "things/7")
            Issue.record("the call succeeded")
        } catch {
            #expect((error as? WebServiceError)?.statusCode == 404)
            #expect(error.localizedDescription == "no such thing")
        }
    }

    @Test("E-T26: a refused connection is a URLError")
    func refused() async throws {
        let port = try LoopbackServer.refusingPort()
        let proxy = WebServiceProxy(baseURL: try url("http://127.0.0.1:\(port)/"))
        let error = await #expect(throws: URLError.self) { try await proxy.invoke(.get, path: "a") }
        #expect(error?.code == .cannotConnectToHost)
        #expect(error?.serviceError?.code == .connect)
    }

    @Test("E-T26: a silent server is a URLError when the time is over")
    func silent() async throws {
        let server = try LoopbackServer.start { _ in .never }
        defer { server.stop() }
        var proxy = WebServiceProxy(baseURL: server.url())
        proxy.timeout = .milliseconds(50)
        let copy = proxy
        let error = await #expect(throws: URLError.self) { try await copy.invoke(.get, path: "a") }
        #expect(error?.code == .timedOut)
    }

    @Test("E-T26: a broken connection is a URLError whose code says so")
    func broken() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(before: [.reset]) }
        defer { server.stop() }
        let proxy = WebServiceProxy(baseURL: server.url())
        let error = await #expect(throws: URLError.self) { try await proxy.invoke(.post, path: "a") }
        #expect(error?.code == .networkConnectionLost)
        #expect(error?.serviceError?.attempts.count == 1)
    }
}
