// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// A subject that holds entries in memory and returns them.
protocol Subject: Sendable {
    /// Its name in the figures.
    var name: String { get }

    /// Requests the entries at these places, one after another.
    ///
    /// - Returns: the number of complete and correct entries.
    func ask(_ asking: Asking, _ places: Range<Int>) async throws -> Int
}

/// The names of the subjects, and how to fill them.
enum SubjectKind: String, CaseIterable, Sendable {
    case holdfast
    case dictionary
    case sharded

    /// Whether it takes part in the cases with whole calls, besides those with look-ups.
    func hasFace(_ face: ScaleCase.Face) -> Bool { self != .sharded || face == .lookUp }

    /// Creates a subject with the entries from 0 on.
    func filled(_ face: ScaleCase.Face, entries: Int) async throws -> any Subject {
        switch (self, face) {
        case (.holdfast, .lookUp): try await StoreSubject(entries: entries)
        case (.holdfast, .send): try await PipelineSubject(entries: entries)
        case (.dictionary, .lookUp): ShardedSubject(name: rawValue, shards: 1, entries: entries)
        case (.dictionary, .send): AnswerSubject(entries: entries)
        case (.sharded, _): ShardedSubject(name: rawValue, shards: 32, entries: entries)
        }
    }
}
