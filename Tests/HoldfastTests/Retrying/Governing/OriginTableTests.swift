// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("OriginTable", .timeLimit(.minutes(20)))
struct OriginTableTests {
    private final class Cell: Sendable {}

    private func origin(_ number: Int) -> OriginText {
        OriginText(.get("http://h\(number).example/"))
    }

    @Test("One origin keeps its cell; the number of origins is bounded, and those longest unused go first")
    func bound() {
        let table = OriginTable(capacity: 16) { _ in Cell() }
        func cell(_ number: Int, at seconds: Int) -> Cell {
            table.cell(of: origin(number), now: MonotonicInstant(sinceOrigin: .seconds(seconds)))
        }
        let first = cell(0, at: 0)
        for number in 1..<1000 {
            _ = cell(number, at: number)
            #expect(cell(0, at: number) === first)
        }
        #expect(table.count <= 16)
        _ = cell(998, at: 1000)
        #expect(table.count <= 16)
    }

    @Test("A cell that is busy outlives those that are idle")
    func busy() {
        let busy = Cell()
        let table = OriginTable(capacity: 4, isIdle: { $0 !== busy }) { now in
            now.sinceOrigin == .zero ? busy : Cell()
        }
        for number in 0..<100 {
            _ = table.cell(of: origin(number), now: MonotonicInstant(sinceOrigin: .seconds(number)))
        }
        #expect(table.cell(of: origin(0), now: MonotonicInstant(sinceOrigin: .seconds(100))) === busy)
    }
}
