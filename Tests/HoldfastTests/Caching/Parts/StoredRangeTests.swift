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

@Suite("Ranges answered from a complete entry (RFC 9110 §14, RFC 9111 §3.4)", .timeLimit(.minutes(20)))
struct StoredRangeTests {
    @Test("RFC 5861 §3: a range of a complete stale response is refreshed by one request, for all of it")
    func refresh() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60, stale-while-revalidate=600"]
        let bench = CacheBench(
            ScriptedTransport { request in
                guard request.value(forHTTPHeaderField: "If-None-Match") != nil else {
                    return .respond(200, fields.merging(["ETag": "\"1\""]), body: "0123456789")
                }
                let newer = fields.merging(["ETag": "\"2\""])
                return request.value(forHTTPHeaderField: "Range") == nil
                    ? .respond(200, newer, body: "abcdefghij")
                    : .respond(206, newer.merging(["Content-Range": "bytes 0-1/10"]), body: "ab")
            }
        )
        let url = "http://origin.example/"
        try await bench.load(.get(url))
        bench.clock.advance(by: .seconds(100))
        for range in ["bytes=0-1", "bytes=2-3"] {
            #expect(try await bench.load(.get(url, ["Range": range])).status == 206)
        }
        await bench.pipeline.drain()
        #expect(bench.sent("Range") == [nil, nil])
        #expect(try await bench.load(.get(url)) == .fresh("abcdefghij"))
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var range: String
        var status = 206
        var interval: Range<Int>?
        var contentRange: String?
        var ifRange: String?

