// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastServices

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The built-in origin behind a router, made anew for each run so that every run meets the same.
struct OriginTarget: Target {
    private let resources: [Resource]
    private let bodies: BodySource
    private let urls: [URL]
    private let failShare: Double
    private let seed: UInt64
    private let clock: any HoldfastClock

    /// An origin with `resources` resources that fails `failShare` of its sends.
    init(resources count: Int, failShare: Double, seed: UInt64, clock: any HoldfastClock) {
        guard let base = URL(string: "http://pmapi/origin/resources") else {
            preconditionFailure("the address of the built-in origin is no URL")
        }
        resources = Resource.catalogue(count: count, seed: seed)
        bodies = BodySource(seed: seed)
        urls = resources.map { base.appendingPathComponent(String($0.number)) }
        self.failShare = failShare
        self.seed = seed
        self.clock = clock
    }

    /// The origin answers within milliseconds, or throws; a limit would cost a timer an attempt.
    var attemptTimeout: Duration? { nil }

    /// It has resources of its own that must be revalidated.
    var revalidatesAfterRestart: Bool { false }

    func request(for call: Call) -> URLRequest {
        var request = URLRequest(url: urls[call.resource])
        request.setValue(call.language.rawValue, forHTTPHeaderField: "Accept-Language")
        return request
    }

    /// The origin itself, unconnected.
    func makeOrigin() -> Origin {
        Origin(resources: resources, bodies: bodies, failShare: failShare, seed: seed, clock: clock)
    }

    func connect() -> Connection {
        let origin = makeOrigin()
        return Connection(transport: ServiceRouter(services: [origin])) { origin.traffic }
    }
}
