// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation

/// How the service behaves.
struct ServiceOptions: Sendable, Equatable {
    /// Why the command line cannot be used.
    struct Usage: Error, Equatable {
        let description: String
    }

    /// How long each answer takes, in seconds.
    var delay = 0.03
    /// The `max-age` of current weather, in seconds.
    var currentAge = 1
    /// How many requests a client may make at once.
    var capacity = 80
    /// How many more it may make each second.
    var refill = 25
    /// One of so many requests gets a 503; 0: none.
    var failEvery = 40
    /// The Retry-After of a 503, in seconds.
    var retryAfter = 1

    /// The defaults.
    init() {}

    /// Reads the words after the program's name: `--name number` pairs.
    init(parsing words: some Sequence<String>) throws(Usage) {
        var words = ArraySlice(Array(words))
        while let name = words.popFirst() {
            guard let word = words.popFirst(), let number = Int(word), (0...1_000_000).contains(number) else {
                throw Usage(description: "\(name) wants a whole number from 0 to 1000000")
            }
            switch name {
            case "--delay-ms": delay = Double(number) / 1_000
            case "--current-age": currentAge = number
            case "--capacity": capacity = number
            case "--refill": refill = number
            case "--fail-every": failEvery = number
            case "--retry-after": retryAfter = number
            default: throw Usage(description: "unknown option \(name)")
            }
        }
    }
}
