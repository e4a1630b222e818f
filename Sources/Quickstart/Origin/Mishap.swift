// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What goes wrong with one send to the built-in origin.
enum Mishap: Sendable, Hashable {
    /// 503, and where the number is there a Retry-After of so many seconds.
    case unavailable(retryAfter: Int?)
    /// The connection breaks before an answer comes.
    case droppedConnection

    /// What goes wrong, if anything: the same for the same send of the same resource, whichever task makes it.
    ///
    /// A third each are 503 alone, 503 with Retry-After, and dropped connections. One Retry-After in eight asks for a
    /// second, the others for none, so that a run does not consist of waiting.
    ///
    /// - Parameters:
    ///   - send: which send of this resource it is, from 0.
    ///   - resource: the resource's number.
    ///   - share: the share of sends that fail, 0 to 1.
    ///   - seed: what chance goes by.
    static func of(send: Int, resource: Int, share: Double, seed: UInt64) -> Mishap? {
        let parts = [seed, UInt64(truncatingIfNeeded: resource), UInt64(truncatingIfNeeded: send)]
        guard SplitMix.share(SplitMix.hash(parts[0], parts[1], parts[2], 1)) < share else { return nil }
        let kind = SplitMix.hash(parts[0], parts[1], parts[2], 2)
        switch kind % 3 {
        case 0: return .unavailable(retryAfter: nil)
        case 1: return .unavailable(retryAfter: (kind >> 32) % 8 == 0 ? 1 : 0)
        default: return .droppedConnection
        }
    }

    /// How long the origin thinks about a send, in microseconds: 1,000 to 3,000, by the same rule.
    static func microsecondsOfThought(send: Int, resource: Int, seed: UInt64) -> Int {
        let number = SplitMix.hash(
            seed,
            UInt64(truncatingIfNeeded: resource),
            UInt64(truncatingIfNeeded: send),
            3
        )
        return 1_000 + Int(number % 2_001)
    }
}
