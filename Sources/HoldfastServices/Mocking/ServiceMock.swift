// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
internal import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A transport that answers by expectations, strictly in their order: for tests of code that calls endpoints, requests or proxies.
///
/// It stands beneath the whole pipeline, so requests are built, cached, retried and judged as ever; a request that lacks a
/// required credential fails before it comes here. A request that is not the next one expected fails with a ``MockFailure`` as
/// its error's cause, is never retried, and leaves the expectation for the next request.
///
/// ```swift
/// let mock = ServiceMock()
/// try mock.expect(Login.self, input: credentials, returning: token)
/// try await MyService.withShared(mock.client(of: MyService())) { try await session.logIn() }
/// try mock.verify()
/// ```
public final class ServiceMock: Transport {
    fileprivate struct State {
        var expectations: [MockExpectation] = []
        var failures: [MockFailure] = []
        var requests: [MockRequest] = []
        var calls: [String: MockedCall] = [:]
        var handler: (@Sendable (MockRequest) async throws -> MockResponse)?
        var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var lastWaiter: UInt64 = 0
    }

    private let state = Mutex(State())

    /// A mock that expects nothing.
    public init() {}

    /// A client of a service that sends to this mock, and tells it which call each request belongs to.
    ///
    /// - Parameters:
    ///   - service: the API; its hooks and its cache stay in force.
    ///   - configuration: in place of the service's, such as with a clock that tests control.
    public func client<Service: HttpService>(
        of service: Service,
        configuration: PipelineConfiguration? = nil
    ) -> ServiceClient<Service> {
        ServiceClient(service, transport: self, requestHooks: [CallWitness(mock: self)], configuration: configuration)
    }

    /// Every request that came, refused ones included, in order.
    public var requests: [MockRequest] { state.withLock { $0.requests } }

    /// Why requests were refused, in order.
    public var failures: [MockFailure] { state.withLock { $0.failures } }

    /// What is still expected, in words.
    public var unmet: [String] { state.withLock { $0.expectations.map(\.title) } }

    /// Expects a request by its method and path, whatever sends it.
    ///
    /// - Parameters:
    ///   - path: a whole path where it begins with a slash, else the last segments of one; not percent-encoded.
    ///   - validate: throws to refuse the request.
    ///   - respond: the answer; an empty 200 by default.
    public func expect(
        _ method: HttpMethod,
        _ path: String,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        respond: MockResponse = .status(200)
    ) {
        add(MockExpectation(method, path, validate: validate, respond: respond))
    }

    /// Answers every request that comes while nothing is expected, until ``stopHandlingAll()``.
    public func handleAll(_ handler: @escaping @Sendable (MockRequest) async throws -> MockResponse) {
        state.withLock { $0.handler = handler }
    }

    /// Ends ``handleAll(_:)``.
    public func stopHandlingAll() {
        state.withLock { $0.handler = nil }
    }

    /// Fails where a request was refused, or an expectation is left; the first refusal is thrown.
    public func verify() throws(MockFailure) {
        let (failure, unmet) = state.withLock { ($0.failures.first, $0.expectations.map(\.title)) }
        if let failure { throw failure }
        guard unmet.isEmpty else {
            throw MockFailure(.unmetExpectations, "Expected and not come: \(unmet.joined(separator: ", ")).")
        }
    }

    /// Waits until nothing is expected any more; then verifies as ``verify()`` does.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait; 10 s by default.
    ///   - clock: what the time goes by.
    /// - Throws: ``MockFailure``, or `CancellationError`.
    public func waitForAll(
        timeout: Duration = .seconds(10),
        clock: any HoldfastClock = SystemClock()
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.waitUntilMet() }
            group.addTask {
                try await clock.sleep(until: clock.now.advanced(by: timeout))
                try self.verify()
            }
            _ = try await group.next()
            group.cancelAll()
        }
        try verify()
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let request = MockRequest(urlRequest: request, content: try await body.allBytes(of: request))
        let (result, handler, waiters) = state.withLock { $0.take(request) }
        for waiter in waiters { waiter.resume() }
        switch result {
        case .success(let response?): return try response.answer(request)
        case .success(nil):
            guard let handler else { throw CancellationError() }
            return try await handler(request).answer(request)
        case .failure(let failure):
            throw ServiceError(.unsupported, failure.message, cause: failure, progress: .notSent)
        }
    }

    func add(_ expectation: MockExpectation) {
        state.withLock { $0.expectations.append(expectation) }
    }

    fileprivate func note(_ call: MockedCall, _ urlRequest: URLRequest) {
        state.withLock { $0.calls[State.name(of: urlRequest)] = call }
    }

    private func waitUntilMet() async throws {
        let number = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.expectations.isEmpty || Task.isCancelled { return true }
                    state.waiters[number] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
            waiter?.resume(throwing: CancellationError())
        }
        try Task.checkCancellation()
    }
}

extension ServiceMock.State {
    /// Judges a request by the first expectation, and takes that off where it is met.
    fileprivate mutating func take(
        _ request: MockRequest
    ) -> (
        Result<MockResponse?, MockFailure>,
        (@Sendable (MockRequest) async throws -> MockResponse)?,
        [CheckedContinuation<Void, any Error>]
    ) {
        requests.append(request)
        guard let expectation = expectations.first else {
            if let handler { return (.success(nil), handler, []) }
            let failure = MockFailure(.noExpectation, "Nothing was expected; \(request.title) came.")
            failures.append(failure)
            return (.failure(failure), nil, [])
        }
        do {
            try expectation.check(request, calls[Self.name(of: request.urlRequest)])
        } catch {
            failures.append(error)
            return (.failure(error), nil, [])
        }
        expectations.removeFirst()
        guard expectations.isEmpty else { return (.success(expectation.respond), nil, []) }
        let woken = Array(waiters.values)
        waiters = [:]
        return (.success(expectation.respond), nil, woken)
    }

    /// By what a request is known again beneath the pipeline, where hooks may have added arguments to it.
    fileprivate static func name(of request: URLRequest) -> String {
        "\(request.httpMethod ?? "GET") \(request.url?.host ?? "") \(request.url?.path(percentEncoded: true) ?? "")"
    }
}

/// Tells a mock which call a request belongs to.
private struct CallWitness: RequestHook {
    let mock: ServiceMock

    func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result? {
        if let call = (request as? any EndpointRequest).map({ MockedCall(of: $0) }) { mock.note(call, urlRequest) }
        return nil
    }
}

extension MockedCall {
    fileprivate init<Call: EndpointRequest>(of call: Call) {
        self.init(
            name: "\(Call.Target.self)",
            target: ObjectIdentifier(Call.Target.self),
            path: call.endpoint.path,
            coding: (call as? any CodedCall)?.coding
        )
    }
}

/// A call that knows for whom its input is written.
private protocol CodedCall {
    var coding: EndpointCoding { get }
}

extension EndpointCall: CodedCall {
    fileprivate var coding: EndpointCoding { stages.coding }
}
