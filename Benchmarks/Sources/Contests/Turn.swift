// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness

/// The result of a turn.
public struct Spent: Sendable, Equatable {
    /// The duration of the turn.
    public var nanoseconds: Double
    /// The number of calls on all threads.
    public var calls: Int
    /// How many of them returned a correct result.
    public var right: Int

    /// Creates the result of a turn.
    public init(nanoseconds: Double, calls: Int, right: Int) {
        (self.nanoseconds, self.calls, self.right) = (nanoseconds, calls, right)
    }

    /// Nanoseconds per call.
    public var each: Double { nanoseconds / Double(max(1, calls)) }
}

/// A turn of a subject: calls on one or more threads for a limited time.
struct Turn: Sendable {
    /// No further calls begin after this many nanoseconds.
    let limit: UInt64
    /// The number of calls before the first check of the clock.
    let first: Int

    /// Makes calls on all threads at the same time.
    func run(_ threads: Int, _ call: @escaping Contest.Call) async throws -> Spent {
        let watch = Stopwatch()
        guard threads > 1 else {
            let (calls, right) = try await alone { try await call(0, $0) }
            return Spent(nanoseconds: Double(watch.nanoseconds), calls: calls, right: right)
        }
        return try await withThrowingTaskGroup(of: (Int, Int).self) { group in
            for thread in 0..<threads {
                group.addTask { try await alone { try await call(thread, $0) } }
            }
            var (calls, right) = (0, 0)
            for try await part in group { (calls, right) = (calls + part.0, right + part.1) }
            return Spent(nanoseconds: Double(watch.nanoseconds), calls: calls, right: right)
        }
    }

    private func alone(_ call: (Range<Int>) async throws -> Int) async throws -> (calls: Int, right: Int) {
        let watch = Stopwatch()
        var (calls, right, size, elapsed) = (0, 0, first, UInt64(0))
        repeat {
            right += try await call(calls..<(calls + size))
            calls += size
            let now = watch.nanoseconds
            // The clock is read about every 2 ms: rarely enough to cost nothing, often enough to stop a slow subject.
            if now - elapsed < 2_000_000 { size *= 2 }
            elapsed = now
        } while elapsed < limit
        return (calls, right)
    }
}
