// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("ServiceError as a URLError")
struct ServiceErrorURLErrorTests {
    @Test(
        "Each code has an equivalent",
        arguments: [
            (.badRequest, .badURL), (.resolve, .cannotFindHost), (.connect, .cannotConnectToHost),
            (.timeout, .timedOut), (.deadlineExceeded, .timedOut), (.tls, .secureConnectionFailed),
            (.certificate, .serverCertificateUntrusted), (.connectionLost, .networkConnectionLost),
            (.protocolError, .badServerResponse), (.offline, .notConnectedToInternet),
            (.throttled, .resourceUnavailable), (.circuitOpen, .resourceUnavailable),
            (.tooManyInFlight, .resourceUnavailable), (.bodyTooLarge, .dataLengthExceedsMaximum),
            (.tooManyRedirects, .httpTooManyRedirects), (.unacceptableStatus, .badServerResponse),
            (.encodingFailed, .unknown), (.decodingFailed, .cannotDecodeContentData),
            (.authenticationRequired, .userAuthenticationRequired),
            (.authorizationFailed, .userAuthenticationRequired), (.unsupported, .unsupportedURL),
            (.resourceUnavailable, .resourceUnavailable), (.other, .unknown),
        ] as [(ServiceError.Code, URLError.Code)]
    )
    func codes(_ code: ServiceError.Code, _ expected: URLError.Code) {
        let error = URLError(ServiceError(code, "What to do."))
        #expect(error.code == expected)
        #expect(error.localizedDescription == "What to do.")
        #expect(error.serviceError?.code == code)
    }

    @Test(
        "A cause that agrees is used; one that does not is not",
        arguments: [
            (.certificate, .serverCertificateHasBadDate, .serverCertificateHasBadDate),
            (.offline, .dataNotAllowed, .dataNotAllowed), (.resolve, .dnsLookupFailed, .dnsLookupFailed),
            (.badRequest, .fileDoesNotExist, .fileDoesNotExist), (.badRequest, .unsupportedURL, .unsupportedURL),
            (.connectionLost, .badServerResponse, .networkConnectionLost),
            (.connectionLost, .unknown, .networkConnectionLost), (.tls, .unknown, .secureConnectionFailed),
            (.unsupported, .unknown, .unknown), (.other, .cancelled, .cancelled),
        ] as [(ServiceError.Code, URLError.Code, URLError.Code)]
    )
    func causes(_ code: ServiceError.Code, _ cause: URLError.Code, _ expected: URLError.Code) {
        let error = ServiceError(code, "", cause: URLError(cause, userInfo: ["trace": "7"])).urlError
        #expect(error.code == expected)
        #expect(error.userInfo["trace"] as? String == "7")
        #expect((error.serviceError?.cause as? URLError)?.code == cause)
    }

    @Test("The failing URL has no credentials, and neither has what is printed")
    func failingURL() throws {
        let url = try #require(URL(string: "https://user:pass@h.example:8443/a/b?token=secret#part"))
        let bare = URL(string: "https://h.example:8443/a/b")
        let details: [String: Any] = [
            NSURLErrorFailingURLErrorKey: url, "NSErrorFailingURLStringKey": url.absoluteString,
        ]
        let error = ServiceError(.timeout, "Late.", cause: URLError(.timedOut, userInfo: details)).urlError
        #expect(error.userInfo[NSURLErrorFailingURLErrorKey] as? URL == bare)
        #expect(error.failingURL == bare)
        for word in ["pass", "secret"] {
            #expect(!"\(error)".contains(word))
            #expect(!"\(error as NSError)".contains(word))
            #expect(!error.localizedDescription.contains(word))
        }
        let answered = ServiceError(.unacceptableStatus, "No.", response: Response(status: 500, url: url)).urlError
        #expect(answered.failingURL == bare)
        #expect(ServiceError(.timeout, "Late.").urlError.failingURL == nil)
    }

    @Test("An error that was not a ServiceError has none")
    func none() {
        #expect(URLError(.timedOut).serviceError == nil)
    }
}
