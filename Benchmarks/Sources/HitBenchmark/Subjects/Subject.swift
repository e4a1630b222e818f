// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Exchanges

/// A cache in this process that is asked.
protocol Subject: Sendable {
    /// Its name in the figures.
    var name: String { get }

    /// Whether each hit takes milliseconds, so that it holds and answers far less.
    var isSlow: Bool { get }

    /// Whether it has that case.
    func takesPart(in hitCase: HitCase) -> Bool

    /// Asks for what stands at these places, one after the other.
    ///
    /// - Returns: how many answers came from the cache and were right.
    func ask(_ asking: Asking, _ places: Range<Int>, _ face: HitCase.Face) async throws -> Int

    /// Lets go of all files.
    ///
    /// - Returns: what was wrong in the meantime; nil where all was right.
    func close() async -> String?
}

extension Subject {
    var isSlow: Bool { false }
    func close() async -> String? { nil }
}

/// A cache does not have what it was filled with: its figures would mean nothing.
struct WrongAnswer: Error, CustomStringConvertible {
    let subject: String

    var description: String { "\(subject) does not answer what it was filled with; its figures would mean nothing." }
}
