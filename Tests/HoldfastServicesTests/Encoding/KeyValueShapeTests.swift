// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastServices
import HoldfastTesting
import Testing

@Suite("KeyValueEncoder: unusual values", .timeLimit(.minutes(20)))
struct KeyValueShapeTests {
    private func texts(_ value: some Encodable) throws -> [String] {
        try KeyValueEncoder().pairs(of: value).map { pair in "\(pair.name)=\(pair.value ?? "<null>")" }
    }

    @Test("A value that is not an object has no names and is refused")
    func top() {
        #expect(throws: EncodingError.self) { try texts(7) }
        #expect(throws: EncodingError.self) { try texts("text") }
        #expect(throws: EncodingError.self) { try texts([1, 2]) }
        #expect(throws: EncodingError.self) { try texts(Date()) }
        #expect(throws: EncodingError.self) { try texts(Data()) }
        #expect(throws: EncodingError.self) { try texts([String: Int]?.none) }
    }

    @Test("An empty value gives no pairs")
    func empty() throws {
        struct Nothing: Encodable {}
        struct Silent: Encodable {
            func encode(to encoder: any Encoder) throws {}
        }
        #expect(try texts(Nothing()).isEmpty)
        #expect(try texts(Silent()).isEmpty)
        #expect(try texts(["a": [Int]()]).isEmpty)
        #expect(try texts(["a": Silent()]).isEmpty)
    }

    private class Base: Encodable {
        let id = 1
        private enum CodingKeys: CodingKey { case id }
    }

    private final class Derived: Base {
        let name: String
        let inherits: Bool
        init(_ name: String, inherits: Bool) {
            self.name = name
            self.inherits = inherits
        }
        private enum CodingKeys: CodingKey { case name }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(name, forKey: .name)
            try super.encode(to: inherits ? container.superEncoder() : encoder)
        }
    }

    @Test("A superclass has its own object, or shares the one of its subclass")
    func superclass() throws {
        #expect(try texts(Derived("x", inherits: true)) == ["name=x", "super[id]=1"])
        #expect(try texts(Derived("x", inherits: false)) == ["name=x", "id=1"])
    }

    @Test("Enumerations with values, raw values, and keys that are numbers or enumerations")
    func enumerations() throws {
        enum Shape: Encodable {
            case circle(radius: Double)
            case plain
        }
        enum Level: String, Encodable, CodingKeyRepresentable { case high }
        #expect(try texts(["s": Shape.circle(radius: 2)]) == ["s[circle][radius]=2"])
        #expect(try texts(["s": Shape.plain]) == ["s=plain"])
        #expect(try texts(["l": Level.high]) == ["l=high"])
        #expect(try texts([Level.high: 1]) == ["high=1"])
        #expect(try texts([7: "seven"]) == ["7=seven"])
    }

    @Test("Nested containers that are made manually, twice or late all end up in their places")
    func nested() throws {
        struct Value: Encodable {
            enum Keys: String, CodingKey { case a, b, c }
            func encode(to encoder: any Encoder) throws {
                var top = encoder.container(keyedBy: Keys.self)
                var first = top.nestedContainer(keyedBy: Keys.self, forKey: .a)
                var list = top.nestedUnkeyedContainer(forKey: .b)
                try first.encode(1, forKey: .a)
                var again = top.nestedContainer(keyedBy: Keys.self, forKey: .a)
                try again.encode(2, forKey: .b)
                try list.encode(UInt8.max)
                var deeper = list.nestedContainer(keyedBy: Keys.self)
                try deeper.encode(Int128.max, forKey: .c)
                var rows = list.nestedUnkeyedContainer()
                try rows.encode(UInt128.max)
                var above = list.superEncoder().singleValueContainer()
                try above.encode(Int8(-3))
                #expect(list.count == 4)
                try top.encode(0, forKey: .c)
                try top.encode(9, forKey: .c)
            }
        }
        #expect(
            try texts(Value()) == [
                "a[a]=1", "a[b]=2", "b=255", "b[1][c]=170141183460469231731687303715884105727",
                "b[2]=340282366920938463463374607431768211455", "b=-3", "c=9",
            ]
        )
    }

    @Test("A value that requests two shapes at once is an error, not a trap")
    func contradictory() {
        struct Both: Encodable {
            let turn: Int
            func encode(to encoder: any Encoder) throws {
                var keyed = encoder.container(keyedBy: KeyValueKeys.self)
                try keyed.encode(1, forKey: .a)
                if turn == 0 {
                    var list = encoder.unkeyedContainer()
                    try list.encode(1)
                } else {
                    var single = encoder.singleValueContainer()
                    try single.encode("text")
                }
            }
        }
        #expect(throws: EncodingError.self) { try texts(Both(turn: 0)) }
        #expect(throws: EncodingError.self) { try texts(Both(turn: 1)) }
        #expect(throws: EncodingError.self) { try texts(["x": Both(turn: 0)]) }
    }

    private enum KeyValueKeys: CodingKey { case a }

    @Test("A value that contains itself, or is nested too deeply, is an error, not a trap")
    func endless() {
        final class Loop: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: KeyValueKeys.self)
                try container.encode(self, forKey: .a)
            }
        }
        final class Single: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(self)
            }
        }
        struct Tower: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: KeyValueKeys.self)
                for _ in 0..<5_000 { container = container.nestedContainer(keyedBy: KeyValueKeys.self, forKey: .a) }
                try container.encode(1, forKey: .a)
            }
        }
        #expect(throws: EncodingError.self) { try texts(Loop()) }
        #expect(throws: EncodingError.self) { try texts(Single()) }
        #expect(throws: EncodingError.self) { try texts(Tower()) }
    }

    @Test("An error that a value throws is passed on unchanged")
    func thrown() {
        struct Own: Error {}
        struct Failing: Encodable {
            func encode(to encoder: any Encoder) throws { throw Own() }
        }
        #expect(throws: Own.self) { try texts(["x": Failing()]) }
    }

    @Test("A strict form parser decodes the same names and texts")
    func roundTrip() throws {
        let seed: UInt64 = 20_261_122
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array("ab&=+%?#[]. \u{0}\n;/é漢🙂\"'\\~*-_")
        for _ in 0..<300 {
            var value: [String: [String: String]] = [:]
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                let words = (0..<3).map { _ in
                    String(
                        (0..<Int.random(in: 0...6, using: &generator)).map { _ in
                            alphabet.randomElement(using: &generator) ?? "a"
                        }
                    )
                }
                // A key with brackets, or without anything, would be another name, and is refused.
                value[words[0], default: [:]]["k" + words[1].filter { !"[]".contains($0) }] = words[2]
            }
            let expected = value.sorted { $0.key < $1.key }.flatMap { outer in
                outer.value.sorted { $0.key < $1.key }.map { ["\(outer.key)[\($0.key)]", $0.value] }
            }
            let form = try StrictForm.pairs(in: StrictForm.text(of: KeyValueEncoder().form(of: value)))
            #expect(form == expected, "seed \(seed)")
            let query = try StrictForm.pairs(in: KeyValueEncoder().query(of: value).encoded)
            #expect(
                query
                    == expected.enumerated().sorted { ($0.element[0], $0.offset) < ($1.element[0], $1.offset) }.map(
                        \.element
                    ),
                "seed \(seed)"
            )
        }
    }
}
