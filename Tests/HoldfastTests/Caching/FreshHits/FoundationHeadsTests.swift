// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Heads in Foundation's form that are kept")
struct FoundationHeadsTests {
    private static func fields(_ number: Int) -> HeaderFields? {
        var frames = FramedBytes()
        let fields: HeaderFields = ["X-Number": "\(number)"]
        fields.encode(into: &frames)
        return HeaderFields(encoded: frames.bytes, in: 0..<frames.bytes.count, count: 1)
    }

    private static func make(_ number: Int) -> HTTPURLResponse? {
        URL(string: "http://a.example/").flatMap {
            HTTPURLResponse(url: $0, statusCode: 200, httpVersion: nil, headerFields: ["X-Number": "\(number)"])
        }
    }

    @Test("One is found by its own fields, status and URL only")
    func kept() throws {
        let heads = FoundationHeads()
        let fields = try #require(Self.fields(1))
        let first = heads.head(of: ResponseHead(status: .ok, fields: fields), url: "u") { Self.make(1) }
        #expect(first != nil)
        #expect(heads.head(of: ResponseHead(status: .ok, fields: fields), url: "u") { nil } === first)
        #expect(heads.head(of: ResponseHead(status: .notFound, fields: fields), url: "u") { nil } == nil)
        #expect(heads.head(of: ResponseHead(status: .ok, fields: fields), url: "v") { nil } == nil)
        var edited = fields
        edited["X-Number"] = "2"
        #expect(heads.head(of: ResponseHead(status: .ok, fields: edited), url: "u") { nil } == nil)
        // The same bytes at another place, as when a disk is read again, mean the same.
        let again = try #require(Self.fields(1))
        #expect(heads.head(of: ResponseHead(status: .ok, fields: again), url: "u") { nil } === first)
        let other = try #require(Self.fields(3))
        #expect(heads.head(of: ResponseHead(status: .ok, fields: other), url: "u") { nil } == nil)
    }

    @Test("A long one is made each time, and a kept one has bytes of its own")
    func bounded() throws {
        let heads = FoundationHeads()
        var frames = FramedBytes()
        let long: HeaderFields = ["X-Long": String(repeating: "x", count: 9 << 10)]
        long.encode(into: &frames)
        let fields = try #require(HeaderFields(encoded: frames.bytes, in: 0..<frames.bytes.count, count: 1))
        let first = heads.head(of: ResponseHead(status: .ok, fields: fields), url: "u") { Self.make(1) }
        #expect(first != nil)
        #expect(heads.head(of: ResponseHead(status: .ok, fields: fields), url: "u") { nil } == nil)
        #expect(fields.compacted(upTo: 10 << 10) == fields)
        #expect(fields.compacted(upTo: 8 << 10) == nil)
        #expect(HeaderFields().compacted(upTo: 1) == nil)
    }

    @Test("Many tasks ask at once, and each gets the head of its own fields")
    func stress() async throws {
        let heads = FoundationHeads()
        let all = (0..<1_500).compactMap { Self.fields($0) }
        let wrong = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 as Range<UInt64> {
                group.addTask {
                    var random = SeededGenerator(seed: task)
                    return (0..<2_000).count { _ in
                        let number = Int.random(in: 0..<all.count, using: &random)
                        let head = heads.head(of: ResponseHead(status: .ok, fields: all[number]), url: "u") {
                            Self.make(number)
                        }
                        return head?.value(forHTTPHeaderField: "X-Number") != "\(number)"
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }
}
