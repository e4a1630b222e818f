// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// What is said to `Benchmarks/Peers/peers.py`, one line each.
enum PeerQuestion: Sendable, Equatable {
    /// Fill every cache of a tier with so many resources of a length.
    case fill(tier: String, length: Int, entries: Int)
    /// Ask one of them for as long as this.
    case turn(subject: String, tier: String, length: Int, seconds: Double, seed: Int)

    /// The line, without its end.
    var line: String {
        switch self {
        case .fill(let tier, let length, let entries):
            #"{"fill": {"tier": "\#(tier)", "length": \#(length), "entries": \#(entries)}}"#
        case .turn(let subject, let tier, let length, let seconds, let seed):
            #"{"turn": {"subject": "\#(subject)", "tier": "\#(tier)", "length": \#(length), "#
                + #""seconds": \#(seconds), "seed": \#(seed)}}"#
        }
    }
}

/// What it answers, one line each.
struct PeerAnswer: Sendable, Equatable, Decodable {
    /// Names and versions of what is measured, after a fill.
    var versions: [String: String]?
    /// How long a turn took, how many hits there were, and how many of them were wrong.
    var seconds: Double?
    var hits: Int?
    var wrong: Int?
    /// Why there is no answer.
    var error: String?

    /// The answer of a line; one with an error where the line is none.
    init(line: String) {
        do {
            self = try JSONDecoder().decode(PeerAnswer.self, from: Data(line.utf8))
        } catch {
            self.error = "it answered '\(line.prefix(80))'"
        }
    }
}
