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

/// What a client sees must not change with the receiver of its calls.
@Suite("URLSession APIs: the same results as URLSession", .timeLimit(.minutes(20)))
struct SameAnswersTests {
    private static let answers: [String: LoopbackReply] = {
        // "hello" in a gzip member.
        let gzipped: [UInt8] = [
            0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0xff, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0, 0x86, 0xa6, 0x10, 0x36, 5,
            0, 0, 0,
        ]
        let named = [
            ("Content-Type", "text/plain; charset=ISO-8859-1"),
            ("Content-Disposition", "attachment; filename=\"report.txt\""),
        ]
        return [
            "/body": LoopbackReply(fields: [("Content-Type", "text/html"), ("x-lower", "1")], body: "<p>hello</p>"),
            "/empty": LoopbackReply(body: ""),
            "/none": LoopbackReply(204),
            "/missing": LoopbackReply(404, fields: [("Content-Type", "text/plain")], body: "not here"),
            "/busy": LoopbackReply(503, fields: [("Retry-After", "1")], body: "busy"),
            "/named.bin": LoopbackReply(fields: named, body: "text"),
            "/chunked": LoopbackReply(framing: .chunked, steps: [.send("hel"), .send("lo")]),
            "/close": LoopbackReply(framing: .untilClose, steps: [.send("to the end")]),
            "/gzip": LoopbackReply(fields: [("Content-Encoding", "gzip")], bytes: gzipped),
            "/twice": LoopbackReply(fields: [("X-Twice", "a"), ("X-Twice", "b")], body: "x"),
            "/redirect": LoopbackReply(302, fields: [("Location", "/body?q=1")], body: "moved"),
            "/large": LoopbackReply(bytes: patternedBytes(300_000)),
        ]
    }()

    private static func server() throws -> LoopbackServer {
        try LoopbackServer.start { request in
            // What was sent counts as well; a redirect of a PUT is another matter.
            guard request.method == "GET" || request.text == "content" else { return LoopbackReply(400) }
            return answers[request.path] ?? LoopbackReply(500)
        }
    }

    @Test("Data, status, fields, URL and derived values are equal", arguments: SessionCall.allCases)
    func same(_ call: SessionCall) async throws {
        let server = try Self.server()
        defer { server.stop() }
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        let pipeline = Pipeline(transport: URLSessionTransport())
        let folder = try Folder()
        for path in Self.answers.keys.sorted() where path != "/redirect" || call.method == "GET" {
            let request = URLRequest.to(server, path, call.method)
            let (data, response) = try await call.load(request, session, folder)
            let (ourData, ours) = try await call.load(request, pipeline, folder)
            #expect(ourData == data, "\(path)")
            #expect(ours.looks == response.looks, "\(path)")
        }
    }

    @Test("What reaches the server is also equal: method, target, fields, content", arguments: SessionCall.allCases)
    func sameRequests(_ call: SessionCall) async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(204) }
        defer { server.stop() }
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        let folder = try Folder()
        var request = URLRequest.to(server, "/a%20b?q=%C3%A9&r=1", call.method)
        request.setValue("text/html", forHTTPHeaderField: "Accept")
        request.setValue("1", forHTTPHeaderField: "X-Own")
        _ = try await call.load(request, session, folder)
        _ = try await call.load(request, Pipeline(transport: URLSessionTransport(), cache: .inMemory()), folder)
        let sent = server.requests.map { request in
            [request.method, request.target, request.text]
                + request.fields.map { "\($0.name.lowercased()): \($0.value)" }.sorted()
        }
        #expect(sent.count == 2)
        #expect(sent.first == sent.last)
    }

    @Test("HEAD: the fields, and no data")
    func head() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("Content-Type", "text/plain")], framing: .length(5))
        }
        defer { server.stop() }
        let request = URLRequest.to(server, "/", "HEAD")
        for call in [SessionCall.data, .download, .bytes] {
            let (data, response) = try await call.load(request, Pipeline(transport: URLSessionTransport()), Folder())
            #expect(data.isEmpty)
            #expect(response.expectedContentLength == 5)
            #expect(response.mimeType == "text/plain")
        }
    }

    @Test(
        "From the cache a response looks as it did from the network",
        arguments: [SessionCall.data, .download, .bytes]
    )
    func cached(_ call: SessionCall) async throws {
        let date = "\(HTTPDate(SystemClock().timestamp))"
        let server = try LoopbackServer.start { request in
            var reply = Self.answers[request.path] ?? LoopbackReply(500)
            reply.fields.append(LoopbackField("Cache-Control", value: "max-age=600"))
            // One that has none is given one by the cache (RFC 9110 §6.6.1).
            reply.fields.append(LoopbackField("Date", value: date))
            return reply
        }
        defer { server.stop() }
        let pipeline = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        let folder = try Folder()
        let paths = ["/body", "/empty", "/named.bin", "/missing", "/chunked", "/gzip", "/redirect"]
        for path in paths {
            let request = URLRequest.to(server, path)
            let (data, response) = try await call.load(request, pipeline, folder)
            await pipeline.drain()
            let sent = server.requests.count
            let (storedData, stored) = try await call.load(request, pipeline, folder)
            #expect(server.requests.count == sent, "\(path)")
            #expect(storedData == data, "\(path)")
            var (looks, storedLooks) = (response.looks, stored.looks)
            storedLooks["field Age"] = nil
            // What spoke of the transfer is gone with it, and so is the length of what was coded.
            looks["field Transfer-Encoding"] = nil
            if path == "/gzip" {
                #expect(looks.removeValue(forKey: "field Content-Encoding") == "gzip")
                looks["field Content-Length"] = nil
                looks["length"] = "-1"
            }
            #expect(storedLooks == looks, "\(path)")
        }
    }
}

extension HTTPURLResponse {
    /// All that a client can see.
    fileprivate var looks: [String: String] {
        var looks: [String: String] = [
            "status": "\(statusCode)", "url": url?.absoluteString ?? "", "length": "\(expectedContentLength)",
            "type": mimeType ?? "", "encoding": textEncodingName ?? "", "filename": suggestedFilename ?? "",
        ]
        for (name, value) in allHeaderFields { looks["field \(name)"] = "\(value)" }
        return looks
    }
}
