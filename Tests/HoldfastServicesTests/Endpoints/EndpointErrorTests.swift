// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A service whose callers are thrown one type.
private struct Typed: WebService {
    static let shared = ServiceClient(Typed(), transport: ScriptedTransport([.silence]))
    var baseURL: URL { URL(filePath: "/") }
    var apiUrl: any UrlConvertible { "api.example.com" }
    func mapError(_ error: any Error) -> EndpointError { EndpointError(error) }
}

private struct Wait: EmptyEndpoint {
    typealias Service = Typed
    static let operationName = "Waiting"
    let path = "wait"
}

private struct Secret: AnyErrorResponse {
    let message: String
    var isInternal: Bool { true }
}

/// What may be answered from the cache only.
private struct OfflineObject: OutEndpoint {
    typealias Service = EndpointBed.Service

    struct Output: Codable, Hashable { let name: String }

    let path = "object/7"
    var options: CallOptions {
        var options = CallOptions()
        options.cache = .onlyIfCached
        return options
    }
}

@Suite("EndpointError", .timeLimit(.minutes(20)))
struct EndpointErrorTests {
    @Test(
        "Each status has a code and a description of its own",
        arguments: [
            (401, EndpointError.Code.unauthorized, "Log in", false), (403, .forbidden, "not allowed", false),
            (404, .http, "404", true), (410, .gone, "newest version", false), (418, .http, "418", true),
            (429, .http, "Wait", false), (500, .http, "500", true), (502, .badGateway, "Try again later", false),
            (503, .http, "busy", false),
        ]
    )
    func statuses(_ status: Int, _ code: EndpointError.Code, _ words: String, _ isInternal: Bool) async throws {
        let client = EndpointBed.client(EndpointBed.Service(), ScriptedTransport([.respond(status)]))
        let error = try #require(
            await endpointError {
                _ = try await EndpointBed.Login().makeRequest(to: client, with: .init(username: "u", password: "p"))
            }
        )
        #expect(error.code == code)
        #expect(error.reason.contains(words))
        #expect(error.isInternal == isInternal)
        #expect(error.operationName == "Logging in")
        #expect(error.title == "Logging in failed")
        #expect(error.errorDescription == error.alertMessage)
        #expect(error.alertMessage.contains(error.reason))
        #expect((error.alertMessage == error.reason) == !isInternal)
        #expect(!"\(error)".contains("p\""))
    }

    @Test(
        "Each transport failure has a code and a description of its own",
        arguments: [
            (ServiceError.Code.offline, EndpointError.Code.network, "no network"), (.resolve, .network, "not be found"),
            (.connect, .network, "cannot be reached"), (.connectionLost, .network, "was lost"),
            (.certificate, .network, "could not be verified"), (.timeout, .timeout, "too long"),
            (.circuitOpen, .heldBack, "Try again later"), (.other, .other, "unexpected"),
        ]
    )
    func transport(_ code: ServiceError.Code, _ expected: EndpointError.Code, _ words: String) async throws {
        let transport = ScriptedTransport([.fail(code, progress: .notSent)])
        let client = EndpointBed.client(EndpointBed.Service(), transport)
        let error = try #require(await endpointError { try await EndpointBed.CheckStatus().makeRequest(to: client) })
        #expect(error.code == expected)
        #expect(error.reason.contains(words))
        #expect((error.cause as? ServiceError)?.code == code)
        #expect(error.operationName == "CheckStatus")
        #expect(error.response == nil)
    }

    @Test(
        "A URL loading error of the platform has a description too",
        arguments: [
            (URLError.Code.notConnectedToInternet, EndpointError.Code.network), (.cannotFindHost, .network),
            (.timedOut, .timeout), (.userAuthenticationRequired, .unauthorized), (.badURL, .badRequest),
            (.zeroByteResource, .other),
        ]
    )
    func urlErrors(_ code: URLError.Code, _ expected: EndpointError.Code) async throws {
        let client = EndpointBed.client(EndpointBed.Service(), ScriptedTransport([.fail(URLError(code))]))
        let error = await endpointError { try await EndpointBed.CheckStatus().makeRequest(to: client) }
        #expect(error?.code == expected)
        #expect(error?.isInternal == (expected == .other))
    }

    @Test("The error of a call that was retried in vain has its attempts")
    func attempts() async throws {
        let transport = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        let client = EndpointBed.client(EndpointBed.Service(), transport, retrierFactory: .default)
        let error = try #require(await endpointError { try await EndpointBed.CheckStatus().makeRequest(to: client) })
        #expect(transport.sent.count > 1)
        #expect(error.attempts.count == transport.sent.count)
    }

    @Test("The error has the server's Retry-After, also beside the server's own message")
    func retryAfter() async throws {
        let transport = ScriptedTransport([.respond(429, ["Retry-After": "30"])])
        let client = EndpointBed.client(EndpointBed.Service(), transport)
        let error = await endpointError { try await EndpointBed.CheckStatus().makeRequest(to: client) }
        #expect(error?.retryAfter == .seconds(30))
    }

    @Test("An error response may say that its message is for developers")
    func internalMessage() {
        let original = EndpointError("It failed.", code: .http)
        let error = EndpointError.parsed(Secret(message: "row 7"), original: original)
        #expect(error.isInternal)
        #expect(error.alertMessage != "row 7")
        #expect(error.alertMessage.contains("row 7"))
        #expect(error.original?.reason == "It failed.")
    }

    @Test("A cancelled call throws CancellationError, or an EndpointError if the service wants only those")
    func cancelled() async throws {
        let silent = ScriptedTransport([.silence], repeatsLastStep: true)
        let plain = ServiceClient(EndpointBed.Service(), transport: silent)
        let task = Task { try await EndpointBed.CheckStatus().makeRequest(to: plain) }
        try await silent.waitForSends(1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let typed = ServiceClient(Typed(), transport: silent)
        let other = Task { () async -> EndpointError? in
            do throws(EndpointError) {
                try await Wait().makeRequest(to: typed)
                return nil
            } catch {
                return error
            }
        }
        try await silent.waitForSends(2)
        other.cancel()
        let error = await other.value
        #expect(error?.code == .cancelled)
        #expect(error?.operationName == "Waiting")
    }

    @Test("If nothing is stored and nothing may be sent, the error of an endpoint says so")
    func onlyIfCached() async throws {
        let transport = ScriptedTransport([])
        let client = EndpointBed.client(EndpointBed.Service(), transport, cache: .inMemory())
        let error = await endpointError { _ = try await OfflineObject().makeRequest(to: client) }
        #expect(error?.code == .network && error?.isInternal == false && error?.status == 504)
        #expect((error?.cause as? ServiceError)?.code == .resourceUnavailable)
        #expect(transport.sent.isEmpty)
    }
}
