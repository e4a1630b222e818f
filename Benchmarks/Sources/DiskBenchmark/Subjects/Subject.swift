// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A store under measurement; one task uses it at a time.
protocol Subject: AnyObject {
    /// Does puts before anything is measured, as fast as the subject can.
    func fill(_ steps: [Step]) async throws

    /// Does the steps, one after the other; a get hands the whole value out in fresh memory and checks its stamps.
    ///
    /// - Throws: ``WrongAnswer`` where an entry is missing or is not what was put.
    func run(_ steps: ArraySlice<Step>) async throws

    /// Lets go of all files.
    func close() async
}

extension Subject {
    func fill(_ steps: [Step]) async throws {
        try await run(steps[...])
    }
}

/// A subject gave no or a wrong answer: its figures mean nothing.
struct WrongAnswer: Error, CustomStringConvertible {
    let subject: String
    let entry: Int

    var description: String { "\(subject) lost entry \(entry) or handed out other bytes; its figures mean nothing." }
}

/// What the system said to a subject's call.
struct CallFailure: Error, CustomStringConvertible {
    let description: String

    init(_ subject: String, _ call: String, _ code: Int32) {
        description = "\(subject): \(call) failed with code \(code)."
    }
}
