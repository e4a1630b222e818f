// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Harness

/// Counts the instructions of contests in a separate process, for systems without a performance counter for this process.
public enum Counting {
    /// The first argument of such a process; `--help` does not list it.
    public static let word = "child-instructions"

    /// Makes calls of every single-threaded contest while callgrind counts instructions, and prints what ``CallgrindRun`` needs.
    ///
    /// Runs only on the calling thread, which must be the first thread of the process and must not have exited.
    /// - Parameters:
    ///   - calls: The number of calls per contest.
    ///   - make: Creates the contests; background work must run on the given line.
    public static func child(
        calls: Int,
        _ make: @escaping @Sendable (JobLine) async throws -> [Contest]
    ) throws {
        let contests = try JobLine.run { try await make($0) }
        for contest in contests {
            guard contest.threads == 1, let call = contest.call else { continue }
            // Twice, because many second calls are still cheaper than the first.
            for _ in 0..<2 { _ = try JobLine.run { _ in try await call(0, 0..<calls) } }
            CountedWork.run { _ = try? JobLine.run { _ in try await call(0, 0..<calls) } }
            print(contest.countName, calls)
        }
    }
}
