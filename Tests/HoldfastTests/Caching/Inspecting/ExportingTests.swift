// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Exporting a stored response", .timeLimit(.minutes(20)))
struct ExportingTests {
    private static func only(_ bench: CacheBench) async throws -> CacheEntryInfo {
        var all: [CacheEntryInfo] = []
        for try await info in bench.cache.entries(now: bench.time) { all.append(info) }
        #expect(all.count == 1)
        return try #require(all.first)
    }

    private static func text(_ body: ResponseBody) async throws -> String {
        String(decoding: try await body.collect(), as: UTF8.self)
    }

    @Test(
        "The message has a status line, the fields with Age and Content-Length, and the content",
        arguments: EachStore.allCases
    )
    func message(kind: EachStore) async throws {
        try await kind.with { store in
            let fields: HeaderFields = [
                "Date": "Tue, 14 Nov 2023 22:13:20 GMT", "Cache-Control": "max-age=60", "X-Two": "a", "x-two": "b",
                "Connection": "close",
            ]
            let bench = CacheBench([.respond(200, fields, body: "content")], store: store)
            try await bench.load()
            bench.clock.advance(by: .seconds(7))
            let exported = try #require(try await bench.cache.export(Self.only(bench), now: bench.time))
            let expected =
                "HTTP/1.1 200 \r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nCache-Control: max-age=60\r\nX-Two: a\r\n"
                + "x-two: b\r\nAge: 7\r\nContent-Length: 7\r\n\r\ncontent"
            #expect(try await Self.text(exported.message) == expected)
            #expect(exported.message.length == expected.utf8.count)
            // Each use of the properties begins anew.
            #expect(try await Self.text(exported.message) == expected)
            #expect(try await Self.text(exported.body) == "content")
            #expect(exported.body.length == 7)
            #expect(exported.info.age == 7)
        }
    }

    @Test("The origin's Content-Length appears once, and not if the status allows none (RFC 9110 §8.6)")
    func lengths() async throws {
        let given: HeaderFields = ["Cache-Control": "max-age=60", "Content-Length": "3"]
        let bench = CacheBench([.respond(200, given, body: "abc")])
        try await bench.load()
        let exported = try #require(try await bench.cache.export(Self.only(bench), now: bench.time))
        #expect(exported.head.fields.values(of: .contentLength) == ["3"])
        let empty = CacheBench([.respond(204, ["Cache-Control": "max-age=60"])])
        try await empty.load()
        let none = try #require(try await empty.cache.export(Self.only(empty), now: empty.time))
        #expect(!none.head.fields.contains(.contentLength))
        #expect(try await Self.text(none.message).hasSuffix("\r\n\r\n"))
    }

    @Test("A large body comes in chunks, and stays readable when the entry is removed", arguments: EachStore.allCases)
    func large(kind: EachStore) async throws {
        try await kind.with { store in
            let content = RangeOrigin.content(version: 1, length: 700_000)
            let bench = CacheBench([.respond(200, ["Cache-Control": "max-age=60"], body: content)], store: store)
            try await bench.load()
            let info = try await Self.only(bench)
            let exported = try #require(try await bench.cache.export(info, now: bench.time))
            try await bench.cache.remove(.all)
            var all = ""
            for try await chunk in exported.body {
                #expect(chunk.count <= 64 << 10)
                all += String(decoding: chunk, as: UTF8.self)
            }
            #expect(all == content)
            #expect(try await bench.cache.export(info, now: bench.time) == nil)
        }
    }

    @Test(
        "The newest version is exported, if it was freshened or replaced since it was listed",
        arguments: EachStore.allCases
    )
    func newest(kind: EachStore) async throws {
        try await kind.with { store in
            let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\""]
            let newer: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\"", "X-New": "1"]
            let bench = CacheBench(
                [.respond(200, fields, body: "one"), .respond(304, newer), .respond(200, fields, body: "second")],
                store: store
            )
            try await bench.load()
            let info = try await Self.only(bench)
            bench.clock.advance(by: .seconds(61))
            try await bench.load()
            let freshened = try #require(try await bench.cache.export(info, now: bench.time))
            #expect(freshened.head.fields["X-New"] == "1")
            #expect(try await Self.text(freshened.body) == "one")
            #expect(freshened.info.age == 0)
            bench.clock.advance(by: .seconds(61))
            try await bench.load()
            let replaced = try #require(try await bench.cache.export(info, now: bench.time))
            #expect(try await Self.text(replaced.body) == "second")
        }
    }

    @Test("One stored part is exported as a 206 with its range (RFC 9110 §15.3.7.1)")
    func onePart() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("10-19")
        let info = try await Self.only(bench)
        #expect(info.storedRanges?.intervals == [10..<20])
        let exported = try #require(try await bench.cache.export(info, now: bench.time))
        #expect(exported.head.status == .partialContent)
        #expect(exported.head.fields[.contentRange] == "bytes 10-19/100")
        #expect(exported.head.fields[.contentLength] == "10")
        #expect(try await Self.text(exported.body) == origin.bytes(10..<20))
    }

    @Test("Several stored parts are exported as a multipart 206 (RFC 9110 §15.3.7.2)", arguments: EachStore.allCases)
    func severalParts(kind: EachStore) async throws {
        try await kind.with { store in
            let origin = RangeOrigin()
            let bench = CacheBench(origin.transport, store: store)
            try await bench.range("10-19")
            try await bench.range("40-44")
            let info = try await Self.only(bench)
            #expect(info.storedRanges?.intervals == [10..<20, 40..<45])
            #expect(info.bodyLength == 15)
            let exported = try #require(try await bench.cache.export(info, now: bench.time))
            #expect(exported.head.status == .partialContent)
            #expect(exported.head.fields[.contentType]?.hasPrefix("multipart/byteranges") == true)
            let body = try await Self.text(exported.body)
            #expect(exported.head.fields[.contentLength] == String(body.utf8.count))
            #expect(exported.body.length == body.utf8.count)
            #expect(body.contains("Content-Range: bytes 10-19/100\r\n\r\n\(origin.bytes(10..<20))\r\n"))
            #expect(body.contains("Content-Range: bytes 40-44/100\r\n\r\n\(origin.bytes(40..<45))\r\n"))
        }
    }

    @Test("Two variants of one URL are exported separately")
    func variants() async throws {
        let transport = ScriptedTransport { request in
            .respond(
                200,
                ["Cache-Control": "max-age=60", "Vary": "Accept-Language"],
                body: request.value(forHTTPHeaderField: "Accept-Language") ?? ""
            )
        }
        let bench = CacheBench(transport)
        for language in ["de", "en"] { try await bench.load(.get("http://o.example/", ["Accept-Language": language])) }
        var found: [String: String] = [:]
        for try await info in bench.cache.entries(now: bench.time) {
            let exported = try #require(try await bench.cache.export(info, now: bench.time))
            found[info.nominated.map(\.description).joined()] = try await Self.text(exported.body)
        }
        #expect(found == ["accept-language: de": "de", "accept-language: en": "en"])
    }

    @Test("A store failure is the export's error, and a missing body counts as no entry")
    func failures() async throws {
        let store = FaultyStore()
        let bench = CacheBench([.respond(200, ["Cache-Control": "max-age=60"], body: "x")], store: store)
        try await bench.load()
        let info = try await Self.only(bench)
        for fault in [FaultyStore.Fault.lookUp, .body] {
            store.fault.withLock { $0 = fault }
            let error = await #expect(throws: StoreError.self) { try await bench.cache.export(info, now: bench.time) }
            #expect(error?.code == .io, "\(fault)")
        }
    }
}
