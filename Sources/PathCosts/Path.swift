// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import CPathCosts
internal import Foundation

/// One path whose cost is held: a number of equal turns.
struct Path: Sendable {
    let name: String
    let turns: Int
    /// Makes the turns, and ends the program with words where one comes out wrong.
    let make: @Sendable (_ turns: Int, _ line: Line) -> Void

    /// A path without suspensions.
    init(_ name: String, turns: Int = 500, _ turn: @escaping @Sendable (Int) -> Bool) {
        self.name = name
        self.turns = turns
        make = { turns, _ in
            for index in 0..<turns where !turn(index) { Path.fail(name) }
        }
    }

    /// A path of calls.
    init(_ name: String, turns: Int = 500, calling turn: @escaping @Sendable (Int) async throws -> Bool) {
        self.name = name
        self.turns = turns
        make = { turns, line in
            line.run {
                for index in 0..<turns {
                    guard (try? await turn(index)) ?? false else { Path.fail(name) }
                }
            }
        }
    }

    /// Makes all turns once unobserved and once where they are counted.
    ///
    /// - Returns: allocations of the counted turns, of all together; negative where they cannot be counted.
    func measure(on line: Line) -> Int {
        make(turns, line)
        let state = Measured { make(turns, line) }
        let before = path_costs_allocations()
        path_costs_measured(
            { state in
                if let state { Unmanaged<Measured>.fromOpaque(state).takeUnretainedValue().body() }
            },
            Unmanaged.passUnretained(state).toOpaque()
        )
        return before < 0 ? -1 : path_costs_allocations() - before
    }

    private static func fail(_ name: String) -> Never {
        FileHandle.standardError.write(Data("path-costs: a turn of \(name) came out wrong\n".utf8))
        exit(1)
    }

    private final class Measured {
        let body: () -> Void

        init(_ body: @escaping () -> Void) {
            self.body = body
        }
    }
}
