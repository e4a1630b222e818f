// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Exchanges
internal import Foundation
internal import Harness
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The requests of one thread in a turn, created before the clock starts.
struct Asking: Sendable {
    let numbers: [Int]
    /// Keys in their own memory, like those of requests; empty if the cases use requests.
    let keys: [StoreKey]
    /// Empty if the cases use keys.
    let requests: [URLRequest]

    /// Creates the requests for this many hits of a case.
    init(_ scaleCase: ScaleCase, hits: Int, seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        let numbers = (0..<hits).map { _ in
            // The hot entry is one in the middle.
            scaleCase.isHot ? scaleCase.entries / 2 : Int.random(in: 0..<scaleCase.entries, using: &random)
        }
        self.numbers = numbers
        keys = scaleCase.face == .lookUp ? numbers.map(Entry.key) : []
        requests = scaleCase.face == .send ? numbers.compactMap { Resource($0, length: Entry.bodyLength).request } : []
    }
}

/// A small entry, so that ten million of them fit into the memory of an ordinary machine.
enum Entry {
    static let bodyLength = 16
    static let now = StoreInstant(milliseconds: 1_000)

    /// A key of 32 bytes.
    static func key(_ number: Int) -> StoreKey {
        var bytes = template
        var (rest, place) = (number, bytes.count - 1)
        while rest > 0, place >= 0 {
            bytes[place] = UInt8(48 + rest % 10)
            (rest, place) = (rest / 10, place - 1)
        }
        return StoreKey(bytes)
    }

    /// The body: the bytes of its number, repeated.
    static func body(_ number: Int) -> ByteChunk {
        ByteChunk((0..<bodyLength).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 4))) })
    }

    /// Whether the bytes are its body, judged by the length and the first bytes.
    static func isBody(_ bytes: ByteChunk, of number: Int) -> Bool {
        bytes.count == bodyLength && bytes[0] == UInt8(truncatingIfNeeded: number)
            && bytes[1] == UInt8(truncatingIfNeeded: number >> 8)
    }

    private static let template = Array("GET https://a.example/i000000000".utf8)
}
