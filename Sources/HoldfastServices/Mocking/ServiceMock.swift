// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
private import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A transport that answers expected requests, strictly in order: for tests of code that calls endpoints, requests or proxies.
///
/// It is below the whole pipeline, so requests are built, cached, retried and checked as usual; a request without a required
/// credential fails before it gets here. A request that is not the next expected one fails with a ``MockFailure`` as its
/// error's cause, is never retried, and leaves the expectation for the next request.
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
        /// How many expectations were met and removed.
        var metCount = 0
        var failures: [MockFailure] = []
        var requests: [MockRequest] = []
        var calls: [String: MockedCall] = [:]
        var handler: (@Sendable (MockRequest) async throws -> MockResponse)?
        var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var lastWaiter: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Creates a mock that expects nothing.
    public init() {}

    /// Creates a client of a service that sends to this mock, and tells it which call each request belongs to.
    ///
    /// - Parameters:
    ///   - service: the API; its hooks and its cache are used.
    ///   - configuration: replaces the service's, for example with a clock that tests control.
    public func client<Service: HttpService>(
        of service: Service,
        configuration: PipelineConfiguration? = nil
    ) -> ServiceClient<Service> {
        ServiceClient(service, transport: self, requestHooks: [CallWitness(mock: self)], configuration: configuration)
    }

    /// Every request received, refused ones included, in order.
    public var requests: [MockRequest] { state.withLock { $0.requests } }

    /// Why requests were refused, in order.
    public var failures: [MockFailure] { state.withLock { $0.failures } }

    /// Descriptions of the expectations that are still unmet.
    public var unmet: [String] { state.withLock { $0.expectations.map(\.title) } }

    /// Expects a request by its method and path, whatever sends it.
    ///
    /// - Parameters:
    ///   - method: the request's method.
    ///   - path: a whole path if it begins with a slash, a URL without query if it has a scheme, otherwise the last segments of
    ///     a path; "" is the root. Not percent-encoded, and compared exactly: `/items/` differs from `/items`.
    ///   - validate: throws to refuse the request.
    ///   - respond: the response; an empty 200 by default.
    public func expect(
        _ method: HttpMethod,
        path: String,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        respond: MockResponse = .status(200)
    ) {
        add(MockExpectation(method, path: path, validate: validate, respond: respond))
    }

    /// Answers every request that arrives while nothing is expected, until ``stopHandlingAll()``.
    public func handleAll(_ handler: @escaping @Sendable (MockRequest) async throws -> MockResponse) {
        state.withLock { $0.handler = handler }
    }

    /// Ends ``handleAll(_:)``.
    public func stopHandlingAll() { state.withLock { $0.handler = nil } }

    /// Throws if a request was refused or an expectation is unmet; a refusal first.
    public func verify() throws(MockFailure) {
        let (failure, unmet) = state.withLock { ($0.failures.first, $0.expectations.map(\.title)) }
        if let failure { throw failure }
        guard unmet.isEmpty else {
            throw MockFailure(
                .unmetExpectations,
                message: "Expected but not received: \(unmet.joined(separator: ", "))."
            )
        }
    }

    /// Waits until nothing is expected any more, then verifies like ``verify()``.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait; 10 s by default.
    ///   - clock: the clock for the timeout.
    /// - Throws: ``MockFailure``, or `CancellationError`.
    public func waitForAll(timeout: Duration = .seconds(10), clock: any HoldfastClock = SystemClock()) async throws {
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
        let request = MockRequest(urlRequest: request, content: try await body.collect(from: request).data)
        let name = State.name(of: request.urlRequest, operationName: context.options.operationName)
        let call = state.withLock { state in
            state.requests.append(request)
            return state.calls[name]
        }
        while true {
            switch state.withLock({ $0.next(for: request) }) {
            case .handler(let handler): return try await handler(request).answer(request)
            case .failure(let failure): throw failure.refusal
            case .expected(let expectation, let number):
                // Outside the lock, because a test's own code may use the mock.
                let outcome = Result { () throws(MockFailure) in try expectation.check(request, call) }
                // If another request has met the expectation meanwhile, this one is checked against the next.
                guard let waiters = state.withLock({ $0.settle(number, outcome: outcome) }) else { continue }
                for waiter in waiters { waiter.resume() }
                if case .failure(let failure) = outcome { throw failure.refusal }
                return try expectation.respond.answer(request)
            }
        }
    }

    func add(_ expectation: MockExpectation) { state.withLock { $0.expectations.append(expectation) } }

    fileprivate func note(_ call: MockedCall, as urlRequest: URLRequest, operationName: String) {
        state.withLock { $0.calls[State.name(of: urlRequest, operationName: operationName)] = call }
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
    enum Next {
        case expected(MockExpectation, number: Int)
        case handler(@Sendable (MockRequest) async throws -> MockResponse)
        case failure(MockFailure)
    }

    /// The expectation for a request, or its response if nothing is expected.
    fileprivate mutating func next(for request: MockRequest) -> Next {
        if let expectation = expectations.first { return .expected(expectation, number: metCount) }
        if let handler { return .handler(handler) }
        let failure = MockFailure(.noExpectation, message: "Nothing was expected, but \(request.title) was received.")
        failures.append(failure)
        return .failure(failure)
    }

    /// Removes an expectation if it is met.
    ///
    /// - Returns: the waiters to resume; nil if another request met it before.
    fileprivate mutating func settle(
        _ number: Int,
        outcome: Result<Void, MockFailure>
    ) -> [CheckedContinuation<Void, any Error>]? {
        guard number == metCount else { return nil }
        if case .failure(let failure) = outcome {
            failures.append(failure)
            return []
        }
        expectations.removeFirst()
        metCount += 1
        guard expectations.isEmpty else { return [] }
        defer { waiters = [:] }
        return Array(waiters.values)
    }

    /// The name by which a request is recognized below the pipeline, where hooks may have added arguments to it.
    ///
    /// - Parameter operationName: the call's, because two endpoints may share a path.
    fileprivate static func name(of request: URLRequest, operationName: String?) -> String {
        let (host, path) = (request.url?.host ?? "", request.url?.path(percentEncoded: true) ?? "")
        return "\(operationName ?? "") \(request.httpMethod ?? "GET") \(host) \(path)"
    }
}

