// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness

/// What a turn came to.
struct Spent: Sendable, Equatable {
    /// From the beginning to the end.
    var nanoseconds: Double
    /// Hits of all threads together.
    var hits: Int
    /// How many of them were right.
    var right: Int

    /// Nanoseconds by hits.
    var each: Double { nanoseconds / Double(max(1, hits)) }
}

/// A turn of a subject: asking it for a while, by one thread or several.
struct Turn: Sendable {
    /// Nanoseconds after which no further hits begin.
    let limit: UInt64
    /// Hits between the first two looks at the clock.
    let first: Int

    /// Asks on every thread at once.
    func run(_ threads: Int, _ ask: @escaping @Sendable (Int, Range<Int>) async throws -> Int) async throws -> Spent {
        let watch = Stopwatch()
        guard threads > 1 else {
            let (hits, right) = try await alone { try await ask(0, $0) }
            return Spent(nanoseconds: Double(watch.nanoseconds), hits: hits, right: right)
        }
        return try await withThrowingTaskGroup(of: (Int, Int).self) { group in
            for thread in 0..<threads {
                group.addTask { try await alone { try await ask(thread, $0) } }
            }
            var (hits, right) = (0, 0)
            for try await part in group { (hits, right) = (hits + part.0, right + part.1) }
            return Spent(nanoseconds: Double(watch.nanoseconds), hits: hits, right: right)
        }
    }

    private func alone(_ ask: (Range<Int>) async throws -> Int) async throws -> (hits: Int, right: Int) {
        let watch = Stopwatch()
        var (hits, right, size, elapsed) = (0, 0, first, UInt64(0))
        repeat {
            right += try await ask(hits..<(hits + size))
            hits += size
            let now = watch.nanoseconds
            // The clock is asked about every 2 ms: rarely enough to cost nothing, often enough to stop a slow subject.
            if now - elapsed < 2_000_000 { size *= 2 }
            elapsed = now
        } while elapsed < limit
        return (hits, right)
    }
}
