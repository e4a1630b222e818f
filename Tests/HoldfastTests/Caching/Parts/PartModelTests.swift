// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTestKit
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Random calls against an origin whose content changes and whose transfers break: no answer ever holds a byte of another
/// version or place.
@Suite("Any sequence of whole and range requests gives bytes of one version", .timeLimit(.minutes(20)))
struct PartModelTests {
    struct Model {
        let origin: RangeOrigin
        var random: SeededGenerator
        /// The length of each version.
        var lengths: [Int: Int] = [:]

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            let validator: RangeOrigin.Validator = [.strong, .strong, .strong, .date, .weak][Int(seed % 5)]
            origin = RangeOrigin(length: Int(seed % 7) * 10_000 + 200) { state in
                state.validator = validator
                state.chunkSize = 777
            }
            note()
        }

        mutating func note() {
            let (version, length) = origin.state.withLock { ($0.version, $0.length) }
            lengths[version] = length
        }

        mutating func change() {
            let length = Int.random(in: 1...30_000, using: &random)
            // Dates of this origin tell nine versions apart.
            origin.change { if $0.version < 9 { ($0.version, $0.length) = ($0.version + 1, length) } }
            note()
        }

        mutating func range() -> String? {
            let length = origin.state.withLock { $0.length }
            let first = Int.random(in: 0...length, using: &random)
            let last = Int.random(in: first...length + 10, using: &random)
            let second = last + Int.random(in: 1...2_000, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1: return nil
            case 2: return "\(first)-"
            case 3: return "-\(last)"
            case 4: return "\(first)-\(last),\(second)-\(second + 50)"
            default: return "\(first)-\(last)"
            }
        }

        /// What an answer must be, of one of the versions; nil where it is.
        func fault(_ response: Response, _ bytes: [UInt8], isBroken: Bool) -> String? {
            let text = String(decoding: bytes, as: UTF8.self)
            if response.status == .rangeNotSatisfiable { return text.isEmpty ? nil : "a 416 with content" }
            if response.fields["Content-Type"]?.hasPrefix("multipart/") == true {
                return isBroken ? nil : multipartFault(text)
            }
            var interval: Range<Int>?
            if response.status == .partialContent {
                guard let range = ContentRange(response.fields)?.interval else { return "no Content-Range" }
                interval = Int(range.lowerBound)..<Int(range.upperBound)
            }
            for (version, length) in lengths {
                if let upper = interval?.upperBound, upper > length { continue }
                let expected = RangeOrigin.slice(
                    RangeOrigin.content(version: version, length: length),
                    interval ?? 0..<length
                )
                if isBroken ? expected.hasPrefix(text) : expected == text { return nil }
            }
            return
                "\(response.status.rawValue) \(interval.map { "\($0)" } ?? "whole"): \(bytes.count) bytes of no version"
        }

        private func multipartFault(_ text: String) -> String? {
            let parts = text.split(separator: "Content-Range: ").dropFirst()
            for (version, length) in lengths {
                let content = RangeOrigin.content(version: version, length: length)
                let fits = parts.allSatisfy { part in
                    guard let end = part.firstRange(of: "\r\n\r\n"),
                        let interval = ContentRange(parsing: String(part[..<end.lowerBound]))?.interval,
                        Int(interval.upperBound) <= length
                    else { return false }
                    let bytes = RangeOrigin.slice(content, Int(interval.lowerBound)..<Int(interval.upperBound))
                    return part[end.upperBound...].hasPrefix(bytes + "\r\n--")
                }
                if fits { return nil }
            }
            return "parts of no version"
        }
    }

    @Test(
        "Hundreds of random calls for each seed",
        arguments: StoreKind.allCases,
        1...(LongTests.areOn ? 10 : 2) as ClosedRange<UInt64>
    )
    func anySequence(_ kind: StoreKind, _ seed: UInt64) async throws {
        var model = Model(seed: seed)
        let origin = model.origin
        let transport = origin.transport
        func run(_ store: any CacheStore, steps: Int) async throws {
            let bench = CacheBench(transport, store: store)
            for step in 0..<steps {
                switch Int.random(in: 0..<12, using: &model.random) {
                case 0: model.change()
                case 1: bench.clock.advance(by: .seconds(Int.random(in: 1...90, using: &model.random)))
                case 2, 3, 4:
                    let count = Int.random(in: 0...30_000, using: &model.random)
                    origin.change { $0.breaksAfter = count }
                default: break
                }
                var fields: [String: String] = [:]
                if let range = model.range() { fields["Range"] = "bytes=" + range }
                let leavesAfter =
                    Int.random(in: 0..<5, using: &model.random) == 0
                    ? Int.random(in: 0...20_000, using: &model.random) : .max
                var bytes: [UInt8] = []
                var isBroken = false
                let response: Response
                do {
                    response = try await bench.pipeline.send(.get("http://origin.example/a", fields))
                } catch let error as ServiceError where error.code == .protocolError || error.code == .connectionLost {
                    continue
                }
                do {
                    for try await chunk in response.body {
                        chunk.append(to: &bytes)
                        if bytes.count > leavesAfter {
                            response.body.discard()
                            isBroken = true
                            break
                        }
                    }
                } catch {
                    isBroken = true
                }
                await bench.pipeline.drain()
                let fault = model.fault(response, bytes, isBroken: isBroken)
                #expect(fault == nil, "seed \(seed), step \(step), \(fields)")
                if fault != nil { return }
            }
        }
        switch kind {
        case .memory:
            try await run(MemoryStore(capacity: 8 << 20), steps: 200)
        case .disk:
            try await DiskCacheTests.withDirectory { directory in
                for _ in 0..<5 {
                    let store = try await StoreKind.open(directory)
                    try await run(store, steps: 60)
                    await store.close()
                }
            }
        }
    }
}
