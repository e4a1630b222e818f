// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Request traces")
struct RequestTraceTests {
    @Test("Keys are numbered by first appearance, whatever they are")
    func numbers() {
        var trace = RequestTrace()
        for key in [UInt64.max, 7, 0, 7, .max] { trace.append(key: key, size: 10) }
        #expect(trace.requests.map(\.key) == [0, 1, 2, 1, 0])
        #expect(trace.keyCount == 3)
        #expect((trace.totalBytes, trace.uniqueBytes) == (50, 30))
        #expect(trace.unboundedObjectHitRatio == 0.4 && trace.unboundedByteHitRatio == 0.4)
        #expect(!trace.hasLives && trace.changes == 0)
    }

    @Test("Another size of a key is a change, and no cache without a bound hits it")
    func changes() {
        var trace = RequestTrace()
        for size: UInt32 in [10, 10, 30, 30, 10] { trace.append(key: 1, size: size) }
        #expect(trace.changes == 2 && trace.changedBytes == 40)
        #expect(trace.uniqueBytes == 10 && trace.totalBytes == 90)
        #expect(trace.unboundedObjectHitRatio == 2.0 / 5)
        #expect(trace.unboundedByteHitRatio == 40.0 / 90)
    }

    @Test("A request without a time happens with the one before; one without a lifetime never expires")
    func times() {
        var trace = RequestTrace()
        trace.append(key: 1, size: 1)
        trace.append(key: 1, size: 1, at: StoreInstant(milliseconds: 500))
        trace.append(key: 2, size: 1, freshUntil: StoreInstant(milliseconds: 900))
        #expect(trace.times.instants.map(\.milliseconds) == [500, 500, 500])
        #expect(trace.times.freshUntil == [.distantFuture, .distantFuture, StoreInstant(milliseconds: 900)])
        #expect(trace.hasLives)
    }

    @Test("The hash of a name is the same everywhere: published FNV-1a values with mixed bits")
    func hash() {
        #expect(RequestTrace.hash(of: "".utf8) == SplitMix64.mixed(0xCBF2_9CE4_8422_2325))
        #expect(RequestTrace.hash(of: "a".utf8) == SplitMix64.mixed(0xAF63_DC4C_8601_EC8C))
        #expect(RequestTrace.hash(of: "foobar".utf8) == SplitMix64.mixed(0x8594_4171_F739_67E8))
        var trace = RequestTrace()
        trace.append(name: "a", size: 1)
        trace.append(key: RequestTrace.hash(of: "a".utf8), size: 1)
        #expect(trace.keyCount == 1)
    }

    @Test("When the numbers are used up, requests for new keys are left out, and others are not")
    func numbersUsedUp() {
        var trace = RequestTrace(maximumKeys: 2)
        let kept = [10, 20, 30, 20].map { (key: UInt64) in trace.append(key: key, size: 1) }
        #expect(kept == [true, true, false, true])
        #expect(trace.requests.count == 3 && trace.totalBytes == 3)
    }

    @Test("A file's bytes give the same requests, with keys by number", arguments: [1, 2, 3] as [UInt64])
    func roundTrip(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var trace = RequestTrace()
        for _ in 0..<1_000 {
            trace.append(key: .random(in: 0...300, using: &generator), size: .random(in: 0 ... .max, using: &generator))
        }
        let again = RequestTrace(decoding: trace.encoded)
        #expect(again.requests == trace.requests, "seed \(seed)")
        #expect(again.uniqueBytes == trace.uniqueBytes && again.changes == trace.changes, "seed \(seed)")
        #expect(again.encoded == trace.encoded, "seed \(seed)")
        // An incomplete request at the end is none.
        #expect(RequestTrace(decoding: trace.encoded.dropLast(5) + []).requests.count == 999)
    }

    @Test("The format of a file: key in 8 bytes, size in 4, little-endian")
    func form() {
        let bytes: [UInt8] = [1, 2, 0, 0, 0, 0, 0, 0x80, 0x10, 0x20, 0, 0]
        let record = TraceReader.records(in: bytes)
        #expect(record == [TraceReader.Record(key: 0x8000_0000_0000_0201, size: 0x2010)])
        var trace = RequestTrace()
        trace.append(key: 99, size: 0x0102_0304)
        trace.append(key: 98, size: 5)
        #expect(trace.encoded == [0, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1] + [1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0])
    }
}
