// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

@testable import HoldfastSimulation

@Suite("The figures of a storm")
struct StormFiguresTests {
    /// A book with calls from these seconds to these, good or not, and attempts at these.
    private func figures(
        _ calls: [(Double, Double, Bool)],
        attempts: [Double],
        _ change: (inout StormScenario) -> Void = { _ in }
    ) -> StormFigures {
        var scenario = StormScenario("counted", rate: 1)
        scenario.horizon = 20
        scenario.faults = [StormFault(.down, from: 2, to: 4)]
        change(&scenario)
        var book = StormWorld.Book()
        book.begun = calls.count
        book.calls = calls.map {
            StormWorld.Call(start: .seconds($0), end: .seconds($1), succeeded: $2)
        }
        book.attempts = attempts.map { .seconds($0) }
        return StormFigures(scenario, book: book)
    }

    @Test("Success and load are counted in total, and for the fault by the start of the call")
    func shares() {
        let figures = figures(
            [(0, 1, true), (2, 5, true), (3.9, 4.1, false), (4, 4.5, true)],
            attempts: [0, 2, 3, 3.9, 4, 4.4]
        )
        #expect(figures.requests == 4 && figures.success == 0.75 && figures.load == 1.5)
        #expect(figures.successInFault == 0.5 && figures.loadInFault == 1.5)
        #expect(figures.p99SuccessSeconds == 3 && abs((figures.p99FailureSeconds ?? 0) - 0.2) < 1e-9)
    }

    @Test("It recovers at the first of five good seconds in a row, and one bad second restarts the count")
    func recovery() {
        func calls(_ bad: Set<Int>) -> [(Double, Double, Bool)] {
            (0..<20).map { (Double($0), Double($0) + 0.5, !bad.contains($0)) }
        }
        #expect(figures(calls([2, 3]), attempts: []).recoverySeconds == 0)
        #expect(figures(calls([2, 3, 8]), attempts: []).recoverySeconds == 5)
        #expect(figures(calls([2, 3, 8]), attempts: []).recovers == true)
        let never = figures(calls([2, 3, 8, 12, 16]), attempts: [])
        #expect(never.recovers == false && never.recoverySeconds == nil)
        #expect(figures(calls([2, 3, 8, 12, 14]), attempts: []).recoverySeconds == 11, "the last five seconds")
        let burst = figures(calls([2]), attempts: []) { $0.burst = 20 }
        #expect(burst.recovers == nil && burst.lastSuccessSeconds == 19.5)
    }

    @Test("The peak is the highest rate over a tenth of a second after the fault")
    func peak() {
        #expect(figures([], attempts: [1, 1, 1, 1, 4.01, 4.02, 4.03, 4.11, 5]).peakRate == 30)
        #expect(figures([], attempts: [1, 1]).peakRate == 0)
        #expect(figures([], attempts: [1]) { $0.faults[0].to = 20 }.peakRate == nil)
    }

    @Test("A mean covers the runs that have the figure; recovery needs every run to recover")
    func means() throws {
        var (first, second) = (StormFigures(), StormFigures())
        (first.load, second.load) = (1, 2)
        (first.recovers, first.recoverySeconds) = (true, 4)
        (second.recovers, second.recoverySeconds) = (true, 6)
        first.lastSuccessSeconds = 3
        let mean = StormFigures(meanOf: [first, second])
        #expect(mean.load == 1.5 && mean.recoverySeconds == 5 && mean.lastSuccessSeconds == 3 && mean.peakRate == nil)
        (second.recovers, second.recoverySeconds) = (false, nil)
        let never = StormFigures(meanOf: [first, second])
        #expect(never.recovers == false && never.recoverySeconds == nil)
        #expect(StormFigures(meanOf: []) == StormFigures())
        let data = try JSONEncoder().encode(mean)
        #expect(try JSONDecoder().decode(StormFigures.self, from: data) == mean)
    }
}
