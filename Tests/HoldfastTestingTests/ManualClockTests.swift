// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

@Suite("ManualClock", .timeLimit(.minutes(20)))
struct ManualClockTests {
    @Test("Time moves only when told, monotonic and wall time together")
    func advance() {
        let clock = ManualClock(start: Timestamp(secondsSinceEpoch: 100))
        let origin = clock.now
        clock.advance(by: .seconds(5))
        #expect(origin.duration(to: clock.now) == .seconds(5))
        #expect(clock.timestamp == Timestamp(secondsSinceEpoch: 105))
        clock.skewTimeOfDay(by: .seconds(-50))
        #expect(clock.timestamp == Timestamp(secondsSinceEpoch: 55))
        #expect(origin.duration(to: clock.now) == .seconds(5))
    }

    @Test("A sleeper wakes when its deadline comes, and not before")
    func sleeps() async throws {
        let clock = ManualClock()
        let woken = CountWatch()
        let sleeper = Task {
            try await clock.sleep(until: clock.now.advanced(by: .seconds(10)))
            woken.increment()
        }
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(9))
        #expect(clock.sleeperCount == 1)
        #expect(woken.count == 0)
        clock.advance(by: .seconds(1))
        try await sleeper.value
        #expect(woken.count == 1)
        #expect(clock.waits == [.seconds(10)])
    }

    @Test("A cancelled sleeper wakes at once, and a sleep in a cancelled task returns at once")
    func cancellation() async throws {
        let clock = ManualClock()
        let sleeper = Task { try await clock.sleep(until: clock.now.advanced(by: .seconds(10))) }
        try await clock.waitForSleeps(1)
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
        #expect(clock.sleeperCount == 0)
    }

    @Test("An automatic clock jumps to the deadline")
    func autoAdvances() async throws {
        let clock = ManualClock(autoAdvances: true)
        try await clock.sleep(until: clock.now.advanced(by: .seconds(30)))
        #expect(clock.now.sinceOrigin == .seconds(30))
    }

    @Test("With many sleepers and cancellations at once, nobody is left asleep")
    func stress() async throws {
        let clock = ManualClock()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<200 {
                group.addTask {
                    let sleeper = Task {
                        try await clock.sleep(until: clock.now.advanced(by: .milliseconds(index % 7 + 1)))
                    }
                    if index % 3 == 0 { sleeper.cancel() }
                    _ = await sleeper.result
                }
            }
            group.addTask {
                while !Task.isCancelled {
                    clock.advance(by: .milliseconds(1))
                    await Task.yield()
                }
            }
            for _ in 0..<200 { try await group.next() }
            group.cancelAll()
        }
        #expect(clock.sleeperCount == 0)
    }
}

@Suite("SeededGenerator")
struct SeededGeneratorTests {
    @Test("SplitMix64 with seed 1234567 gives its published first numbers")
    func knownNumbers() {
        var generator = SeededGenerator(seed: 1_234_567)
        let numbers = (0..<5).map { _ in generator.next() }
        #expect(
            numbers == [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
                4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
            ]
        )
    }
}
