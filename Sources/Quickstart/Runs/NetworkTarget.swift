// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastCommand

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Servers on the network, asked for the URLs of the command line.
struct NetworkTarget: Target {
    private let urls: [URL]
    private let makeTransport: @Sendable () -> any Transport

    /// A target for `urls`, at least one.
    ///
    /// - Parameters:
    ///   - urls: what is asked for; a call names one by its place.
    ///   - makeTransport: makes what one run sends through; a URLSession of its own by default.
    init(
        urls: [URL],
        makeTransport: @escaping @Sendable () -> any Transport = { URLSessionTransport() }
    ) {
        self.urls = urls
        self.makeTransport = makeTransport
    }

    /// Long enough for a slow server, short enough for somebody who waits at a terminal.
    var attemptTimeout: Duration? { .seconds(30) }

    /// Otherwise a server whose responses are fresh would see nothing of a client that was started anew.
    var revalidatesAfterRestart: Bool { true }

    func request(for call: Call) -> URLRequest {
        var request = URLRequest(url: urls[call.resource])
        request.setValue(call.language.rawValue, forHTTPHeaderField: "Accept-Language")
        return request
    }

    func connect() -> Connection {
        let transport = CountingTransport(makeTransport())
        return Connection(transport: transport) { transport.traffic }
    }

    /// Loads each URL once with a plain client, so that a wrong one is found before anything is measured.
    ///
    /// - Throws: a ``CommandFailure`` of status 1 for the first URL that gives no answer; `CancellationError`.
    func probe(clock: any HoldfastClock) async throws {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = attemptTimeout
        let pipeline = Pipeline(transport: makeTransport(), configuration: configuration)
        for url in urls {
            do {
                let response = try await pipeline.send(URLRequest(url: url))
                for try await _ in response.body {}
            } catch {
                if Task.isCancelled { throw CancellationError() }
                throw CommandFailure.unreachable(url.absoluteString, NetworkTarget.reason(of: error))
            }
        }
    }

    private static func reason(of error: any Error) -> String {
        guard let error = error as? ServiceError else { return error.localizedDescription }
        return error.message
    }
}
