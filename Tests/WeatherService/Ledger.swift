// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the service has seen and sent since its start, the reading of the ledger itself not counted.
struct Ledger: Sendable, Equatable, Codable {
    /// Requests by what they asked for.
    var stations = 0
    var current = 0
    var forecast = 0
    var reports = 0
    var other = 0
    /// Bytes of content sent.
    var bytes = 0
    /// Answers by kind.
    var notModified = 0
    var tooManyRequests = 0
    var unavailable = 0

    /// All requests.
    var requests: Int { stations + current + forecast + reports + other }
}
