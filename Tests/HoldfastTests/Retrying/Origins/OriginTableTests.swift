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

@Suite("OriginTable and RequestOrigin", .timeLimit(.minutes(20)))
struct OriginTableTests {
    private final class Cell: Sendable {}

    private func origin(_ number: Int) -> RequestOrigin {
        RequestOrigin(.get("http://h\(number).example/"))
    }

    @Test(
        "Scheme, host and port tell origins apart, path and user do not",
        arguments: [
            ("http://h.example/a", "http://h.example:80/b?c", true),
            ("https://h.example", "https://H.EXAMPLE:443/", true),
            ("http://h.example/", "https://h.example/", false), ("http://h.example/", "http://h.example:8080/", false),
            ("http://h.example/", "http://g.example/", false), ("http://u:p@h.example/", "http://h.example/", true),
        ]
    )
    func equality(left: String, right: String, same: Bool) {
        #expect((RequestOrigin(.get(left)) == RequestOrigin(.get(right))) == same)
        #expect(!RequestOrigin(.get("http://u:secret@h.example/")).description.contains("secret"))
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
