// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Harness

/// Counting the instructions of contests in a process of their own, where the system lends this one no counter.
public enum Counting {
    /// The first word of such a process; `--help` does not list it.
    public static let word = "child-instructions"

    /// Makes calls of every contest of one thread where callgrind counts them, and prints what it needs to know.
    ///
    /// Runs on the calling thread alone: it must be the first of the process, which must not have left it.
    ///
    /// - Parameters:
    ///   - calls: of each contest.
    ///   - make: makes the contests; what runs in the background is to run on the line.
    public static func child(
        calls: Int,
        _ make: @escaping @Sendable (JobLine) async throws -> [Contest]
    ) throws {
        let contests = try JobLine.run { try await make($0) }
        for contest in contests {
            guard contest.threads == 1, let call = contest.call else { continue }
            // Twice, since the second call of many a thing is cheaper still.
            for _ in 0..<2 { _ = try JobLine.run { _ in try await call(0, 0..<calls) } }
            CountedWork.run { _ = try? JobLine.run { _ in try await call(0, 0..<calls) } }
            print(contest.countName, calls)
        }
    }
}
