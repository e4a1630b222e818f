// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct LoopbackService: HttpService {
    let server: LoopbackServer
    var apiUrl: any UrlConvertible { "127.0.0.1:\(server.port)/v1?key=1" }
    var usesSecureProtocol: Bool { false }
}

private struct Search: Request {
    typealias Result = String
    let text: String
    var routes: HttpRoute { ["a/b", text] }
    var query: HttpQuery { ["q": text, "tags": ["x", "y"], "n": 1, "none": nil] }
}

private struct Put: Request {
    typealias Result = Void
    var method: HttpMethod { .put }
    var body: HttpBody
    /// A file that is removed when the request has been built.
    var vanishing: URL?

    func prepare(_ request: URLRequest) async throws -> URLRequest {
        if let vanishing { try FileManager.default.removeItem(at: vanishing) }
        return request
    }
}

@Suite("Queries and bodies against a server", .timeLimit(.minutes(20)))
struct BodyExchangeTests {
    private func client(
        _ server: LoopbackServer,
        cache: HTTPCache? = nil
    ) -> ServiceClient<LoopbackService> {
        let quick = Backoff(base: .milliseconds(1), cap: .milliseconds(4))
        var rules = RetryRules(backoff: quick, maxAttempts: 3)
        rules.throttlingBackoff = quick
        return ServiceClient(LoopbackService(server: server), cache: cache, retrierFactory: .backoff(rules))
    }

    /// A server that is busy once, after which it runs `meanwhile`.
    private func busyOnce(_ meanwhile: @escaping @Sendable () -> Void = {}) throws -> LoopbackServer {
        try LoopbackServer.start { request in
            guard request.number == 0 else { return LoopbackReply(204) }
            meanwhile()
            return LoopbackReply(503, fields: [("Retry-After", "0")])
        }
    }

    @Test("E-T6: a server reads what was meant, after one busy response, and then the cache answers")
    func query() async throws {
        let server = try LoopbackServer.start { request in
            request.number == 0
                ? LoopbackReply(503, fields: [("Retry-After", "0")])
                : LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "found")
        }
        defer { server.stop() }
        let client = client(server, cache: .inMemory())
        let text = "é&ø+? %/#=;日本"
        for _ in 0..<2 { #expect(try await Search(text: text).schedule(with: client) == "found") }
        #expect(server.requests.count == 2)
        let target = try #require(server.requests.last?.target)
        let halves = target.split(separator: "?", maxSplits: 1).map(String.init)
        #expect(halves[0].hasPrefix("/v1/a%2Fb/"))
        #expect(halves[0].split(separator: "/").last.flatMap { String($0).removingPercentEncoding } == text)
        #expect(HttpQuery(encoded: halves[1]) == ["key": "1", "n": "1", "q": .some(text), "tags": "x", "tags": "y"])
        #expect(halves[1].hasPrefix("key=1&n=1&q="))
    }

    @Test("RFC 7578: a form with a 5 MiB file arrives complete and identical in both attempts, with one Content-Length")
    func multipart() async throws {
        let folder = try TemporaryFolder()
        var content = Data(repeating: 0x2D, count: 5 << 20)
        content.replaceSubrange(1_000_000..<1_000_006, with: Data("\r\n--ho".utf8))
        let file = folder.url.appendingPathComponent("sea \"1\".bin")
        try content.write(to: file)
        let server = try busyOnce()
        defer { server.stop() }
        let form: MultipartForm = [
            .field("title", value: "Sea & sky"), .file("photo", at: file, contentType: "image/x-raw"),
            .field("tags", value: ["a", "b"]),
        ]
        try await Put(body: .multipart(form)).schedule(with: client(server))
        #expect(server.requests.count == 2)
        #expect(server.requests[0].body == server.requests[1].body)
        for request in server.requests {
            #expect(request.values(of: "Content-Length") == [String(request.body.count)])
            #expect(request.values(of: "Transfer-Encoding") == [])
        }
        let types = server.requests.map { $0.values(of: "Content-Type") }
        #expect(types[0] == types[1])
        let parts = try StrictMultipart(server.requests[1].body, contentType: types[1].first).parts
        #expect(parts.map(\.name) == ["title", "photo", "tags", "tags"])
        #expect(parts.map(\.fileName) == [nil, "sea %221%22.bin", nil, nil])
        #expect(parts.map(\.contentType) == [nil, "image/x-raw", nil, nil])
        #expect(Data(parts[1].content) == content)
        #expect(String(decoding: parts[0].content, as: UTF8.self) == "Sea & sky")
    }

    @Test(
        "A changed file in a form is an error, and does not affect what an earlier attempt sent",
        arguments: FileSourceTests.Change.allCases
    )
    func changingFile(change: FileSourceTests.Change) async throws {
        let folder = try TemporaryFolder()
        let url = try folder.file("a.bin", repeatElement(7, count: 1_000))
        let server = try busyOnce { try? change.apply(url) }
        defer { server.stop() }
        let error = await #expect(throws: ServiceError.self) {
            try await Put(body: .multipart([.file("f", at: url)])).schedule(with: client(server))
        }
        #expect(error?.code == .badRequest)
        #expect(error.map { String(describing: $0) }?.contains("The file a.bin ") == true)
        #expect(server.requests.count == 1)
    }

    @Test("A file that vanishes before it is sent, or sent again, is an error", arguments: [true, false])
    func vanishingFile(isFirst: Bool) async throws {
        let folder = try TemporaryFolder()
        let url = try folder.file("a.bin", repeatElement(7, count: 1_000))
        let server = try busyOnce { try? FileManager.default.removeItem(at: url) }
        defer { server.stop() }
        let error = await #expect(throws: ServiceError.self) {
            try await Put(body: .file(url), vanishing: isFirst ? url : nil).schedule(with: client(server))
        }
        #expect(error?.code == .badRequest)
        #expect(server.requests.count == (isFirst ? 0 : 1))
    }

    @Test("Each kind of body arrives unchanged, with one Content-Length")
    func kinds() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("a.csv", "1;2".utf8)
        let server = try LoopbackServer.start { _ in LoopbackReply(204) }
        defer { server.stop() }
        let client = client(server)
        let bodies: [(HttpBody, String, String?)] = [
            (.empty, "", nil), (.text("naïve"), "naïve", "text/plain; charset=utf-8"),
            (.json(["a": 1]), #"{"a":1}"#, "application/json"),
            (.file(file, contentType: "text/csv"), "1;2", "text/csv"),
            (.image(Data("x".utf8), format: .png), "x", "image/png"),
            (.formURLEncoded(["k": "a b"]), "k=a+b", "application/x-www-form-urlencoded; charset=utf-8"),
        ]
        for (body, text, type) in bodies {
            try await Put(body: body).schedule(with: client)
            let request = try #require(server.requests.last)
            #expect(request.text == text)
            #expect(request.values(of: "Content-Type") == (type.map { [$0] } ?? []))
            #expect(request.values(of: "Content-Length") == [String(text.utf8.count)])
        }
    }

    @Test("Content that ends before its length is not taken for all of it by a typed call")
    func short() async throws {
        let transport = ScriptedTransport([.stream(200, chunks: ["he"], length: 5)])
        let client = CallFixtures.client(CallFixtures.service(), transport)
        let error = await #expect(throws: ServiceError.self) { try await CallFixtures.text().schedule(with: client) }
        #expect(error?.code == .connectionLost)
    }
}
