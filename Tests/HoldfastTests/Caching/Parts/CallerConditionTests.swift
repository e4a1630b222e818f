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

@Suite("A caller's own conditions (RFC 9111 §4.3.2)", .timeLimit(.minutes(20)))
struct CallerConditionTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var fields: [String: String]
        var isNotModified: Bool
        var testDescription: String { "\(fields)" }
    }

    /// Date and Last-Modified of the origin's answers.
    static let date = "Tue, 14 Nov 2023 22:13:20 GMT"
    static let modified = "Tue, 14 Nov 2023 20:00:00 GMT"

    static let cases: [Case] = [
        Case(fields: ["If-None-Match": "\"1\""], isNotModified: true),
        Case(fields: ["If-None-Match": "W/\"1\""], isNotModified: true),
        Case(fields: ["If-None-Match": "\"x\", W/\"y\", \"1\""], isNotModified: true),
        Case(fields: ["If-None-Match": "*"], isNotModified: true),
        Case(fields: ["If-None-Match": "\"x\""], isNotModified: false),
        Case(fields: ["If-Modified-Since": date], isNotModified: true),
        Case(fields: ["If-Modified-Since": modified], isNotModified: true),
        Case(fields: ["If-Modified-Since": "Tue, 14 Nov 2023 19:59:59 GMT"], isNotModified: false),
        Case(fields: ["If-Modified-Since": "yesterday"], isNotModified: false),
        Case(fields: ["If-None-Match": "\"x\"", "If-Modified-Since": date], isNotModified: false),
        Case(
            fields: ["If-None-Match": "\"1\"", "If-Modified-Since": "Tue, 14 Nov 2023 19:59:59 GMT"],
            isNotModified: true
        ),
        Case(fields: ["If-None-Match": "\"1\"", "Range": "bytes=0-9"], isNotModified: true),
    ]

    static var origin: RangeOrigin { RangeOrigin { $0.fields["Last-Modified"] = modified } }

    @Test("A fresh entry answers the caller's conditions", arguments: ["GET", "HEAD"], cases)
    func fresh(_ method: String, _ item: Case) async throws {
        let origin = Self.origin
        let bench = CacheBench(origin.transport)
        try await bench.range(nil)
        bench.clock.advance(by: .seconds(5))
        let response = try await bench.pipeline.send(.request(method, "http://origin.example/a", item.fields))
        #expect(response.status == (item.isNotModified ? .notModified : .ok))
        #expect(response.source == .fresh)
        let body = String(decoding: try await response.body.collect(), as: UTF8.self)
        #expect(body == (item.isNotModified || method == "HEAD" ? "" : origin.bytes()))
        #expect(response.fields["ETag"] == "\"1\"")
        #expect(response.fields["Age"] == "5")
        #expect(response.fields["Content-Length"] == (item.isNotModified ? nil : "100"))
        #expect(bench.sends == 1)
        // Nobody who asked without a condition is answered 304 (nodejs/undici#4596, onevcat/Kingfisher#1400).
        #expect(try await bench.range(nil) == .fresh(origin.bytes()))
    }

    struct Stale: Sendable, CustomTestStringConvertible {
        var caller: [String: String]
        /// What the origin says to the merged conditions: a 304 with this tag, or a new 200.
        var tag: String?
        var isNew = false
        var sent: String?
        var status: Int
        var source: ResponseSource
        var resent: String?? = .none
        var testDescription: String { "\(caller) \(isNew ? "200" : "304 \(tag ?? "")")" }
    }

    static let stales: [Stale] = [
        Stale(caller: ["If-None-Match": "\"1\""], tag: "\"1\"", sent: "\"1\"", status: 304, source: .revalidated),
        Stale(caller: ["If-None-Match": "\"1\""], sent: "\"1\"", status: 304, source: .revalidated),
        Stale(
            caller: ["If-None-Match": "\"x\""],
            tag: "\"1\"",
            sent: "\"1\", \"x\"",
            status: 200,
            source: .revalidated
        ),
        Stale(
            caller: ["If-None-Match": "\"x\""],
            tag: "\"x\"",
            sent: "\"1\", \"x\"",
            status: 304,
            source: .network(attempts: 1)
        ),
        Stale(
            caller: ["If-None-Match": "\"1\", \"x\""],
            tag: "\"x\"",
            sent: "\"1\", \"x\"",
            status: 304,
            source: .network(attempts: 1)
        ),
        Stale(caller: ["If-None-Match": "*"], sent: "*", status: 304, source: .network(attempts: 1)),
        Stale(
            caller: ["If-None-Match": "\"x\""],
            isNew: true,
            sent: "\"1\", \"x\"",
            status: 200,
            source: .network(attempts: 1)
        ),
        Stale(caller: ["If-Modified-Since": modified], tag: "\"1\"", sent: "\"1\"", status: 304, source: .revalidated),
        Stale(
            caller: ["If-Modified-Since": "Tue, 14 Nov 2023 19:00:00 GMT"],
            tag: "\"1\"",
            sent: "\"1\"",
            status: 200,
            source: .revalidated
        ),
        // A 304 that fits nothing: asked again as the caller asked, and then it is the caller's own.
        Stale(
            caller: ["If-None-Match": "\"x\""],
            sent: "\"1\", \"x\"",
            status: 304,
            source: .network(attempts: 2),
            resent: "\"x\""
        ),
        Stale(
            caller: [:],
            tag: "\"other\"",
            sent: "\"1\"",
            status: 200,
            source: .network(attempts: 2),
            resent: .some(nil)
        ),
    ]

    @Test("A stale entry is revalidated with the merged conditions", arguments: stales)
    func stale(_ item: Stale) async throws {
        let origin = Self.origin
        let transport = ScriptedTransport { request in
            let tags = request.value(forHTTPHeaderField: "If-None-Match")
            let hasDate = request.value(forHTTPHeaderField: "If-Modified-Since") != nil
            if !item.isNew, tags != nil || hasDate {
                var fields: HeaderFields = ["Cache-Control": "max-age=60"]
                if let tag = item.tag { fields["ETag"] = tag }
                return .respond(304, fields)
            }
            return origin.answer(.get())
        }
        let bench = CacheBench(transport)
        try await bench.range(nil)
        bench.clock.advance(by: .seconds(61))
        if item.isNew { origin.change { $0.version = 2 } }
        let answer = try await bench.range(nil, item.caller)
        #expect(answer.status == item.status)
        #expect(answer.source == item.source)
        #expect(answer.body == (item.status == 304 ? "" : origin.bytes()))
        #expect(bench.sent("If-None-Match")[1] == item.sent)
        if let resent = item.resent { #expect(bench.sent("If-None-Match").last == resent) }
        #expect(bench.sends == (item.resent == nil ? 2 : 3))
        // Whatever came of it, the next plain call gets all bytes.
        #expect(try await bench.range(nil).body == origin.bytes())
    }

    @Test(
        "If-Match and If-Unmodified-Since are evaluated by the origin, and their 412 is not stored",
        arguments: [["If-Match": "\"x\""], ["If-Match": "\"x\"", "Range": "bytes=0-9"]]
    )
    func forwarded(_ fields: [String: String]) async throws {
        for isStored in [true, false] {
            let origin = Self.origin
            let bench = CacheBench(origin.transport)
            if isStored { try await bench.range(nil) }
            #expect(try await bench.range(nil, fields) == .network("failed", 412))
            #expect(bench.sent("If-Match").last == "\"x\"")
            #expect(try await bench.range(nil).body == origin.bytes())
            #expect(bench.sends == 2)
        }
        let origin = Self.origin
        let bench = CacheBench(origin.transport)
        try await bench.range(nil)
        try await bench.range(nil, ["If-Unmodified-Since": Self.date])
        #expect(bench.sent("If-Unmodified-Since") == [nil, Self.date])
    }

    @Test("A condition on incomplete content is sent to the origin unchanged, and its 304 goes to the caller")
    func partial() async throws {
        let origin = Self.origin
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        #expect(try await bench.range(nil, ["If-None-Match": "\"1\""]) == .network("", 304))
        #expect(bench.sent("Range").last == .some(nil))
        #expect(bench.sent("If-None-Match").last == "\"1\"")
        #expect(try await bench.range("0-9", ["If-None-Match": "\"1\""]) == .fresh("", 304))
        #expect(try await bench.range(nil).body == origin.bytes())
    }

    @Test("If a stored part no longer fits after a 304, the call is sent unchanged")
    func otherDate() async throws {
        let origin = Self.origin
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        bench.clock.advance(by: .seconds(61))
        let fields: HeaderFields = ["ETag": "\"1\"", "Last-Modified": "Tue, 14 Nov 2023 21:00:00 GMT"]
        origin.change { $0.instead = .respond(304, fields) }
        let answer = try await bench.range("0-4", ["If-Range": Self.modified])
        #expect(answer == .init(status: 200, body: origin.bytes(), source: .network(attempts: 2)))
        #expect(bench.sent("If-None-Match") == [nil, "\"1\"", nil])
    }

    @Test("Stale on error answers a condition as well (RFC 5861 §4)", arguments: [true, false])
    func staleIfError(_ holds: Bool) async throws {
        let origin = RangeOrigin { $0.fields["Cache-Control"] = "max-age=60, stale-if-error=600" }
        let bench = CacheBench(origin.transport)
        try await bench.range(nil)
        bench.clock.advance(by: .seconds(61))
        origin.change { $0.instead = .respond(503) }
        let answer = try await bench.range(nil, ["If-None-Match": holds ? "\"1\"" : "\"x\""])
        #expect(answer == .init(status: holds ? 304 : 200, body: holds ? "" : origin.bytes(), source: .stale))
        origin.change { $0.instead = .respond(503) }
        #expect(try await bench.range("0-9").body == origin.bytes(0..<10))
    }
}
