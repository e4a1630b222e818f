// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

@Suite("The names of partitions")
struct PartitionNamesTests {
    private static func fields(_ fields: [String: String]) throws -> PlainRequestFields {
        try #require(PlainRequestFields(fields))
    }

    private static let secret: [UInt8] = [0]

    /// By the same secret, unless a test gives another.
    private func named(
        by names: PartitionNames,
        _ fields: PlainRequestFields,
        explicit: String?,
        rule: Int,
        secret: [UInt8] = secret,
        stripe: Int,
        make: (() -> String)? = nil
    ) -> String? {
        guard let make else {
            return names.name(of: fields, explicit: explicit, rule: rule, secret: secret, stripe: stripe)
        }
        return names.name(of: fields, explicit: explicit, rule: rule, secret: secret, stripe: stripe) { _ in make() }
    }

    @Test("Each is made once as long as it has its place, and a request without credentials has the empty one")
    func once() throws {
        let names = PartitionNames(stripes: 1)
        let asked: [([String: String], String?, String)] = [
            ([:], nil, ""), (["Authorization": "t"], nil, "1"), (["Cookie": "t"], nil, "2"),
            (["Cookie": "t", "Authorization": "t"], nil, "3"), (["Cookie": "t"], "t", "4"),
            // A named principal replaces the credentials.
            ([:], "t", "4"), ([:], "", "5"), (["Authorization": ""], nil, "6"),
        ]
        for _ in 0..<3 {
            for (fields, explicit, expected) in asked {
                let fields = try Self.fields(fields)
                #expect(named(by: names, fields, explicit: explicit, rule: 0, stripe: 3) { expected } == expected)
                // Nothing else has come in between, so it still has its place.
                #expect(named(by: names, fields, explicit: explicit, rule: 0, stripe: 3) { "made again" } == expected)
                #expect(named(by: names, fields, explicit: explicit, rule: 0, stripe: 3) == expected)
            }
        }
        let unknown = try Self.fields(["Authorization": "u"])
        #expect(named(by: names, unknown, explicit: nil, rule: 0, stripe: 0) == nil)
        // Under another secret it has another name.
        let empty = try Self.fields(["Authorization": ""])
        #expect(named(by: names, empty, explicit: nil, rule: 0, secret: [1], stripe: 3) == nil)
        // By another rule other cookies may be ignored.
        #expect(named(by: names, empty, explicit: nil, rule: 1, stripe: 3) == nil)
    }

    @Test("With more credentials than places each still has its own name")
    func many() throws {
        let names = PartitionNames(stripes: 2)
        for round in 0..<3 {
            for number in 0..<3_000 {
                let fields = try Self.fields(["Authorization": "Bearer \(number)"])
                #expect(named(by: names, fields, explicit: nil, rule: 0, stripe: round) { "\(number)" } == "\(number)")
            }
        }
    }

    @Test("Many tasks ask at once, and each gets the name of its own credentials")
    func stress() async throws {
        let names = PartitionNames(stripes: 2)
        let wrong = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 as Range<UInt64> {
                group.addTask {
                    var random = SeededGenerator(seed: task)
                    return (0..<5_000).count { _ in
                        let number = Int.random(in: 0..<900, using: &random)
                        guard let fields = PlainRequestFields(["Cookie": "a=\(number)"]) else { return true }
                        let stripe = Int.random(in: 0..<4, using: &random)
                        return named(by: names, fields, explicit: nil, rule: 0, stripe: stripe, make: { "\(number)" })
                            != "\(number)"
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }
}
