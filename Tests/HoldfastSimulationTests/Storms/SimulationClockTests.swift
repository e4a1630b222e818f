// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import Synchronization
import Testing

@testable import HoldfastSimulation

@Suite("Simulation clock and executor", .timeLimit(.minutes(20)))
struct SimulationClockTests {
    private let clock = SimulationClock()
    private let executor = SimulationExecutor()
    private let log = WordLog()

    private func sleeper(_ name: String, until seconds: Double) -> Task<Void, Never> {
        Task(executorPreference: executor) { [clock, log] in
            do {
                try await clock.sleep(until: MonotonicInstant(sinceOrigin: .seconds(seconds)))
                log.add(name)
            } catch {
                log.add("\(name) cancelled")
            }
        }
    }

    @Test("Sleepers wake one at a time by deadline, then in the order of falling asleep, at their own time")
    func order() {
        for (name, seconds) in [("b", 2.0), ("a", 1), ("c", 2), ("d", 3)] { _ = sleeper(name, until: seconds) }
        #expect(clock.sleeperCount == 0)
        executor.drain()
        #expect(clock.sleeperCount == 4 && clock.nextDeadline == .seconds(1) && log.words.isEmpty)
        for expected in [["a"], ["a", "b"], ["a", "b", "c"]] {
            clock.wakeNext()
            executor.drain()
            #expect(log.words == expected)
        }
        #expect(clock.now.sinceOrigin == .seconds(2))
        clock.move(to: .seconds(1))
        #expect(clock.now.sinceOrigin == .seconds(2))
        clock.wakeNext()
        executor.drain()
        #expect(clock.nextDeadline == nil && clock.now.sinceOrigin == .seconds(3))
        clock.wakeNext()
        #expect(clock.now.sinceOrigin == .seconds(3))
    }

    @Test("A cancelled sleeper wakes at once and is not waited for; so does one cancelled before, or too late")
    func cancellation() {
        let early = sleeper("early", until: 5)
        early.cancel()
        executor.drain()
        #expect(log.words == ["early cancelled"] && clock.nextDeadline == nil)
        let asleep = sleeper("asleep", until: 5)
        executor.drain()
        asleep.cancel()
        executor.drain()
        #expect(log.words == ["early cancelled", "asleep cancelled"] && clock.nextDeadline == nil)
        clock.move(to: .seconds(6))
        _ = sleeper("late", until: 5)
        executor.drain()
        #expect(log.words.last == "late" && clock.sleeperCount == 0)
    }

    @Test("Jobs run in the order of arrival, including those that they queue, and only when told")
    func jobs() {
        for name in ["a", "b"] {
            _ = Task(executorPreference: executor) { [log] in
                log.add(name)
                await Task.yield()
                log.add(name + "2")
            }
        }
        #expect(log.words.isEmpty)
        executor.drain()
        #expect(log.words == ["a", "b", "a2", "b2"])
    }
}

/// Words in the order in which they came.
private final class WordLog: Sendable {
    private let list = Mutex<[String]>([])

    var words: [String] { list.withLock { $0 } }

    func add(_ word: String) { list.withLock { $0.append(word) } }
}
