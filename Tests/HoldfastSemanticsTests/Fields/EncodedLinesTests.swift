// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite("Field lines read where they are stored")
struct EncodedLinesTests {
    private static let names = [
        "Age", "age", "Cache-Control", "CACHE-CONTROL", "Cookie", "Set-Cookie", "X-A", "x-a", "X-B", "Date",
        "Retry-After",
    ]

    private static func encoded(_ fields: HeaderFields, before: Int = 0, after: Int = 0) throws -> HeaderFields {
        var frames = FramedBytes()
        fields.encode(into: &frames)
        let bytes = [UInt8](repeating: 7, count: before) + frames.bytes + [UInt8](repeating: 7, count: after)
        let range = before..<before + frames.bytes.count
        return try #require(HeaderFields(encoded: bytes, in: range, count: fields.count))
    }

    private static func random(_ count: Int, using random: inout SeededGenerator) -> HeaderFields {
        var fields = HeaderFields()
        for _ in 0..<count {
            let name = names[Int.random(in: 0..<names.count, using: &random)]
            let value = String(repeating: "v\u{E9}", count: Int.random(in: 0..<12, using: &random))
            fields.append(rawName: name, value: value + "\(Int.random(in: 0..<9, using: &random))")
        }
        return fields
    }

    private static func expectEqual(_ left: HeaderFields, _ right: HeaderFields, _ note: Comment) {
        #expect(left == right, note)
        #expect(right == left, note)
        #expect(left.hashValue == right.hashValue, note)
        #expect(left.count == right.count && left.isEmpty == right.isEmpty, note)
        #expect(left.map(\.name.rawName) == right.map(\.name.rawName), note)
        #expect(left.indices.map { left[$0] } == Array(right), note)
        for name in names.compactMap({ FieldName($0) }) {
            #expect(left[name] == right[name], note)
            #expect(left.values(of: name) == right.values(of: name), note)
            #expect(left.contains(name) == right.contains(name), note)
        }
    }

    @Test("They are the same list as lines that were decoded, whatever is done to both", arguments: propertySeeds)
    func likeLines(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for round in 0..<200 {
            let count = [0, 1, 7, 20, 64, 65, 90][Int.random(in: 0..<7, using: &random)]
            var lines = Self.random(count, using: &random)
            var stored = try Self.encoded(lines, before: round % 3, after: round % 2)
            #expect((stored.quickHash != nil) == (count <= 64))
            Self.expectEqual(stored, lines, "seed \(seed), round \(round)")
            for step in 0..<6 {
                let name = try #require(FieldName(Self.names[Int.random(in: 0..<Self.names.count, using: &random)]))
                let kind = Int.random(in: 0..<6, using: &random)
                for isStored in [true, false] {
                    var changed = isStored ? stored : lines
                    switch kind {
                    case 0: changed.removeAll(name)
                    case 1: changed.append(name, "added \(step)")
                    case 2: changed[name] = "set"
                    case 3: changed[name] = nil
                    case 4: changed.removeAll { $0.value.hasSuffix("1") }
                    default: changed = changed.merging([name: "merged"])
                    }
                    if isStored { stored = changed } else { lines = changed }
                }
                Self.expectEqual(stored, lines, "seed \(seed), round \(round), step \(step), kind \(kind), \(name)")
            }
        }
    }

    @Test("The head of an answer has one Age, with either form")
    func age() throws {
        let instant = Timestamp(secondsSinceEpoch: 1_700_000_000)
        for fields in [["Age": "7", "X-A": "1", "age": "8"], ["X-A": "1", "Retry-After": "30"], [:]] as [HeaderFields] {
            func response(_ fields: HeaderFields) throws -> StoredResponse {
                StoredResponse(
                    target: try TargetURI("https://a.example/"),
                    head: ResponseHead(status: .ok, fields: fields),
                    requestTime: instant,
                    responseTime: instant
                )
            }
            let later = instant + .seconds(5)
            let (lines, stored) = (try response(fields), try response(Self.encoded(fields)))
            #expect(lines.facts == stored.facts)
            Self.expectEqual(
                stored.responseHead(now: later).fields,
                lines.responseHead(now: later).fields,
                "\(fields)"
            )
            #expect(stored.responseHead(now: later).fields.values(of: .age).count == 1)
        }
    }

    @Test("Damaged bytes never trap, and are seen to be damaged", arguments: propertySeeds)
    func damage(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<400 {
            let fields = Self.random(Int.random(in: 0..<10, using: &random), using: &random)
            var frames = FramedBytes()
            fields.encode(into: &frames)
            var bytes = frames.bytes
            for _ in 0..<Int.random(in: 0..<4, using: &random) where !bytes.isEmpty {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                bytes[index] = UInt8.random(in: .min ... .max, using: &random)
            }
            bytes.removeLast(min(bytes.count, Int.random(in: 0..<4, using: &random)))
            let count = Int.random(in: 0..<12, using: &random)
            guard var read = HeaderFields(encoded: bytes, in: 0..<bytes.count, count: count) else { continue }
            #expect(read.indices.map { read[$0] }.count == read.count)
            if read.areWhole { #expect(Array(read).count == count) }
            _ = (read[.age], read.contains("X-A"), read.hashValue)
            read.append("X-A", "1")
            #expect(read[read.count - 1].value == "1" || !read.areWhole)
        }
        #expect(HeaderFields(encoded: [], in: 0..<1, count: 0) == nil)
        #expect(HeaderFields(encoded: [1, 2], in: 0..<2, count: 100) == nil)
    }
}
