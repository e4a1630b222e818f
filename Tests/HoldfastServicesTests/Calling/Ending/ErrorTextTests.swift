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

@Suite("The text of errors", .timeLimit(.minutes(20)))
struct ErrorTextTests {
    private struct Find: InOutEndpoint {
        typealias Service = EndpointBed.Service
        typealias Input = [String: String]
        typealias Output = String
        static let inputFormat = InputFormat.urlQuery
        let path = "find"
    }

    @Test("The text of a network error does not show the URL, whose query and user may be credentials")
    func refusedConnection() async throws {
        let base = "http://ann:zq1secret@127.0.0.1:\(try LoopbackServer.refusingPort())/api"
        let client = ServiceClient(EndpointBed.Service(base), transport: URLSessionTransport())
        let error = await endpointError {
            _ = try await Find().makeRequest(to: client, with: ["access_token": "zq2secret"])
        }
        #expect(error?.code == .network)
        let text = error.map { "\($0) \($0.cause.map { "\($0)" } ?? "")" } ?? ""
        #expect(text.contains("NSURLErrorDomain"))
        #expect(!text.contains("zq"))
    }

    @Test("For a Foundation error as the cause, domain, code and description are shown")
    func causes() {
        let details: [String: Any] = [
            "NSErrorFailingURLStringKey": "https://example.com/?token=zq", NSLocalizedDescriptionKey: "Words.",
        ]
        let cause = NSError(domain: "Domain", code: 7, userInfo: details)
        #expect("\(ServiceError(.connect, "It failed.", cause: cause))" == "It failed. (Domain 7: Words.)")
        let urlError = URLError(.timedOut, userInfo: details)
        #expect(
            "\(ServiceError(.timeout, "Late.", cause: urlError))" == "Late. (NSURLErrorDomain -1001: Words.)"
        )
        #expect("\(ServiceError(.other, "Odd.", cause: CancellationError()))" == "Odd. (CancellationError())")
    }
}
