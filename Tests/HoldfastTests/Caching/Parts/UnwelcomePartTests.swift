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

@Suite("Parts that match neither the request nor the stored response", .timeLimit(.minutes(20)))
struct UnwelcomePartTests {
    struct Answer: Sendable, CustomTestStringConvertible {
        var name: String
        var status = 206
        var fields: [String: String]
        var body: String
        var testDescription: String { name }
    }

    static let content = RangeOrigin.content(version: 1, length: 100)
    static let rest = RangeOrigin.slice(content, 10..<100)
    static let good = ["ETag": "\"1\"", "Content-Range": "bytes 10-99/100", "Cache-Control": "max-age=60"]

    static func answer(_ name: String, _ changes: [String: String], status: Int = 206, body: String = rest) -> Answer {
        var fields = good
        // Nothing for a value takes the field away.
        for (name, value) in changes { fields[name] = value.isEmpty ? nil : value }
        return Answer(name: name, status: status, fields: fields, body: body)
    }

    static let misfits: [Answer] = [
        answer("another tag", ["ETag": "\"2\""]), answer("a weak tag", ["ETag": "W/\"1\""]),
        answer("no tag", ["ETag": ""]),
        answer("another place", ["Content-Range": "bytes 11-99/100"], body: RangeOrigin.slice(content, 11..<100)),
        answer("short", ["Content-Range": "bytes 10-49/100"], body: RangeOrigin.slice(content, 10..<50)),
        answer("more than asked", ["Content-Range": "bytes 0-99/100"], body: content),
        answer("another length", ["Content-Range": "bytes 10-99/101"]),
        answer("a length that is not known", ["Content-Range": "bytes 10-89/*"]),
        answer("no Content-Range", ["Content-Range": ""]),
        answer("a length that lies", ["Content-Length": "80"]), answer("a coding", ["Content-Encoding": "gzip"]),
        answer("multipart", ["Content-Type": "multipart/byteranges; boundary=x"]),
        answer("416", ["Content-Range": "bytes */100"], status: 416, body: ""),
        answer("304", ["Content-Range": ""], status: 304, body: ""),
    ]

