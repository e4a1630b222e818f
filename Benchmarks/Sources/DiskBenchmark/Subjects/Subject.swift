// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A measured store; only one task uses it at a time.
protocol Subject: AnyObject {
    /// Runs puts before the measurement, as fast as the subject can.
    func fill(_ steps: [Step]) async throws

    /// Runs the steps one after another. A get copies the whole value to new memory and checks its stamps.
    ///
    /// - Throws: ``WrongAnswer`` if an entry is missing or differs from what was put.
    func run(_ steps: ArraySlice<Step>) async throws

    /// Closes all files.
    func close() async
}

extension Subject {
    func fill(_ steps: [Step]) async throws {
        try await run(steps[...])
    }
}

/// A subject returned no value or a wrong one, so its figures mean nothing.
struct WrongAnswer: Error, CustomStringConvertible {
    let subject: String
    let entry: Int

    var description: String { "\(subject) lost entry \(entry) or returned wrong bytes; its figures mean nothing." }
}

/// The error code of a failed system or library call.
struct CallFailure: Error, CustomStringConvertible {
    let description: String

    init(_ subject: String, _ call: String, _ code: Int32) {
        description = "\(subject): \(call) failed with code \(code)."
    }
}
