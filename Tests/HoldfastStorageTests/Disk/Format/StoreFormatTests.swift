// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("StoreFormat", .timeLimit(.minutes(20)))
struct StoreFormatTests {
    private static func sample(using generator: inout SeededGenerator) -> StoreFormat {
        StoreFormat(
            secret: generator.bytes(32),
            segmentSize: Int.random(in: 16...100_000, using: &generator) * 4_096,
            epoch: generator.next(),
            suspectBefore: generator.next(),
            nextOrder: generator.next(),
            isClean: Bool.random(using: &generator),
            bootIdentity: generator.bytes(Int.random(in: 0...64, using: &generator))
        )
    }

    @Test("What was encoded is decoded", arguments: [1, 2, 3] as [UInt64])
    func roundTrip(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let format = Self.sample(using: &generator)
            let bytes = format.encode()
            #expect(bytes.count == 256)
            #expect(StoreFormat.decode(bytes) == format, "seed \(seed)")
        }
    }

    @Test("The fields are at their documented positions")
    func layout() {
        let format = StoreFormat(
            secret: [UInt8](repeating: 7, count: 32),
            segmentSize: 1 << 20,
            epoch: 2,
            suspectBefore: 3,
            nextOrder: 4,
            isClean: true,
            bootIdentity: [9, 8]
        )
        let bytes = format.encode()
        #expect(Array(bytes[..<16]) == Array("HOLDFAST".utf8) + [3, 0, 0, 0, 1, 0, 0, 0])
        #expect(bytes[16..<48] == [UInt8](repeating: 7, count: 32)[...])
        #expect(bytes[48..<56] == [0, 0, 16, 0, 0, 0, 0, 0])
        #expect([bytes[56], bytes[64], bytes[72], bytes[80], bytes[81], bytes[82]] == [2, 3, 4, 2, 9, 8])
        #expect(bytes[83..<152].allSatisfy { $0 == 0 })
        #expect(Array(bytes[152..<160]) == [1, 0, 0, 0, 0, 0, 0, 0])
        #expect(bytes[160..<248].allSatisfy { $0 == 0 })
        #expect(format.hashSeed == HeadHash.of(format.secret, seed: 0x484F_4C44))
    }

    @Test("A format file with any damage or of any other length is refused")
    func damage() {
        var generator = SeededGenerator(seed: 4)
        let bytes = Self.sample(using: &generator).encode()
        FormatSamples.damaged(bytes) { damaged, place in
            #expect(StoreFormat.decode(damaged) == nil, "byte \(place)")
        }
        #expect(StoreFormat.decode(bytes + [0]) == nil)
    }

    @Test(
        "Impossible numbers are refused even with a correct checksum",
        arguments: [
            (8, 2), (8, 4), (12, 2), (48, 0), (48, 4_095), (48, 65_537), (48, 1 << 40), (48, .max), (80, 65), (81, 1),
            (150, 1), (240, 1 << 56),
        ] as [(Int, UInt64)]
    )
    func impossible(place: Int, value: UInt64) {
        let format = StoreFormat(
            secret: [UInt8](repeating: 7, count: 32),
            segmentSize: 1 << 20,
            epoch: 1,
            suspectBefore: 0,
            nextOrder: 1,
            isClean: false,
            bootIdentity: []
        )
        var bytes = format.encode()
        #expect(StoreFormat.decode(bytes) != nil)
        let width = place == 80 ? 1 : place < 16 ? 4 : 8
        for byte in 0..<width { bytes[place + byte] = UInt8(truncatingIfNeeded: value >> UInt64(8 * byte)) }
        let hash = HeadHash.of(Array(bytes[..<248]), seed: 0)
        for byte in 0..<8 { bytes[248 + byte] = UInt8(truncatingIfNeeded: hash >> UInt64(8 * byte)) }
        #expect(StoreFormat.decode(bytes) == nil)
    }

    @Test("A new format has its own secret and begins at epoch and order 1")
    func new() {
        var generator = SeededGenerator(seed: 6)
        let one = StoreFormat.new(segmentSize: 1 << 20, using: &generator)
        let other = StoreFormat.new(segmentSize: 1 << 20, using: &generator)
        #expect(one.secret != other.secret)
        #expect(one.hashSeed != other.hashSeed)
        #expect((one.epoch, one.nextOrder, one.suspectBefore) == (1, 1, 0))
        #expect(!one.isClean)
        #expect(StoreFormat.decode(one.encode()) == one)
        var long = one
        long.bootIdentity = [UInt8](repeating: 1, count: 100)
        #expect(StoreFormat.decode(long.encode())?.bootIdentity.count == 64)
    }
}

@Suite("Geometry", .timeLimit(.minutes(20)))
struct GeometryTests {
    @Test(
        "Segment sizes follow from the capacity",
        arguments: [
            (0, 64), (1_024, 64), (8_192, 512), (16_384, 1_024), (65_536, 1_024), (131_072, 1_024), (262_144, 1_024),
            (524_288, 2_048),
            (4_194_304, 16_384), (16_777_216, 65_536), (67_108_864, 262_144), (1_073_741_824, 4_194_304),
        ] as [(Int, Int)]
    )
    func segmentSize(kibibytes: Int, size: Int) {
        #expect(Geometry(capacity: kibibytes * 1_024).segmentSize == size * 1_024)
    }

    @Test("All sizes stay within their bounds at any capacity", arguments: [11, 12] as [UInt64])
    func bounds(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var capacities = [Int.min, -1, 0, .max]
        for _ in 0..<2_000 { capacities.append(Int(generator.next() >> UInt64.random(in: 1...63, using: &generator))) }
        for capacity in capacities {
            let geometry = Geometry(capacity: capacity)
            #expect((1 << 20...Geometry.maximumCapacity).contains(geometry.capacity))
            #expect(SpaceBudget(geometry: geometry).reserve <= 3 * geometry.segmentSize)
            #expect(geometry.segmentSize % 4_096 == 0 && geometry.segmentSize >= 64 << 10)
            let isLargest = geometry.segmentSize == 16 << 30
            #expect(geometry.capacity / geometry.segmentSize <= 300 || isLargest)
            #expect(geometry.inlineLimit <= 128 << 10 && geometry.inlineLimit <= geometry.segmentSize / 8)
            #expect(geometry.recordLimit <= (1 << 20) - 16 && geometry.recordLimit <= geometry.segmentSize / 2)
            #expect(Geometry(capacity: capacity, segmentSize: geometry.segmentSize) == geometry)
        }
        #expect(Geometry(capacity: 1 << 30, segmentSize: -5).segmentSize == 64 << 10)
        #expect(Geometry(capacity: 1 << 30, segmentSize: (2 << 20) + 5).segmentSize == 2 << 20)
    }
}
