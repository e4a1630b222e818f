// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastCommand

#if canImport(FoundationNetworking)
    // Foundation on Linux keeps URLSession in a module of its own.
    internal import FoundationNetworking
#endif

/// What the service has seen and sent, as it tells itself.
struct ServiceLedger: Sendable, Equatable, Codable {
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

    /// What was added since an earlier reading.
    func since(_ earlier: ServiceLedger) -> ServiceLedger {
        ServiceLedger(
            stations: stations - earlier.stations,
            current: current - earlier.current,
            forecast: forecast - earlier.forecast,
            reports: reports - earlier.reports,
            other: other - earlier.other,
            bytes: bytes - earlier.bytes,
            notModified: notModified - earlier.notModified,
            tooManyRequests: tooManyRequests - earlier.tooManyRequests,
            unavailable: unavailable - earlier.unavailable
        )
    }

    /// Reads the ledger of the service at `url`, which does not count that.
    ///
    /// - Throws: a ``CommandFailure`` of status 1.
    static func read(of url: URL, by session: URLSession) async throws -> ServiceLedger {
        do {
            let (data, _) = try await session.data(from: url.appendingPathComponent("ledger"))
            return try JSONDecoder().decode(ServiceLedger.self, from: data)
        } catch {
            throw CommandFailure.service("no weather service at \(url.absoluteString): \(error)")
        }
    }
}
