// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSimulation
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

@Suite("Measuring: recording manually", .timeLimit(.minutes(20)))
struct RecorderTests {
    private static func sizes(_ recorder: HitRateRecorder) -> [UInt32] {
        recorder.trace.requests.map(\.size)
    }

    private static func keys(_ recorder: HitRateRecorder) -> [UInt64] {
        var keys: [UInt64] = []
        recorder.held.forEach { key, _ in keys.append(key) }
        return keys
    }

    @Test(
        "Requests keep their order and sizes; negative sizes count as 0, and long ones as the maximum"
    )
    func order() {
        let recorder = HitRateRecorder()
        for (key, size) in [("a", 1), ("b", 2), ("a", 3), ("c", -5), ("d", .max)] { recorder.record(key, size: size) }
        #expect(recorder.trace.requests.map(\.key) == [0, 1, 0, 2, 3])
        #expect(Self.sizes(recorder) == [1, 2, 3, 0, .max])
        #expect(recorder.count == 5)
        #expect(recorder.requestsSeen == 5)
    }

    @Test("The same URL has another number in each recorder, unless both use one secret")
    func secrets() {
        let recorders = [HitRateRecorder(), HitRateRecorder()]
        let twins = [HitRateRecorder(secret: (1, 2)), HitRateRecorder(secret: (1, 2))]
        for recorder in recorders + twins { recorder.record("http://origin.example/", size: 1) }
        #expect(Self.keys(recorders[0]) != Self.keys(recorders[1]))
        #expect(Self.keys(twins[0]) == Self.keys(twins[1]))
    }

    @Test(
        "Either all requests of a key are recorded or none, for about the share of keys that the rate says",
        arguments: [0.1, 0.5]
    )
    func sampling(rate: Double) {
        let recorder = HitRateRecorder(rate: rate, secret: (3, 4))
        for _ in 0..<3 {
            for key in 0..<10_000 { recorder.record("key \(key)", size: key) }
        }
        let trace = recorder.trace
        // With a given secret this is one number; it must only be near what chance allows.
        #expect(abs(Double(trace.keyCount) / 10_000 - rate) < 0.02)
        #expect(trace.requests.count == trace.keyCount * 3)
        #expect(recorder.requestsSeen == 30_000)
        let third = trace.requests.prefix(trace.keyCount)
        #expect(Array(trace.requests.suffix(trace.keyCount)) == Array(third))
    }

    @Test(
        "A rate out of bounds counts as the nearest",
        arguments: [(2, 1), (1, 1), (0.5, 0.5), (0, 0.000_001), (-1, 0.000_001), (.nan, 1), (.infinity, 1)]
            as [(Double, Double)]
    )
    func rates(given: Double, taken: Double) {
        let recorder = HitRateRecorder(rate: given)
        recorder.record("a", size: 1)
        #expect(recorder.rate == taken)
        #expect(recorder.count == (taken == 1 ? 1 : recorder.count))
    }

    @Test("A full recorder records and counts nothing more", arguments: [-1, 0, 1, 4096, 5000])
    func bound(limit: Int) {
        let recorder = HitRateRecorder(maximumRequests: limit)
        for key in 0..<6000 { recorder.record("\(key)", size: 1) }
        #expect(recorder.count == max(0, limit))
        #expect(recorder.requestsSeen == max(0, limit))
        #expect(recorder.isFull)
        #expect(Self.sizes(recorder).count == max(0, limit))
    }

    @Test("Bytes that come later are added to their request, also in a full recorder")
    func growing() throws {
        var log = RequestLog(limit: 2)
        let places = [log.append(7, size: 10), log.append(nil, size: 100), log.append(8, size: 20)]
        let first = try #require(places[0])
        let outside = try #require(places[1])
        let late = log.append(9, size: 1)
        #expect(late == nil)
        let lateOutside = log.append(nil, size: 1)
        #expect(lateOutside == nil)
        log.add(5, to: first)
        log.add(1, to: outside)
        log.add(.max, to: outside)
        var all: [[UInt64]] = []
        log.forEach { all.append([$0, UInt64($1)]) }
        #expect(all == [[7, 15], [8, 20]])
        #expect(log.seen == 3)
        #expect(log.seenBytes == .max)
    }

    @Test("The file has twelve bytes a request and reads back as the trace; the rate is stored beside it")
    func file() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("recorder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("requests.trace")
        for rate in [0.25, 1] {
            let recorder = HitRateRecorder(rate: rate)
            for key in 0..<200 { recorder.record("\(key % 50)", size: 100 + key % 50) }
            try recorder.write(to: file)
            let bytes = [UInt8](try Data(contentsOf: file))
            #expect(bytes.count == recorder.count * 12)
            #expect(RequestTrace(decoding: bytes).requests == recorder.trace.requests)
            #expect(HitRateRecorder.rate(ofTraceAt: file) == rate)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["requests.trace"])
        let error = #expect(throws: StoreError.self) {
            try HitRateRecorder().write(to: folder.appendingPathComponent("none/requests.trace"))
        }
        #expect(error?.code == .io)
    }

    @Test("The file reveals nothing of a URL or the secret, and each byte of a URL changes its number")
    func privacy() {
        let recorder = HitRateRecorder()
        for letter in UInt8(ascii: "a")...UInt8(ascii: "z") {
            recorder.record("http://origin.example/" + String(UnicodeScalar(letter)), size: 1)
        }
        let keys = Self.keys(recorder)
        #expect(Set(keys).count == 26)
        // Numbers of neighbours have nothing in common: of 64 bits about half differ.
        let differing = zip(keys, keys.dropFirst()).map { ($0 ^ $1).nonzeroBitCount }
        #expect(differing.allSatisfy { (8...56).contains($0) })
    }
}
