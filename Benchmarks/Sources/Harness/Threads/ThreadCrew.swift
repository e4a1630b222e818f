// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Synchronization

/// Threads of their own, on which tasks run: as many as asked for, whatever the number of processors.
///
/// The pool that tasks otherwise run on has one thread a processor, so that eight tasks on two processors take turns and never
/// meet at a lock.
public final class ThreadCrew: Sendable {
    private let members: [JobLine]

    /// Starts so many threads.
    public init(_ count: Int) {
        members = (0..<max(1, count)).map { _ in JobLine() }
        for member in members { Thread.detachNewThread { member.work() } }
    }

    /// Does the work once on each of the first `count` threads, all at once.
    ///
    /// - Parameter work: gets the thread's number.
    /// - Returns: what they returned, in no order, and the nanoseconds from the first start to the last end.
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

    /// Lets nobody through before all are there.
    private final class Gate: Sendable {
        private let missing: Atomic<Int>

        init(count: Int) { missing = Atomic(count) }

        func pass() {
            missing.subtract(1, ordering: .acquiringAndReleasing)
            // Waits by giving the processor away: a thread that sleeps would have to be woken, one after the other.
            while missing.load(ordering: .acquiring) > 0 { sched_yield() }
        }
    }
}
