// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Damage costs only what it touches, and nothing removed comes back unnoticed")
struct RecoveryDamageTests {
    /// Checks what recovery made of a sample of which the file of segment `number` was damaged.
    @discardableResult
    private static func check(_ sample: StoreSample, damaged number: UInt64, _ what: String) throws -> RecoveredStore {
        let found = try sample.recover()
        let store = found.store
        let orders = found.orders(in: sample)
        #expect(found.rows.count == orders.count, "\(what): a row of no entry")
        for (name, order) in orders {
            #expect(StoreSample.written[name]?.contains(order) == true, "\(what): \(name) has order \(order)")
            let isRight = StoreSample.expected[name] == order || order < store.suspectBefore
            // In the segment that was being written, what does not parse was on its way and means nothing.
            #expect(isRight || number == 3, "\(what): \(name) has order \(order)")
        }
        let others: [UInt64: [String]] = [1: ["a", "e", "f"], 2: ["b", "c", "e", "f"], 3: ["a", "b", "c"]]
        for name in others[number] ?? [] {
            #expect(orders[name] == StoreSample.expected[name], "\(what): \(name) is lost")
        }
        #expect(sample.files.openFileCount == 0)
        return store
    }

    /// The part of a segment's file in which there is something to damage.
    private static func written(_ sample: StoreSample, _ number: UInt64) throws -> (
        path: String, bytes: [UInt8], end: Int
    ) {
        let path = sample.layout.segment(number)
        let bytes = try #require(sample.files.contents(of: path))
        let last = bytes.lastIndex { $0 != 0 } ?? 0
        return (path, bytes, last + 1)
    }

    @Test("Every byte flipped", arguments: [1, 2, 3] as [UInt64])
    func flips(_ number: UInt64) throws {
        let sample = try StoreSample.full()
        let (path, bytes, end) = try Self.written(sample, number)
        for offset in 0..<end {
            var damaged = bytes
            damaged[offset] ^= 1 << UInt8(offset % 8)
            _ = sample.files.setContents(of: path, to: damaged)
            try Self.check(sample, damaged: number, "byte \(offset)")
        }
    }

    @Test("Every truncation", arguments: [1, 2, 3] as [UInt64])
    func truncations(_ number: UInt64) throws {
        let sample = try StoreSample.full()
        let (path, bytes, end) = try Self.written(sample, number)
        for size in 0..<min(end + 1, bytes.count) {
            _ = sample.files.setContents(of: path, to: Array(bytes.prefix(size)))
            let store = try Self.check(sample, damaged: number, "cut at \(size)")
            #expect(store.suspectBefore >= store.nextOrder, "cut at \(size): nothing is suspect")
        }
    }

    @Test("A step that the system refuses ends recovery with an error, or costs what is damaged", arguments: [5, 13])
    func refusals(_ errno: Int32) throws {
        let whole = try StoreSample.full()
        whole.files.plan()
        _ = try whole.recover()
        let steps = whole.files.stepCount
        #expect(steps > 10)
        for step in 0..<steps {
            let sample = try StoreSample.full()
            sample.files.plan(.once(at: step, errno: errno))
            do {
                let found = try sample.recover()
                for (name, order) in found.orders(in: sample) {
                    let isRight = StoreSample.expected[name] == order || order < found.store.suspectBefore
                    #expect(isRight, "step \(step): \(name) has order \(order)")
                }
            } catch let error as StoreError {
                #expect(error.code.description == "io")
                sample.files.plan()
                #expect(try sample.recover().orders(in: sample) == StoreSample.expected, "step \(step)")
            }
            #expect(sample.files.openFileCount == 0)
        }
    }

    @Test("A file of random bytes is handled", arguments: 0..<40 as Range<UInt64>)
    func anyBytes(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let sample = try StoreSample.full()
        let path = sample.layout.segment(UInt64.random(in: 1...3, using: &generator))
        var bytes = try #require(sample.files.contents(of: path))
        for _ in 0..<Int.random(in: 1...30, using: &generator) {
            let end = min(bytes.count, 1_500)
            bytes[Int.random(in: 0..<end, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
        }
        bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)))
        _ = sample.files.setContents(of: path, to: bytes)
        let found = try sample.recover()
        for (name, order) in found.orders(in: sample) {
            #expect(StoreSample.written[name]?.contains(order) == true, "seed \(seed)")
        }
    }
}
