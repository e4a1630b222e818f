// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastCommand

#if canImport(FoundationNetworking)
    // On Linux, Foundation has URLSession in a separate module.
    internal import FoundationNetworking
#endif

/// Runs the job with one client, before and after the one-line change.
struct ClientRun: Sendable {
    /// Before or after.
    enum Side: String, Sendable, CaseIterable {
        case before, after
    }

    let kind: ClientKind
    let side: Side
    let url: URL
    let dashboard: Dashboard

    /// Does the job with its own session, pipeline and cache, and with its own API key.
    ///
    /// - Throws: a ``CommandFailure`` if the service's counts cannot be read; `CancellationError`.
    func perform() async throws -> RunResult {
        let session = URLSession(configuration: .ephemeral)
        defer { session.finishTasksAndInvalidate() }
        let transport = URLSessionTransport()
        defer { transport.invalidate() }
        let cache = HTTPCache.inMemory()
        let pipeline = Pipeline(transport: transport, cache: cache, retrierFactory: .default)
        let earlier = try await ServiceLedger.read(of: url, by: session)
        let clock = ContinuousClock()
        let start = clock.now
        let outcome = try await dashboard.run(reader(session, pipeline: pipeline, cache: cache))
        let duration = start.duration(to: clock.now)
        await pipeline.drain()
        let ledger = try await ServiceLedger.read(of: url, by: session).since(earlier)
        let statistics = cache.statistics
        return RunResult(
            kind: kind,
            side: side,
            ledger: ledger,
            outcome: outcome,
            duration: duration,
            bytesSaved: side == .after ? statistics.bytesSaved : 0,
            timeSaved: side == .after ? statistics.timeSaved : .zero
        )
    }

    private func reader(
        _ session: URLSession,
        pipeline: Pipeline,
        cache: HTTPCache
    ) -> @Sendable (Question) async throws -> Reading {
        let key = "\(kind.rawValue)-\(side.rawValue)"
        let url = url
        switch kind {
        case .urlSession:
            let weather = SessionWeather(session: session, pipeline: pipeline)
            switch side {
            case .before: return { try await weather.readBefore($0.request(to: url, key: key)) }
            case .after: return { try await weather.readAfter($0.request(to: url, key: key)) }
            }
        case .asyncHTTPClient:
            #if AsyncHTTPClient
                let weather = AsyncClientWeather(cache: cache)
                switch side {
                case .before: return { try await weather.readBefore($0, at: url, key: key) }
                case .after: return { try await weather.readAfter($0, at: url, key: key) }
                }
            #else
                return { _ in throw CommandFailure.missing(.asyncHTTPClient) }
            #endif
        case .generated:
            #if HTTPTypes
                let weather = GeneratedWeather(session: session, pipeline: pipeline, url: url, key: key)
                switch side {
                case .before: return { try await weather.readBefore($0) }
                case .after: return { try await weather.readAfter($0) }
                }
            #else
                return { _ in throw CommandFailure.missing(.generated) }
            #endif
        }
    }
}

extension CommandFailure {
    /// A named client needs a trait that is off.
    static func missing(_ kind: ClientKind) -> CommandFailure {
        .usage("the client \(kind.rawValue) needs a build with --traits \(kind.missingTrait ?? "")")
    }
}

/// The clients that the example runs.
enum ClientKind: String, CaseIterable, Sendable {
    case urlSession = "urlsession"
    case asyncHTTPClient = "async-http-client"
    case generated

    /// The trait that the client needs if that is off; nil if the client is available.
    var missingTrait: String? {
        switch self {
        case .urlSession:
            return nil
        case .asyncHTTPClient:
            #if AsyncHTTPClient
                return nil
            #else
                return "AsyncHTTPClient"
            #endif
        case .generated:
            #if HTTPTypes
                return nil
            #else
                return "HTTPTypes"
            #endif
        }
    }
}
