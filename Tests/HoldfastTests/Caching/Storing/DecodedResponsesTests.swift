// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

@Suite("Decoded entries")
struct DecodedResponsesTests {
    private static func response(_ number: UInt64) throws -> StoredResponse {
        try StoredEntryCodingTests.response(["X-A": "\(number)"])
    }

    private static func entry(_ version: UInt64, _ metadata: ByteChunk) -> StoredEntry {
        StoredEntryCodingTests.entry(version, metadata)
    }

    @Test("A decoded response is cached by version, never confused with another, and damage is not cached")
    func remembers() throws {
        let decoded = DecodedResponses()
        let first = try Self.response(1)
        let second = try Self.response(2)
        #expect(decoded.response(of: Self.entry(7, first.encoded)) == first)
        // The version alone names it: metadata is not read again.
        #expect(decoded.response(of: Self.entry(7, ByteChunk([1]))) == first)
        #expect(decoded.response(of: Self.entry(7 + 512, second.encoded)) == second)
        #expect(decoded.response(of: Self.entry(7, first.encoded)) == first)
        #expect(decoded.response(of: Self.entry(8, ByteChunk([1]))) == nil)
        #expect(decoded.response(of: Self.entry(8, second.encoded)) == second)
    }

    @Test(
        "It caches in proportion to the store's size, within bounds",
        arguments: [(nil, 512), (-1, 512), (1 << 20, 512), (32 << 20, 2048), (1 << 30, 8192), (Int.max, 8192)]
            as [(Int?, UInt64)]
    )
    func bounded(_ capacity: Int?, _ places: UInt64) throws {
        let decoded = DecodedResponses(capacity: capacity)
        let metadata = try Self.response(1).encoded
        for version in 1...places { _ = decoded.response(of: Self.entry(version, metadata)) }
        #expect((1...places).allSatisfy { decoded.response(of: Self.entry($0, ByteChunk([1]))) != nil })
        for version in places + 1...places * 2 { _ = decoded.response(of: Self.entry(version, metadata)) }
        #expect((1...places).allSatisfy { decoded.response(of: Self.entry($0, ByteChunk([1]))) == nil })
    }

    @Test("Many concurrent tasks each get what their entry says")
    func stress() async throws {
        let decoded = DecodedResponses()
        let responses = try (0..<2000).map { try Self.response($0) }
        let wrong = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 as Range<UInt64> {
                group.addTask {
                    var random = SeededGenerator(seed: task)
                    return (0..<5000).count { _ in
                        let number = Int.random(in: 0..<2000, using: &random)
                        let entry = Self.entry(UInt64(number), responses[number].encoded)
                        return decoded.response(of: entry) != responses[number]
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }
}
