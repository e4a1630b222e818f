// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Exchanges

/// A cache in this process.
protocol Subject: Sendable {
    /// Its name in the figures.
    var name: String { get }

    /// Whether each hit takes milliseconds, so that it holds and returns far less.
    var isSlow: Bool { get }

    /// Whether it takes part in this case.
    func takesPart(in hitCase: HitCase) -> Bool

    /// Requests the resources at these places, one after another, in the way of a case.
    ///
    /// - Returns: the number of correct responses from the cache.
    func ask(_ asking: Asking, _ places: Range<Int>, _ hitCase: HitCase) async throws -> Int

    /// Closes all files.
    ///
    /// - Returns: what was wrong in the meantime; nil if nothing was.
    func close() async -> String?
}

extension Subject {
    var isSlow: Bool { false }
    func close() async -> String? { nil }
}

/// A cache does not contain what it was filled with, so its figures would mean nothing.
struct WrongAnswer: Error, CustomStringConvertible {
    let subject: String

    var description: String { "\(subject) does not return what it was filled with; its figures would mean nothing." }
}
