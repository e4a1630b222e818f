// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A service and endpoints for tests.
enum EndpointBed {
    /// The credential can be changed while calls are under way.
    struct Service: WebService {
        static let shared = ServiceClient(Service(), transport: ScriptedTransport([]))

        var baseURL = URL(filePath: "/")
        let credential: HeldAuthorization
        let recorder = FailureRecorder()
        var authorization: Authorization { get async throws { credential.value } }
        var requestHooks: [any RequestHook] { [recorder] }

        init(_ base: String = "https://example.com/api/v1", _ authorization: Authorization = .none) {
            if let url = URL(string: base) { baseURL = url }
            credential = HeldAuthorization(authorization)
        }

        func process(_ error: any Error) { recorder.processed() }
    }

    struct CheckStatus: EmptyEndpoint {
        typealias Service = EndpointBed.Service
        let path = "status"
    }

    struct GetObject: OutEndpoint {
        typealias Service = EndpointBed.Service
        struct Output: Codable, Hashable { let name: String }
        let objectId: Int
        var path: String { "object/\(objectId)" }
    }

    struct Login: InOutEndpoint {
        typealias Service = EndpointBed.Service
        static let method = Method.post
        static let operationName = "Logging in"
        struct Input: Codable, Hashable {
            let username: String
            let password: String
        }
        struct Output: Codable, Hashable { let token: String }
        let path = "login"
    }

    /// A client of a service, with time by hand.
    static func client<Service: WebService>(
        _ service: Service,
        _ transport: any Transport,
        cache: HTTPCache? = nil,
        retrierFactory: (any RetrierFactory)? = nil,
        hooks: [any ServiceHook] = [],
        attemptTimeout: Duration? = PipelineConfiguration().attemptTimeout
    ) -> ServiceClient<Service> {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        configuration.attemptTimeout = attemptTimeout
        return ServiceClient(
            service,
            transport: transport,
            cache: cache,
            retrierFactory: retrierFactory,
            hooks: hooks,
            configuration: configuration
        )
    }
}

/// A credential that tests change.
final class HeldAuthorization: Sendable {
    private let held: Mutex<Authorization>

    init(_ value: Authorization) { held = Mutex(value) }

    var value: Authorization { held.withLock { $0 } }

    func set(_ value: Authorization) { held.withLock { $0 = value } }
}

/// Counts what a call is told to hooks and service.
final class FailureRecorder: RequestHook {
    struct Counts: Sendable, Hashable {
        var schedules = 0
        var successes = 0
        var failures = 0
        var processed = 0
    }

    private let state = Mutex(Counts())
    var counts: Counts { state.withLock { $0 } }

    func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result? {
        state.withLock { $0.schedules += 1 }
        return nil
    }
    func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result) async {
        state.withLock { $0.successes += 1 }
    }
    func onFailure(_ error: any Error) async { state.withLock { $0.failures += 1 } }
    func processed() { state.withLock { $0.processed += 1 } }
}

/// The error that a call of an endpoint failed with; nil where it succeeded or was cancelled.
func endpointError(_ call: () async throws -> Void) async -> EndpointError? {
    do {
        try await call()
        return nil
    } catch {
        return error as? EndpointError
    }
}
