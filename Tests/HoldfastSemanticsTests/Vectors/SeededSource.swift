// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// A source of randomness that a printed seed brings back (SplitMix64).
struct SeededSource: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Text made mostly of the given characters, with some arbitrary bytes among them.
    mutating func text(from alphabet: [String], upTo count: Int) -> String {
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 0...count, using: &self) {
            if Int.random(in: 0..<12, using: &self) == 0 {
                bytes.append(UInt8.random(in: 0...255, using: &self))
            } else if let piece = alphabet.randomElement(using: &self) {
                bytes += piece.utf8
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The seeds of the property tests; the test's name shows the one that failed.
let propertySeeds: [UInt64] = [1, 42, 0x5EED, 20_260_917]

extension Timestamp {
    /// A fixed instant for tests: Thu, 17 Sep 2026 12:00:00 GMT.
    static let noon = Timestamp(secondsSinceEpoch: 1_789_646_400)

    func plus(_ seconds: Int64) -> Timestamp {
        advanced(by: .seconds(seconds))
    }
}

/// The IMF-fixdate of an instant so many seconds from noon.
func date(_ seconds: Int64) -> String {
    HTTPDate(.noon.plus(seconds)).description
}

func target(_ text: String = "https://example.com/a") throws -> TargetURI {
    try TargetURI(text)
}