extension MockFailure {
    /// What the call of a refused request fails with.
    fileprivate var refusal: ServiceError { ServiceError(.unsupported, message, cause: self, progress: .notSent) }
}

/// Tells a mock which call a request belongs to.
private struct CallWitness: RequestHook {
    let mock: ServiceMock

    func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result? {
        if let call = (request as? any EndpointRequest).map({ MockedCall(of: $0) }) {
            let name = request.options.operationName ?? CallLogger.operationName(of: request)
            mock.note(call, as: urlRequest, operationName: name)
        }
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

/// A call that knows the coding of its input.
private protocol CodedCall {
    var coding: EndpointCoding { get }
}

extension EndpointCall: CodedCall {}

/// Expectations of endpoints; these need a client from ``ServiceMock/client(of:configuration:)``.
extension ServiceMock {
    /// Expects a call of an endpoint of any kind, downloads included.
    ///
    /// - Parameters:
    ///   - endpoint: the endpoint's type.
    ///   - path: the endpoint's path; nil, the default: any.
    ///   - validate: throws to refuse the request.
    ///   - respond: the response; an empty 200 by default.
    public func expect<Target: Endpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        respond: MockResponse = .status(200)
    ) {
        add(MockExpectation(endpoint, path: path, input: nil, validate: validate, respond: respond))
    }

    /// Expects a call of an endpoint with this input, compared in encoded form.
    ///
    /// - Parameters:
    ///   - endpoint: the endpoint's type.
    ///   - path: the endpoint's path; nil, the default: any.
    ///   - input: the expected input.
    ///   - validate: throws to refuse the request.
    ///   - respond: the response; an empty 200 by default.
    public func expect<Target: InEndpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        input: Target.Input,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        respond: MockResponse = .status(200)
    ) {
        let input = EndpointInput.values(input, as: Target.inputFormat)
        add(MockExpectation(endpoint, path: path, input: input, validate: validate, respond: respond))
    }

    /// Expects a call of an endpoint with this input; otherwise like ``expect(_:path:input:validate:respond:)``.
    public func expect<Target: InOutEndpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        input: Target.Input,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        respond: MockResponse
    ) {
        let input = EndpointInput.values(input, as: Target.inputFormat)
        add(MockExpectation(endpoint, path: path, input: input, validate: validate, respond: respond))
    }

    /// Expects a call of an endpoint and responds with a value as JSON.
    ///
    /// - Parameters:
    ///   - endpoint: the endpoint's type.
    ///   - path: the endpoint's path; nil, the default: any.
    ///   - validate: throws to refuse the request.
    ///   - output: the value. For a format other than JSON, give the content with `respond`.
    ///   - encoder: encodes the value.
    /// - Throws: any error of the encoder.
    public func expect<Target: OutEndpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        returning output: Target.Output,
        encoder: JSONEncoder = ServiceJSON.encoder()
    ) throws where Target.Output: Encodable {
        let answer = try MockResponse.json(output, encoder: encoder)
        add(MockExpectation(endpoint, path: path, input: nil, validate: validate, respond: answer))
    }

    /// Expects a call of an endpoint, with this input if given, and responds with a value as JSON; otherwise like
    /// ``expect(_:path:validate:returning:encoder:)``.
    public func expect<Target: InOutEndpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        input: Target.Input? = nil,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        returning output: Target.Output,
        encoder: JSONEncoder = ServiceJSON.encoder()
    ) throws where Target.Output: Encodable {
        let input = input.map { EndpointInput.values($0, as: Target.inputFormat) }
        let answer = try MockResponse.json(output, encoder: encoder)
        add(MockExpectation(endpoint, path: path, input: input, validate: validate, respond: answer))
    }
}