        var testDescription: String { "\(range) \(ifRange ?? "")" }
    }

    static let cases: [Case] = [
        Case(range: "0-9", interval: 0..<10, contentRange: "bytes 0-9/100"),
        Case(range: "0-0", interval: 0..<1, contentRange: "bytes 0-0/100"),
        Case(range: "99-", interval: 99..<100, contentRange: "bytes 99-99/100"),
        Case(range: "90-9999999999999999999999", interval: 90..<100, contentRange: "bytes 90-99/100"),
        Case(range: "-5", interval: 95..<100, contentRange: "bytes 95-99/100"),
        Case(range: "-500", interval: 0..<100, contentRange: "bytes 0-99/100"),
        Case(range: "100-", status: 416, interval: 0..<0, contentRange: "bytes */100"),
        Case(range: "9999999999999999999999-", status: 416, interval: 0..<0, contentRange: "bytes */100"),
        Case(range: "-0", status: 416, interval: 0..<0, contentRange: "bytes */100"),
        Case(range: "9-0", status: 200),
        Case(range: "x", status: 200),
        Case(range: "0-1,2-3", interval: 0..<4, contentRange: "bytes 0-3/100"),
        Case(range: "0-9", interval: 0..<10, contentRange: "bytes 0-9/100", ifRange: "\"1\""),
        Case(range: "0-9", status: 200, ifRange: "\"2\""),
        Case(range: "0-9", status: 200, ifRange: "W/\"1\""),
        Case(range: "0-9", status: 200, ifRange: "Tue, 14 Nov 2023 20:00:01 GMT"),
    ]

    @Test("One range, a suffix, a range beyond the end, If-Range", arguments: StoreKind.allCases, cases)
    func oneRange(_ kind: StoreKind, _ item: Case) async throws {
        let origin = RangeOrigin()
        try await kind.withBench(origin) { bench in
            try await bench.range(nil)
            bench.clock.advance(by: .seconds(7))
            var fields = ["Range": "bytes=" + item.range]
            fields["If-Range"] = item.ifRange
            let response = try await bench.pipeline.send(.get("http://origin.example/a", fields))
            let body = String(decoding: try await response.body.collect(), as: UTF8.self)
            #expect(response.status.rawValue == item.status)
            #expect(response.source == .fresh)
            #expect(body == origin.bytes(item.interval))
            #expect(response.fields["Content-Range"] == item.contentRange)
            #expect(response.fields["Content-Length"] == "\(body.utf8.count)")
            if item.status != 416 {
                #expect(response.fields["Age"] == "7")
                #expect(response.fields["Date"] == "Tue, 14 Nov 2023 22:13:20 GMT")
            }
            #expect(bench.sends == 1)
            #expect(bench.cache.statistics.hitBytes == body.utf8.count)
        }
    }

    @Test("If-Range with a date matches only a strong Last-Modified", arguments: ["01", "02"])
    func ifRangeDate(_ second: String) async throws {
        let origin = RangeOrigin { $0.validator = .date }
        let bench = CacheBench(origin.transport)
        try await bench.range(nil)
        let answer = try await bench.range("0-9", ["If-Range": "Tue, 14 Nov 2023 20:00:\(second) GMT"])
        #expect(answer == .fresh(second == "01" ? origin.bytes(0..<10) : origin.bytes(), second == "01" ? 206 : 200))
    }

    @Test(
        "Several ranges come as multipart/byteranges, byte for byte as in RFC 9110 §14.6",
        arguments: StoreKind.allCases
    )
    func severalRanges(_ kind: StoreKind) async throws {
        let origin = RangeOrigin(length: 2_000) { $0.fields["Content-Type"] = "text/plain" }
        try await kind.withBench(origin) { bench in
            try await bench.range(nil)
            let response = try await bench.pipeline.send(
                .get("http://origin.example/a", ["Range": "bytes=500-509, 0-9,-3"])
            )
            let body = String(decoding: try await response.body.collect(), as: UTF8.self)
            let type = try #require(response.fields["Content-Type"])
            let boundary = try #require(type.split(separator: "boundary=").last.map(String.init))
            #expect(type == "multipart/byteranges; boundary=\(boundary)")
            let parts = [500..<510, 0..<10, 1_997..<2_000].map { part in
                "--\(boundary)\r\nContent-Type: text/plain\r\n"
                    + "Content-Range: bytes \(part.lowerBound)-\(part.upperBound - 1)/2000\r\n\r\n"
                    + origin.bytes(part) + "\r\n"
            }
            #expect(body == parts.joined() + "--\(boundary)--\r\n")
            #expect(response.status == .partialContent)
            #expect(response.fields["Content-Range"] == nil)
            #expect(response.fields["Content-Length"] == "\(body.utf8.count)")
            #expect(response.body.length == body.utf8.count)
            #expect(bench.sends == 1)
        }
    }

    @Test("Ranges do not apply to HEAD, to decoded content or to other statuses")
    func whole() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range(nil)
        let head = try await bench.pipeline.send(
            .request("HEAD", "http://origin.example/a", ["Range": "bytes=0-9"])
        )
        #expect(head.status == .ok)
        #expect(head.fields["Content-Length"] == "100")
        #expect(head.source == .fresh)
        let missing = CacheBench([.respond(404, ["Cache-Control": "max-age=60"], body: "nothing here")])
        try await missing.load()
        #expect(try await missing.range("0-1") == .fresh("nothing here", 404))
    }

    @Test("An empty body has no ranges")
    func empty() async throws {
        let bench = CacheBench(RangeOrigin(length: 0).transport)
        try await bench.range(nil)
        #expect(try await bench.range("0-") == .fresh("", 416))
        // A suffix of nothing is all there is, and a 206 cannot say so.
        #expect(try await bench.range("-1") == .fresh(""))
        #expect(try await bench.range(nil) == .fresh(""))
    }

    @Test(
        "A Range request finds responses that vary by Accept-Encoding, whole or in parts, and asks for no coding itself"
    )
    func acceptEncoding() async throws {
        let origin = RangeOrigin { $0.fields["Vary"] = "Accept-Encoding" }
        let bench = CacheBench(origin.transport)
        #expect(try await bench.range("0-9") == .network(origin.bytes(0..<10), 206))
        #expect(try await bench.range(nil).body == origin.bytes())
        #expect(try await bench.range(nil) == .fresh(origin.bytes()))
        #expect(try await bench.range("50-59") == .fresh(origin.bytes(50..<60), 206))
        #expect(bench.sent("Range") == ["bytes=0-9", "bytes=10-99"])
        #expect(bench.sent("Accept-Encoding") == ["identity", "identity"])
        #expect(try await bench.range(nil, ["Accept-Encoding": "br"]) == .network(origin.bytes()))
    }

    @Test("With only-if-cached nothing is sent for a part; a stored one is used")
    func onlyIfCached() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        let field = ["Cache-Control": "only-if-cached"]
        #expect(try await bench.range("0-4", field) == .fresh(origin.bytes(0..<5), 206))
        for range in ["5-10", nil] {
            let answer = try await bench.range(range, field)
            #expect(answer.status == 504)
            #expect(answer.source == .synthesized)
        }
        #expect(bench.sends == 1)
    }

    @Test("A large stored body is streamed in small pieces, its ranges too", arguments: StoreKind.allCases)
    func large(_ kind: StoreKind) async throws {
        let origin = RangeOrigin(length: 3 << 20)
        try await kind.withBench(origin) { bench in
            try await bench.range(nil)
            let response = try await bench.pipeline.send(
                .get("http://origin.example/a", ["Range": "bytes=1000000-2999999"])
            )
            var bytes: [UInt8] = []
            var longest = 0
            for try await chunk in response.body {
                longest = max(longest, chunk.count)
                chunk.append(to: &bytes)
            }
            #expect(String(decoding: bytes, as: UTF8.self) == origin.bytes(1_000_000..<3_000_000))
            if kind == .disk { #expect(longest <= 64 << 10) }
            #expect(response.source == .fresh)
        }
    }
}
