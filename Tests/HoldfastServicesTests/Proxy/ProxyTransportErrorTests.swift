// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Failed exchanges of a proxy", .timeLimit(.minutes(20)))
struct ProxyTransportErrorTests {
    private func failure(_ error: any Error) async throws -> (any Error)? {
        let scripted = try ScriptedProxy([.fail(error)])
        return await #expect(throws: (any Error).self) { try await scripted.proxy.invoke(.get, path: "a") }
    }

    @Test("E-T26: a timeout is a URLError with everything known as its cause")
    func timeout() async throws {
        let scripted = try ScriptedProxy([.silence]) { $0.attemptTimeout = .seconds(3) }
        let error = await #expect(throws: URLError.self) { try await scripted.proxy.invoke(.get, path: "a") }
        #expect(error?.code == .timedOut)
        #expect(error?.serviceError?.code == .timeout)
        #expect(error?.serviceError?.attempts.count == 1)
        #expect(error?.localizedDescription == error?.serviceError?.message)
    }

    @Test("E-T26: so is the end of the proxy's time limit for a call")
    func deadline() async throws {
        let silent = try ScriptedProxy([.silence])
        var proxy = silent.proxy
        proxy.timeout = .seconds(5)
        let copy = proxy
        let error = await #expect(throws: URLError.self) { try await copy.invoke(.get, path: "a") }
        #expect(error?.code == .timedOut)
        #expect(silent.clock.now.sinceOrigin == .seconds(5))
    }

    @Test(
        "E-T26: a failure that has a URLSession code is a URLError",
        arguments: [
            (.resolve, .cannotFindHost), (.connect, .cannotConnectToHost), (.timeout, .timedOut),
            (.deadlineExceeded, .timedOut), (.tls, .secureConnectionFailed),
            (.certificate, .serverCertificateUntrusted),
            (.connectionLost, .networkConnectionLost), (.offline, .notConnectedToInternet),
            (.protocolError, .badServerResponse), (.tooManyRedirects, .httpTooManyRedirects),
            (.authenticationRequired, .userAuthenticationRequired), (.resourceUnavailable, .resourceUnavailable),
            (.bodyTooLarge, .dataLengthExceedsMaximum),
        ] as [(ServiceError.Code, URLError.Code)]
    )
    func equivalents(code: ServiceError.Code, expected: URLError.Code) async throws {
        let error = try #require(try await failure(ServiceError(code, "what to do")) as? URLError)
        #expect(error.code == expected)
        #expect(error.serviceError?.code == code)
        #expect(error.localizedDescription == "what to do")
    }

    @Test(
        "E-T26: a cause that agrees is used for the error; one that does not is not",
        arguments: [
            (.certificate, .serverCertificateHasBadDate, .serverCertificateHasBadDate),
            (.resolve, .dnsLookupFailed, .dnsLookupFailed),
            (.connectionLost, .badServerResponse, .networkConnectionLost),
            (.connectionLost, .unknown, .networkConnectionLost),
            (.other, .backgroundSessionWasDisconnected, .backgroundSessionWasDisconnected),
            (.badRequest, .unsupportedURL, .unsupportedURL),
        ] as [(ServiceError.Code, URLError.Code, URLError.Code)]
    )
    func causes(code: ServiceError.Code, cause: URLError.Code, expected: URLError.Code) async throws {
        let original = URLError(cause, userInfo: ["trace": "7"])
        let error = try #require(try await failure(ServiceError(code, "what to do", cause: original)) as? URLError)
        #expect(error.code == expected)
        #expect(error.userInfo["trace"] as? String == "7")
        #expect((error.serviceError?.cause as? URLError)?.code == cause)
    }

    @Test("E-T26: a transport's URLError passes through, and so does an error of its own")
    func passThrough() async throws {
        struct Odd: Error {}
        let error = try #require(try await failure(URLError(.cannotLoadFromNetwork)) as? URLError)
        #expect(error.code == .cannotLoadFromNetwork)
        #expect(error.serviceError == nil)
        #expect(try await failure(Odd()) is Odd)
    }

    @Test(
        "A failure without a URLSession code is a ServiceError",
        arguments: [
            .throttled, .circuitOpen, .tooManyInFlight, .authorizationFailed, .unsupported, .badRequest, .other,
        ]
            as [ServiceError.Code]
    )
    func withoutEquivalent(code: ServiceError.Code) async throws {
        #expect((try await failure(ServiceError(code, "what to do")) as? ServiceError)?.code == code)
    }

    @Test("A transport that cannot decode a content is a ServiceError, not what its client threw")
    func undecodable() async throws {
        struct Odd: Error {}
        let error = try await failure(ServiceError(.decodingFailed, "what to do", cause: Odd())) as? ServiceError
        #expect(error?.code == .decodingFailed)
        #expect(error?.cause is Odd)
    }

    @Test("Content with GET is refused before anything is sent")
    func contentWithGet() async throws {
        let scripted = try ScriptedProxy()
        let error = await #expect(throws: ServiceError.self) {
            try await scripted.proxy.invoke(.get, path: "a", body: 1)
        }
        #expect(error?.code == .badRequest)
        #expect(error?.description.hasPrefix("GET https://h/api/a: ") == true)
        #expect(scripted.transport.sent.isEmpty)
    }
}
