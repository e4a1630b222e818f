// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Synchronization
import Testing

@testable import HoldfastStorage

@Suite("A store's threads", .timeLimit(.minutes(5)))
struct IOThreadsTests {
    /// How many reads are made now, and how many ever were at a time.
    private final class Inside: Sendable {
        let counts = Mutex((now: 0, most: 0))
    }

    @Test("Several reads run at a time, but no more than there are readers")
    func readsSideBySide() async throws {
        let threads = try IOThreads()
        defer { threads.stop() }
        let inside = Inside()
        let gate = DispatchSemaphore(value: 0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<(3 * IOThreads.readers) {
                group.addTask {
                    try? await threads.run(.reads) {
                        let isFull = inside.counts.withLock { counts in
                            counts.now += 1
                            counts.most = max(counts.most, counts.now)
                            return counts.now == IOThreads.readers
                        }
                        // The last one lets all go: with fewer threads nobody would.
                        if isFull { for _ in 0..<(3 * IOThreads.readers) { gate.signal() } }
                        gate.wait()
                        inside.counts.withLock { $0.now -= 1 }
                    }
                }
            }
        }
        #expect(inside.counts.withLock { $0.most } == IOThreads.readers)
    }

    private final class Count: Sendable {
        let count = Atomic<Int>(0)
    }

    /// Counts when it is released.
    private final class HeldObject: Sendable {
        private let counter: Count
        init(counter: Count) { self.counter = counter }
        deinit { counter.count.add(1, ordering: .releasing) }
    }

    @Test(
        "A drained lane has finished everything it was given before, and released what that held",
        arguments: IOThreads.Lane.allCases
    )
    func drains(_ lane: IOThreads.Lane) async throws {
        let threads = try IOThreads()
        defer { threads.stop() }
        for round in 1...400 {
            let done = Atomic<Int>(0)
            let released = Count()
            for _ in 0..<50 {
                let held = HeldObject(counter: released)
                threads.later(lane) {
                    done.add(1, ordering: .relaxed)
                    withExtendedLifetime(held) {}
                }
            }
            await threads.drain(lane)
            #expect(done.load(ordering: .acquiring) == 50, "round \(round)")
            #expect(released.count.load(ordering: .acquiring) == 50, "round \(round)")
        }
    }

    @Test(
        "Work for the other lanes runs one at a time, in order",
        arguments: [IOThreads.Lane.changes, .writes, .syncs]
    )
    func order(_ lane: IOThreads.Lane) async throws {
        let threads = try IOThreads()
        defer { threads.stop() }
        let seen = Mutex<[Int]>([])
        for number in 0..<5_000 { threads.later(lane) { seen.withLock { $0.append(number) } } }
        await threads.drain(lane)
        #expect(seen.withLock { $0 } == Array(0..<5_000))
    }

    @Test("A lane that refuses callers still does the store's own work, until the last step", arguments: [false, true])
    func refusesCallers(isUrgent: Bool) async throws {
        let threads = try IOThreads()
        defer { threads.stop() }
        let seen = Mutex<[String]>([])
        try await threads.run(.changes, isUrgent: isUrgent) { seen.withLock { $0.append("caller") } }
        threads.refuseCallers(.changes)
        let error = await #expect(throws: StoreError.self) {
            try await threads.run(.changes, isUrgent: isUrgent) { seen.withLock { $0.append("late caller") } }
        }
        #expect(error?.code == .closed)
        #expect(threads.later(.changes) { seen.withLock { $0.append("own") } })
        await threads.drain(.changes, isLast: true) { seen.withLock { $0.append("last") } }
        #expect(!threads.later(.changes) { seen.withLock { $0.append("later") } })
        await threads.drain(.changes) { seen.withLock { $0.append("after the last") } }
        #expect(seen.withLock { $0 } == ["caller", "own", "last"])
        // The other lanes go on.
        try await threads.run(.writes, isUrgent: isUrgent) { seen.withLock { $0.append("write") } }
        #expect(seen.withLock { $0.last } == "write")
    }

    @Test("Stopped threads finish what they were given and accept no more")
    func stops() async throws {
        for _ in 0..<100 {
            let threads = try IOThreads()
            let done = Atomic<Int>(0)
            for lane in IOThreads.Lane.allCases {
                for _ in 0..<20 { threads.later(lane) { done.add(1, ordering: .relaxed) } }
            }
            threads.stop()
            #expect(!threads.later(.reads) {})
            for lane in IOThreads.Lane.allCases { await threads.drain(lane) }
            while done.load(ordering: .acquiring) < 80 { await Task.yield() }
        }
    }

    @Test("What a finished step held is released although others wait behind it", arguments: IOThreads.Lane.allCases)
    func releasesAtOnce(_ lane: IOThreads.Lane) async throws {
        let threads = try IOThreads()
        defer { threads.stop() }
        let width = lane == .reads ? IOThreads.readers : 1
        let first = DispatchSemaphore(value: 0)
        let second = DispatchSemaphore(value: 0)
        let released = Count()
        let begun = Count()
        // All threads are held until everything is queued.
        for _ in 0..<width { threads.later(lane) { first.wait() } }
        do {
            let held = HeldObject(counter: released)
            threads.later(lane) { withExtendedLifetime(held) {} }
        }
        // One more than there are threads, so that the queue does not run empty.
        for _ in 0...width {
            threads.later(lane) {
                begun.count.add(1, ordering: .releasing)
                second.wait()
            }
        }
        for _ in 0..<width { first.signal() }
        while begun.count.load(ordering: .acquiring) < width { await Task.yield() }
        // Each thread is in a later step, so the one that ran the holder's has left it.
        #expect(released.count.load(ordering: .acquiring) == 1)
        for _ in 0...width { second.signal() }
        await threads.drain(lane)
    }
}
