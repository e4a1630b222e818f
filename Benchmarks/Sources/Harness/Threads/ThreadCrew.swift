// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Synchronization

/// Dedicated threads for tasks: as many as requested, whatever the number of processors.
///
/// The default pool for tasks has one thread per processor, so that eight tasks on two processors take turns and never compete
/// for a lock.
public final class ThreadCrew: Sendable {
    private let members: [JobLine]

    /// Starts this many threads.
    public init(_ count: Int) {
        members = (0..<max(1, count)).map { _ in JobLine() }
        for member in members { Thread.detachNewThread { member.work() } }
    }

    /// Runs the work once on each of the first `count` threads, all at the same time.
    ///
    /// - Parameter work: receives the number of the thread.
    /// - Returns: the results in no particular order, and the nanoseconds from the first start to the last end.
    public func run<Outcome: Sendable>(
        _ count: Int,
        _ work: @escaping @Sendable (Int) async throws -> Outcome
    ) async throws -> (outcomes: [Outcome], nanoseconds: UInt64) {
        let watch = Stopwatch()
        let gate = Gate(count: count)
        return try await withThrowingTaskGroup(of: (Outcome, UInt64, UInt64).self) { group in
            for (number, member) in members.prefix(count).enumerated() {
                group.addTask(executorPreference: member) {
                    gate.pass()
                    let begun = watch.nanoseconds
                    let outcome = try await work(number)
                    return (outcome, begun, watch.nanoseconds)
                }
            }
            var (outcomes, first, last) = ([Outcome](), UInt64.max, UInt64(0))
            for try await (outcome, begun, ended) in group {
                outcomes.append(outcome)
                (first, last) = (min(first, begun), max(last, ended))
            }
            return (outcomes, last - min(first, last))
        }
    }

    deinit {
        for member in members { member.end() }
    }

    /// Blocks until all threads have arrived.
    private final class Gate: Sendable {
        private let missing: Atomic<Int>

        init(count: Int) { missing = Atomic(count) }

        func pass() {
            missing.subtract(1, ordering: .acquiringAndReleasing)
            // Waits by yielding the processor, because sleeping threads would have to be woken one after another.
            while missing.load(ordering: .acquiring) > 0 { sched_yield() }
        }
    }
}