    @Test("The call is sent again unchanged and gets one complete version", arguments: misfits)
    func misfit(_ answer: Answer) async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        var fields = HeaderFields()
        for (name, value) in answer.fields { _ = fields.append(rawName: name, value: value) }
        origin.change { $0.instead = .stream(answer.status, fields, chunks: answer.body.isEmpty ? [] : [answer.body]) }
        #expect(try await bench.range(nil) == .init(status: 200, body: Self.content, source: .network(attempts: 2)))
        #expect(bench.sent("Range") == ["bytes=0-9", "bytes=10-99", nil])
        #expect(bench.sent("If-Range") == [nil, "\"1\"", nil])
        #expect(bench.sent("Accept-Encoding") == ["identity", "identity", nil])
        #expect(try await bench.range(nil) == .fresh(Self.content))
    }

    @Test("Changed content arrives whole as a 200 and replaces the parts", arguments: StoreKind.allCases)
    func changed(_ kind: StoreKind) async throws {
        let origin = RangeOrigin()
        try await kind.withBench(origin) { bench in
            try await bench.range("0-9")
            origin.change { ($0.version, $0.length) = (2, 77) }
            let answer = try await bench.range(nil)
            #expect(answer == .network(origin.bytes()))
            #expect(try await bench.range(nil) == .fresh(origin.bytes()))
            #expect(try await bench.range("-7") == .fresh(origin.bytes(70..<77), 206))
            #expect(bench.sends == 2)
        }
    }

    @Test("A part of other content replaces the stored one and is not mixed with it")
    func otherVersion() async throws {
        let origin = RangeOrigin { $0.fields["Cache-Control"] = "max-age=60" }
        let bench = CacheBench(origin.transport)
        try await bench.range("0-49")
        origin.change { $0.version = 2 }
        #expect(try await bench.range("50-99").body == origin.bytes())
        #expect(try await bench.range(nil).body == origin.bytes())
        #expect(bench.sends == 2)
    }

    @Test("A well-framed part that is too short or too long shifts no bytes", arguments: [5, 15])
    func miscounted(_ count: Int) async throws {
        for isCompletion in [true, false] {
            let origin = RangeOrigin()
            let bench = CacheBench(origin.transport)
            try await bench.range("0-9")
            try await bench.range("20-29")
            let fields: HeaderFields = [
                "ETag": "\"1\"", "Content-Range": "bytes 10-19/100", "Cache-Control": "max-age=60",
            ]
            let bytes = RangeOrigin.slice(Self.content, 10..<10 + count)
            origin.change { $0.instead = .stream(206, fields, chunks: [bytes]) }
            if isCompletion {
                // Bytes of the store come after the new ones, which would stand in the wrong place.
                let response = try await bench.pipeline.send(.get("http://origin.example/a", ["Range": "bytes=0-29"]))
                await #expect(throws: ServiceError.self) { try await response.body.collect() }
            } else {
                let answer = try await bench.load(.get("http://origin.example/a", ["Range": "bytes=10-19"]), .reloading)
                #expect(answer.body == RangeOrigin.slice(Self.content, 10..<10 + min(count, 10)))
            }
            #expect(try await bench.range("0-29").body == RangeOrigin.slice(Self.content, 0..<30))
            #expect(try await bench.range(nil).body == Self.content)
        }
    }

    @Test(
        "An unrequested 206, several parts in one message, or a part of unknown content is returned and not stored"
    )
    func notStored() async throws {
        let parts: HeaderFields = [
            "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Type": "multipart/byteranges; boundary=b",
        ]
        let range: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Range": "bytes 0-2/9"]
        for (asked, fields) in [("bytes=0-1,5-6", parts), (nil, range), ("bytes=0-2", parts)]
            as [(String?, HeaderFields)]
        {
            let bench = CacheBench(ScriptedTransport([.respond(206, fields, body: "abc")], repeatsLastStep: true))
            for _ in 0..<2 {
                #expect(
                    try await bench.load(.get("http://h.example/", asked.map { ["Range": $0] } ?? [:]))
                        == .network("abc", 206)
                )
            }
            #expect(bench.cache.store.statistics.entryCount == 0)
            #expect(bench.cache.statistics.notStored[.partialContent] == 2)
        }
    }

    @Test("Nothing is kept of a part with a wrong length from its server")
    func miscountedGap() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        try await bench.range("90-99")
        let fields: HeaderFields = ["ETag": "\"1\"", "Content-Range": "bytes 10-89/100", "Cache-Control": "max-age=60"]
        origin.change { $0.instead = .stream(206, fields, chunks: [RangeOrigin.slice(Self.content, 10..<60)]) }
        let response = try await bench.pipeline.send(.get())
        await #expect(throws: ServiceError.self) { try await response.body.collect() }
        await bench.pipeline.drain()
        #expect(try await bench.range(nil).body == Self.content)
        #expect(bench.sent("Range").suffix(2) == ["bytes=10-89", "bytes=10-89"])
    }

    @Test("A part that contradicts itself is not combined with content of the same tag")
    func contradiction() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Range": "bytes 0-9/100", "Content-Length": "5",
        ]
        origin.change { $0.instead = .stream(206, fields, chunks: ["0123456789"]) }
        try await bench.range("0-9")
        #expect(try await bench.range(nil) == .network(Self.content))
    }

    @Test("A 416 answers no other request, however fresh it claims to be (RFC 9110 §15.5.17)")
    func unsatisfiable() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        #expect(try await bench.range("500-") == .network("", 416))
        #expect(try await bench.range(nil) == .network(origin.bytes()))
        #expect(try await bench.range(nil) == .fresh(origin.bytes()))
    }

    @Test("A part that varies by more than the stored response is not combined with it (RFC 9111 §4.1)")
    func vary() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9", ["Accept": "a/a"])
        origin.change { $0.fields["Vary"] = "Accept" }
        try await bench.range("10-19", ["Accept": "a/a"])
        #expect(try await bench.range("0-19", ["Accept": "b/b"]) == .network(origin.bytes(0..<20), 206))
        for accept in ["a/a", "b/b"] { #expect(try await bench.range(nil, ["Accept": accept]).body == origin.bytes()) }
    }

    @Test("In a shared cache a private part is not combined with a shared response that others read")
    func sharedScope() async throws {
        let origin = RangeOrigin { $0.fields["Cache-Control"] = "public, max-age=60" }
        let bench = CacheBench(origin.transport, mode: .shared)
        try await bench.range("0-9", ["Cookie": "a=1"])
        origin.change { state in
            state.fields["Cache-Control"] = "max-age=60"
            state.fields["Set-Cookie"] = "secret=1"
        }
        #expect(try await bench.range(nil, ["Cookie": "a=1"]).body == origin.bytes())
        #expect(try await bench.range(nil, ["Cookie": "a=1"]).source == .fresh)
        let other = try await bench.pipeline.send(
            .get("http://origin.example/a", ["Cookie": "a=2", "Range": "bytes=0-9"])
        )
        #expect(other.fields["Set-Cookie"] == nil)
        #expect(other.source == .fresh)
        #expect(bench.sends == 2)
        #expect(try await bench.range("10-19", ["Cookie": "a=2"]).source == .network(attempts: 1))
    }

    @Test("In a shared cache a shared part does not make a private response shared")
    func sharedPart() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport, mode: .shared)
        try await bench.range("0-9", ["Cookie": "a=1"])
        origin.change { $0.fields["Cache-Control"] = "public, max-age=60" }
        #expect(try await bench.range("0-19", ["Cookie": "a=1"]).body == origin.bytes(0..<20))
        #expect(try await bench.range("0-19", ["Cookie": "a=1"]).source == .fresh)
        #expect(try await bench.range("0-9", ["Cookie": "a=2"]).source == .network(attempts: 1))
    }

    @Test("In a shared cache a private part does not update a shared whole response for others")
    func sharedWhole() async throws {
        let origin = RangeOrigin { $0.fields["Cache-Control"] = "public, max-age=60" }
        let bench = CacheBench(origin.transport, mode: .shared)
        try await bench.range(nil, ["Cookie": "a=1"])
        origin.change { state in
            state.fields["Cache-Control"] = "max-age=60"
            state.fields["Set-Cookie"] = "secret=1"
        }
        let request = URLRequest.get("http://origin.example/a", ["Cookie": "a=1", "Range": "bytes=0-9"])
        #expect(try await bench.load(request, .reloading).body == origin.bytes(0..<10))
        let other = try await bench.pipeline.send(.get("http://origin.example/a", ["Cookie": "a=2"]))
        #expect(other.source == .fresh)
        #expect(other.fields["Set-Cookie"] == nil)
    }

    @Test("Parts of two users are not combined, and if the token changes below, the call is sent unchanged")
    func principals() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport) { configuration in
            configuration.prepare = [
                { request, _ in
                    if request.value(forHTTPHeaderField: "X-Turn") != nil {
                        request.setValue("bob", forHTTPHeaderField: "Authorization")
                    }
                }
            ]
        }
        try await bench.range("0-9", ["Authorization": "ann"])
        #expect(try await bench.range("5-14", ["Authorization": "bob"]).body == origin.bytes(5..<15))
        #expect(bench.sent("Range") == ["bytes=0-9", "bytes=5-14"])
        let answer = try await bench.range(nil, ["Authorization": "ann", "X-Turn": "1"])
        #expect(answer == .init(status: 200, body: origin.bytes(), source: .network(attempts: 2)))
        #expect(bench.sent("Range").suffix(2) == ["bytes=10-99", nil])
        #expect(try await bench.range(nil, ["Authorization": "ann"]).body == origin.bytes())
    }

    @Test("A part of the URL that a prepare step made is not joined: the call is sent again unchanged")
    func partOfAnotherURL() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-49")
        var options = CallOptions()
        options.prepare = [{ request, _ in request.url = URL(string: "http://origin.example/a?key=bob") }]
        #expect(try await bench.load(.get(), options).body == origin.bytes())
    }
}
