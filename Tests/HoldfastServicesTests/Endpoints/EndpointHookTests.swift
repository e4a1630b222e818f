// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Notes which endpoints are called, and what calls fail with.
private final class Witness: RequestHook {
    private let state = Mutex<(operations: [String], errors: [any Error])>(([], []))
    var operations: [String] { state.withLock { $0.operations } }
    var errors: [any Error] { state.withLock { $0.errors } }

    func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result? {
        if let call = request as? any EndpointRequest {
            let name = type(of: call.endpoint).operationName
            state.withLock { $0.operations.append(name) }
        }
        return nil
    }

    func onFailure(_ error: any Error) async { state.withLock { $0.errors.append(error) } }
}

/// An API whose callers are thrown one of a few errors.
private struct Mapped: WebService {
    enum Failure: Error { case notFound, other }
    struct BasicResponse: Decodable { let success: Bool }

    static let shared = ServiceClient(Mapped(), transport: ScriptedTransport([]))
    let witness = Witness()
    var baseURL: URL { URL(filePath: "/") }
    var apiUrl: any UrlConvertible { "api.example.com" }
    var requestHooks: [any RequestHook] { [witness] }

    func mapError(_ error: any Error) -> Failure { EndpointError(error).status == 404 ? .notFound : .other }
    func configure(_ decoder: inout JSONDecoder, for endpoint: some Endpoint) {
        decoder.dateDecodingStrategy = .iso8601
    }
    func validate(_ basicResponse: BasicResponse, for endpoint: some Endpoint) throws {
        guard basicResponse.success else { throw EndpointError("No.") }
    }
}

private struct Moment: OutEndpoint {
    typealias Service = Mapped
    struct Output: Decodable { let date: Date }
    let path = "moment"
    func configure(_ decoder: inout JSONDecoder) { decoder.dateDecodingStrategy = .secondsSince1970 }
}

private struct Ping: EmptyEndpoint {
    typealias Service = Mapped
    static let operationName = "Pinging"
    let path = "ping"
}

@Suite("Endpoints among hooks, retriers and mapError", .timeLimit(.minutes(20)))
struct EndpointHookTests {
    private let service = Mapped()

    private func client(
        _ steps: [ScriptedTransport.Step],
        retrierFactory: (any RetrierFactory)? = nil
    ) -> ServiceClient<Mapped> {
        EndpointBed.client(service, ScriptedTransport(steps), retrierFactory: retrierFactory)
    }

    @Test(
        "Hooks see which endpoint is called, and a ServiceError with the EndpointError as its cause"
    )
    func hooks() async throws {
        let client = client([.respond(404)])
        await #expect(throws: Mapped.Failure.notFound) { try await Ping().makeRequest(to: client) }
        #expect(service.witness.operations == ["Pinging"])
        let error = try #require(service.witness.errors.first as? ServiceError)
        #expect(error.code == .unacceptableStatus)
        #expect((error.cause as? EndpointError)?.operationName == "Pinging")
        #expect(service.witness.errors.count == 1)
    }

    @Test("Callers get the typed error that mapError makes")
    func mapped() async {
        let client = client([.fail(.offline, progress: .notSent)])
        do throws(Mapped.Failure) {
            try await Ping().makeRequest(to: client)
            Issue.record("nothing was thrown")
        } catch {
            #expect(error == .other)
        }
    }

    @Test(
        "A retrier that checks attempts is asked about a failing basic response; others are not",
        arguments: [true, false]
    )
    func checking(_ checksAttempts: Bool) async throws {
        let factory = AnyRetrierFactory(checksAttempts: checksAttempts) { _ in
            BackoffRetrier(strategy: .exponentialBinary(), retryCondition: { _ in true })
        }
        let steps: [ScriptedTransport.Step] = [
            .respond(body: #"{"success":false}"#), .respond(body: #"{"success":true}"#),
        ]
        let client = client(steps, retrierFactory: factory)
        let isDone = (try? await Ping().makeRequest(to: client)) != nil
        #expect(isDone == checksAttempts)
    }

    @Test("The endpoint configures decoders after the service")
    func decoders() async throws {
        let client = client([.respond(body: #"{"success":true,"date":1700000000}"#)])
        let output = try await Moment().makeRequest(to: client)
        #expect(output.date == Date(timeIntervalSince1970: 1_700_000_000))
    }
}
