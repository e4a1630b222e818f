// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastCommand
internal import HoldfastSemantics
internal import HoldfastServices
internal import HoldfastStorage
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The target of a load's calls: the built-in origin, or servers on the network.
protocol Target: Sendable {
    /// The longest time for one attempt; nil: no limit.
    var attemptTimeout: Duration? { get }

    /// Whether the first call of each resource requests revalidation after a store was reopened.
    var revalidatesAfterRestart: Bool { get }

    /// The request of a call.
    func request(for call: Call) -> URLRequest

    /// A connection for one run, with counts from zero.
    func connect() -> Connection
}

/// A connection to a target, and its traffic.
struct Connection: Sendable {
    /// Sends the requests.
    let transport: any Transport
    /// What was sent so far, counted at the target if possible.
    let traffic: @Sendable () -> Traffic
}

/// What an origin received and sent back.
struct Traffic: Sendable, Hashable {
    /// Requests, including those that were failed.
    var sends = 0
    /// Body bytes sent back.
    var bodyBytes = 0
    /// Responses with status 304.
    var notModified = 0
}

/// The built-in origin behind a router, created again for each run so that every run meets the same one.
struct OriginTarget: Target {
    private let resources: [Resource]
    private let bodies: BodySource
    private let urls: [URL]
    private let failShare: Double
    private let seed: UInt64
    private let clock: any HoldfastClock

    /// Creates an origin with `resources` resources that fails `failShare` of its requests.
    init(resources count: Int, failShare: Double, seed: UInt64, clock: any HoldfastClock) {
        guard let base = URL(string: "http://pmapi/origin/resources") else {
            preconditionFailure("the address of the built-in origin is not a URL")
        }
        resources = Resource.catalogue(count: count, seed: seed)
        bodies = BodySource(seed: seed)
        urls = resources.map { base.appendingPathComponent(String($0.number)) }
        self.failShare = failShare
        self.seed = seed
        self.clock = clock
    }

    /// The origin responds or throws within milliseconds; a limit would cost a timer per attempt.
    var attemptTimeout: Duration? { nil }

    /// It has its own resources that must be revalidated.
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

/// Servers on the network, for the URLs of the command line.
struct NetworkTarget: Target {
    private let urls: [URL]
    private let makeTransport: @Sendable () -> any Transport

    /// Creates a target for `urls`, at least one.
    ///
    /// - Parameters:
    ///   - urls: the URLs; a call refers to one by its position.
    ///   - makeTransport: makes the transport of one run; a new URLSession by default.
    init(
        urls: [URL],
        makeTransport: @escaping @Sendable () -> any Transport = { URLSessionTransport() }
    ) {
        self.urls = urls
        self.makeTransport = makeTransport
    }

    /// Long enough for a slow server, short enough for someone who waits at a terminal.
    var attemptTimeout: Duration? { .seconds(30) }

    /// Otherwise a server with fresh responses would get no requests from a restarted client.
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

    /// Loads each URL once with a plain client, so that a wrong one is found before the measurements.
    ///
    /// - Throws: a ``CommandFailure`` of status 1 for the first URL that does not respond; `CancellationError`.
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
                throw CommandFailure.unreachable(url.absoluteString, reason: NetworkTarget.reason(of: error))
            }
        }
    }

    private static func reason(of error: any Error) -> String {
        guard let error = error as? ServiceError else { return error.localizedDescription }
        return error.message
    }
}

/// Counts the traffic of another transport, for servers that cannot report it.
final class CountingTransport: WrappingTransport {
    /// The numbers, shared with bodies that outlive their call.
    final class Counter: Sendable {
        private let traffic = Mutex(Traffic())

        /// What was counted so far.
        var value: Traffic { traffic.withLock { $0 } }

        /// Counts something.
        func count(_ change: (inout Traffic) -> Void) {
            traffic.withLock { change(&$0) }
        }
    }

    let transport: any Transport
    private let counter = Counter()

    /// Creates a counter around `transport`.
    init(_ transport: any Transport) {
        self.transport = transport
    }

    /// What was counted so far; body bytes count as they are read.
    var traffic: Traffic { counter.value }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        counter.count { $0.sends += 1 }
        var response = try await transport.send(request, body: body, context: context)
        if response.status == .notModified { counter.count { $0.notModified += 1 } }
        if let source = response.body.source {
            let watched = WatchedBody(
                source,
                received: { [counter] chunk in counter.count { $0.bodyBytes += chunk.count } }
            )
            response.body = ResponseBody(watched, length: response.body.length)
        } else {
            counter.count { $0.bodyBytes += response.body.length ?? 0 }
        }
        return response
    }
}
