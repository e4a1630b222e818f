// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// A command to `Benchmarks/Peers/peers.py`, one line each.
enum PeerQuestion: Sendable, Equatable {
    /// Fill every cache of a tier with this many resources of a length.
    case fill(tier: String, length: Int, entries: Int)
    /// Make calls of one subject for this long.
    case turn(subject: String, tier: String, length: Int, seconds: Double, seed: Int)

    /// The line, without its newline.
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

/// A response of the script, one line each.
struct PeerAnswer: Sendable, Equatable, Decodable {
    /// Names and versions of the measured subjects, after a fill.
    var versions: [String: String]?
    /// The duration of a turn, the number of hits, and how many of them were wrong.
    var seconds: Double?
    var hits: Int?
    var wrong: Int?
    /// Why there is no result.
    var error: String?

    /// Creates the response from a line, or one with an error if the line is not valid.
    init(line: String) {
        do {
            self = try JSONDecoder().decode(PeerAnswer.self, from: Data(line.utf8))
        } catch {
            self.error = "it answered '\(line.prefix(80))'"
        }
    }
}
