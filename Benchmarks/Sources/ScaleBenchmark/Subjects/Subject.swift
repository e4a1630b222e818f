// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// What holds entries in memory and answers for them.
protocol Subject: Sendable {
    /// Its name in the figures.
    var name: String { get }

    /// Asks for the entries at these places of the asking, one after another.
    ///
    /// - Returns: how many were there, whole and right.
    func ask(_ asking: Asking, _ places: Range<Int>) async throws -> Int
}

/// The names there are, and how each is filled.
enum SubjectKind: String, CaseIterable, Sendable {
    case holdfast
    case dictionary
    case sharded

    /// Whether it takes part in the cases of whole calls, beside those of look-ups.
    func hasFace(_ face: ScaleCase.Face) -> Bool { self != .sharded || face == .lookUp }

    /// Fills one with the entries from 0 on.
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
