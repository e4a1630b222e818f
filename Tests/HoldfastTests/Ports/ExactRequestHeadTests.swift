// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("ExactRequestHead", .timeLimit(.minutes(20)))
struct ExactRequestHeadTests {
    private static let origin = "http://origin.example:8080"

    @Test(
        "Method and target reach the transport as they arrived",
        arguments: [
            ("get", "/a|b?x=^", "http://origin.example:8080/a%7Cb?x=%5E"),
            ("M-SEARCH", "/%zz".replacing("zz", with: "7e"), "http://origin.example:8080/~"),
            ("GET", "/%zz", "http://origin.example:8080/%25zz"),
            ("GET", "//double//slash", "http://origin.example:8080//double//slash"),
            ("GET", "/é", "http://origin.example:8080/%C3%A9"), ("OPTIONS", "*", "http://origin.example:8080/"),
        ]
    )
    func passes(_ method: String, _ requestTarget: String, _ canonical: String) async throws {
        let exact = try ExactRequestHead(
            method: RequestMethod(rawValue: method),
            origin: Self.origin,
            requestTarget: requestTarget
        )
        #expect(exact.target.canonical == canonical)
        let seen = SeenHeads()
        _ = try await Pipeline(transport: seen).send(exact)
        #expect(seen.heads == [exact])
        #expect(seen.heads.first??.requestTarget == requestTarget)
    }

    @Test(
        "A target that would end the request line, or is not an http URI, is refused (RFC 9112 §3)",
        arguments: [
            ("GET", "/a b"), ("GET", "/a\r\nX: y"), ("GET", "/a\u{0}"), ("GET", "relative"), ("GET", ""),
            ("G T", "/"), ("", "/"), ("GET\r\n", "/"),
        ]
    )
    func refuses(_ method: String, _ requestTarget: String) {
        #expect {
            _ = try ExactRequestHead(
                method: RequestMethod(rawValue: method),
                origin: Self.origin,
                requestTarget: requestTarget
            )
        } throws: {
            ($0 as? ServiceError)?.code == .badRequest
        }
        #expect(throws: ServiceError.self) {
            _ = try ExactRequestHead(method: .get, origin: "ftp://origin.example", requestTarget: "/")
        }
    }

    @Test("Caches use the exact target as the key, and a method in other letter case is another method (RFC 9110 §9.1)")
    func keys() async throws {
        let seen = SeenHeads()
        let pipeline = Pipeline(transport: seen, cache: .inMemory())
        for (method, target) in [("GET", "/a|b"), ("GET", "/a%7Cb"), ("GET", "/a|b"), ("get", "/a|b"), ("GET", "/a|c")]
        {
            let exact = try ExactRequestHead(
                method: RequestMethod(rawValue: method),
                origin: Self.origin,
                requestTarget: target
            )
            _ = try await pipeline.send(exact)
        }
        // `get` is unknown, so unsafe: it is sent, and what is stored of the URI goes.
        #expect(seen.heads.map { $0?.method } == ["GET", "get", "GET"])
        #expect(seen.heads.map { $0?.requestTarget } == ["/a|b", "/a|b", "/a|c"])
    }

    @Test("A method in other letter case is not retried as the safe one it looks like")
    func retries() async throws {
        let transport = ScriptedTransport([.fail(ServiceError(.connectionLost, "cut", progress: .bodySent))])
        let clock = ManualClock(autoAdvances: true)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = nil
        let pipeline = Pipeline(transport: transport, retrierFactory: .default, configuration: configuration)
        let exact = try ExactRequestHead(method: "get", origin: Self.origin, requestTarget: "/")
        await #expect(throws: ServiceError.self) { _ = try await pipeline.send(exact) }
        #expect(transport.sent.count == 1)
    }

    @Test("If a hook changes the URL, or a redirect does, it no longer applies to the hop")
    func ends() async throws {
        let seen = SeenHeads(redirectingTo: "/elsewhere")
        let exact = try ExactRequestHead(method: .get, origin: Self.origin, requestTarget: "/a|b")
        _ = try await Pipeline(transport: seen).send(exact)
        #expect(seen.heads == [exact, nil])

        let changed = SeenHeads()
        _ = try await Pipeline(transport: changed, hooks: [OtherURL()]).send(exact)
        #expect(changed.heads == [nil])
    }
}

extension Pipeline {
    fileprivate func send(_ exact: ExactRequestHead) async throws -> Response {
        var options = CallOptions()
        options.exactHead = exact
        return try await send(exact.makeRequest(), options: options)
    }
}

/// Answers with what may be stored, and remembers the exact heads it was asked with.
private final class SeenHeads: Transport {
    private let seen = Mutex<[ExactRequestHead?]>([])
    private let location: String?

    init(redirectingTo location: String? = nil) {
        self.location = location
    }

    var heads: [ExactRequestHead?] { seen.withLock { $0 } }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let isFirst = seen.withLock { seen in
            seen.append(context.exactHead(for: request))
            return seen.count == 1
        }
        if isFirst, let location { return Response(status: .found, fields: ["Location": location]) }
        return Response(status: .ok, fields: ["Cache-Control": "max-age=60"])
    }
}

private struct OtherURL: ServiceHook {
    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        request.url = URL(string: "http://origin.example/other")
        return nil
    }
}
