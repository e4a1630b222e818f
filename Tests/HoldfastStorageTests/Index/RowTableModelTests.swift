// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Tables of rows against a dictionary", .timeLimit(.minutes(20)))
struct RowTableModelTests {
    /// How fragments are drawn: what clashes, clusters and runs over the end.
    enum Spread: String, CaseIterable, Sendable {
        case wide, few, clustered, atTheEnd, oneMany

        func fragment(using generator: inout SeededGenerator) -> UInt64 {
            switch self {
            case .wide: generator.next() >> 21
            case .few: UInt64.random(in: 0..<20, using: &generator) << 38
            case .clustered: 1 << 42 + UInt64.random(in: 0..<400, using: &generator)
            case .atTheEnd: 1 << 43 - 1 - UInt64.random(in: 0..<300, using: &generator)
            case .oneMany:
                Bool.random(using: &generator) ? 1 << 43 - 1 : generator.next() >> 21
            }
        }

        var variants: UInt32 {
            switch self {
            case .wide: 2
            case .few, .clustered, .atTheEnd: 12
            case .oneMany: 2_000
            }
        }
    }

    private struct Identity: Hashable {
        let fragment: UInt64
        let variant: UInt32
    }

    private func check(_ table: borrowing RowTable, _ model: [Identity: IndexRow], _ note: Comment) {
        let sorted = model.values.sorted { ($0.fragment, $0.variant) < ($1.fragment, $1.variant) }
        var held: [IndexRow] = []
        table.forEach { held.append($0) }
        #expect(held == sorted, note)
        #expect(table.count == sorted.count, note)
        var wrong: [UInt64] = []
        for (fragment, rows) in Dictionary(grouping: sorted, by: \.fragment) {
            let isFound = table.rows(fragment) == (rows.count == 1 ? .one(rows[0]) : .many(rows))
            let areFound = rows.allSatisfy { table.row(fragment, variant: $0.variant) == $0 }
            if !isFound || !areFound { wrong.append(fragment) }
        }
        #expect(wrong.isEmpty, note)
    }

    @Test("Rows are present exactly as in a dictionary", arguments: Spread.allCases, [1, 2, 3] as [UInt64])
    func model(_ spread: Spread, seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var table = RowTable()
        var model: [Identity: IndexRow] = [:]
        var drawn: [Identity] = []
        let note: Comment = "\(spread.rawValue), seed \(seed)"
        for step in 1...4_000 {
            // Half the run grows, the other half shrinks.
            let puts = step < 2_500 ? 7 : 2
            let fragment = spread.fragment(using: &generator)
            var identity = Identity(fragment: fragment, variant: .random(in: 0..<spread.variants, using: &generator))
            let place = RecordLocation(slot: UInt16(step % 4_095), unit: UInt32(step), units: 1)
            if Int.random(in: 0..<10, using: &generator) < puts {
                let row = IndexRow(
                    fragment: identity.fragment,
                    variant: identity.variant,
                    place: place,
                    order: UInt64(step),
                    shadows: model[identity] != nil
                )
                #expect(try table.insert(row) == model[identity], note)
                model[identity] = row
                drawn.append(identity)
            } else {
                if let any = drawn.randomElement(using: &generator) { identity = any }
                let old = model[identity]
                switch Int.random(in: 0..<4, using: &generator) {
                case 0:
                    #expect(table.remove(identity.fragment, variant: identity.variant, at: place) == nil, note)
                case 1:
                    guard let old else { break }
                    table.change(identity.fragment, variant: identity.variant) { $0.mark &+= 37 }
                    model[identity]?.mark = old.mark &+ 37
                default:
                    let at = old?.place ?? place
                    #expect(table.remove(identity.fragment, variant: identity.variant, at: at) == old, note)
                    model[identity] = nil
                }
            }
            if step % 500 == 0 { check(table, model, note) }
            let absent = table.rows((spread.fragment(using: &generator) + 1_000) & (1 << 43 - 1))
            if case .one(let row) = absent {
                #expect(model[Identity(fragment: row.fragment, variant: row.variant)] == row, note)
            }
        }
        let rest = Array(model.values)
        for row in rest { #expect(table.remove(row.fragment, variant: row.variant, at: row.place) == row, note) }
        check(table, [:], note)
    }
}
