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

/// Where the calls of a load go: the built-in origin, or servers on the network.
protocol Target: Sendable {
    /// The longest time for one attempt; nil: no limit.
    var attemptTimeout: Duration? { get }

    /// Whether the first call of each resource asks for revalidation when a store is opened anew.
    var revalidatesAfterRestart: Bool { get }

    /// The request of a call.
    func request(for call: Call) -> URLRequest

    /// A way there of its own for one run, counted from zero.
    func connect() -> Connection
}

/// The way to a target, and what went along it.
struct Connection: Sendable {
    /// What sends.
    let transport: any Transport
    /// What was sent so far, as counted at the far end, or as near to it as can be.
    let traffic: @Sendable () -> Traffic
}

/// What reached an origin and what came back.
struct Traffic: Sendable, Hashable {
    /// Requests, those included that were failed.
    var sends = 0
    /// Body bytes sent back.
    var bodyBytes = 0
    /// Answers of status 304.
    var notModified = 0
}

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
                throw CommandFailure.unreachable(url.absoluteString, reason: NetworkTarget.reason(of: error))
            }
        }
    }

    private static func reason(of error: any Error) -> String {
        guard let error = error as? ServiceError else { return error.localizedDescription }
        return error.message
    }
}

/// Counts what goes through another transport, for servers that cannot be asked what reached them.
final class CountingTransport: Transport {
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

    private let next: any Transport
    private let counter = Counter()

    /// A counter around `next`.
    init(_ next: any Transport) {
        self.next = next
    }

    /// What was counted so far; body bytes count as they are read.
    var traffic: Traffic { counter.value }

    var enforcesDeadline: Bool { next.enforcesDeadline }

    func implicitFields(for request: URLRequest) -> HeaderFields {
        next.implicitFields(for: request)
    }

    func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        next.implicitFields(for: request, context: context)
    }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        counter.count { $0.sends += 1 }
        var response = try await next.send(request, body: body, context: context)
        if response.status == .notModified { counter.count { $0.notModified += 1 } }
        if let source = response.body.source {
            response.body = ResponseBody(CountedSource(source, counter: counter), length: response.body.length)
        } else {
            counter.count { $0.bodyBytes += response.body.length ?? 0 }
        }
        return response
    }

    private struct CountedSource: ByteSource {
        private let next: any ByteSource
        private let counter: Counter

        init(_ next: any ByteSource, counter: Counter) {
            self.next = next
            self.counter = counter
        }

        func next() async throws -> ByteChunk? {
            let chunk = try await next.next()
            if let chunk { counter.count { $0.bodyBytes += chunk.count } }
            return chunk
        }

        func cancel() {
            next.cancel()
        }
    }
}
