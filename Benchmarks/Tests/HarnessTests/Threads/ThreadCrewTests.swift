// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Synchronization
import Testing

@testable import Harness

@Suite("Dedicated threads", .timeLimit(.minutes(1)))
struct ThreadCrewTests {
    @Test("All work at the same time, each on its own thread, however few processors there are")
    func atOnce() async throws {
        let crew = ThreadCrew(8)
        let arrived = Atomic<Int>(0)
        // Each waits for all others without giving its thread back: on a pool of fewer threads this would never end.
        let (numbers, nanoseconds) = try await crew.run(8) { number in
            arrived.add(1, ordering: .acquiringAndReleasing)
            while arrived.load(ordering: .acquiring) < 8 { sched_yield() }
            return number
        }
        #expect(numbers.sorted() == Array(0..<8))
        #expect(nanoseconds > 0)
    }

    @Test("Fewer than all can work, repeatedly, across suspensions")
    func fewer() async throws {
        let crew = ThreadCrew(4)
        for count in [1, 2, 4, 1] {
            let numbers = try await crew.run(count) { number in
                await Task.yield()
                return number
            }.outcomes
            #expect(numbers.sorted() == Array(0..<count))
        }
    }

    @Test("An error is returned to the caller")
    func failure() async {
        struct Wrong: Error {}
        let crew = ThreadCrew(2)
        await #expect(throws: Wrong.self) {
            try await crew.run(2) { number in if number == 1 { throw Wrong() } }
        }
    }

    @Test("A line runs an operation on the calling thread and returns its result or error")
    func line() throws {
        struct Wrong: Error {}
        let outcome = try JobLine.run { _ in
            await Task.yield()
            return 7
        }
        #expect(outcome == 7)
        #expect(throws: Wrong.self) { try JobLine.run { _ in throw Wrong() } }
    }
}
