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

/// An API that says in each response whether it worked, and in those of failed calls why not.
private struct Flagged: WebService {
    struct BasicResponse: Decodable { let success: Bool }
    struct ErrorResponse: AnyErrorResponse {
        let message: String
        let code: Int?
    }
    struct Refused: Error {}

    static let shared = ServiceClient(Flagged(), transport: ScriptedTransport([]))
    let calls = CallList()
    var baseURL: URL { URL(filePath: "/", relativeTo: nil) }
    var apiUrl: any UrlConvertible { "api.example.com" }
    var usesSecureProtocol: Bool { true }

    func configure(_ request: inout URLRequest, for endpoint: some Endpoint) {
        request.setValue("service", forHTTPHeaderField: "X-Configured")
    }
    func validate(_ response: Response, for endpoint: some Endpoint) { calls.append("service response") }
    func validate(_ basicResponse: BasicResponse, for endpoint: some Endpoint) throws {
        calls.append("service basic")
        guard basicResponse.success else { throw Refused() }
    }
    func handle(_ error: EndpointError, response: Response, for endpoint: some Endpoint) -> ErrorHandling {
        calls.append("service handle")
        return .error(error)
    }
}

private final class CallList: Sendable {
    private let calls = Mutex<[String]>([])
    var all: [String] { calls.withLock { $0 } }
    func append(_ call: String) { calls.withLock { $0.append(call) } }
}

private struct Ping: EmptyEndpoint {
    typealias Service = Flagged
    let path = "ping"
}

private struct Put: InEndpoint {
    typealias Service = Flagged
    static let method = Method.put
    typealias Input = [String: Int]
    let path = "put"
}

private struct Get: OutEndpoint {
    typealias Service = Flagged
    struct Output: Decodable {
        let success: Bool
        let name: String
    }
    let calls: CallList
    var path: String { "get" }
    func configure(_ request: inout URLRequest) {
        let before = request.value(forHTTPHeaderField: "X-Configured") ?? ""
        request.setValue(before + ", endpoint", forHTTPHeaderField: "X-Configured")
    }
    func validate(_ response: Response) { calls.append("endpoint response") }
    func validate(_ basicResponse: Flagged.BasicResponse) { calls.append("endpoint basic") }
    func handle(_ error: EndpointError, response: Response) -> ErrorHandling {
        calls.append("endpoint handle")
        return .error(error)
    }
}

private struct Post: InOutEndpoint {
    typealias Service = Flagged
    static let method = Method.post
    typealias Input = [String: Int]
    typealias Output = String
    let path = "post"
}

@Suite("Stages of endpoints", .timeLimit(.minutes(20)))
struct EndpointStagesTests {
    private let service = Flagged()

    private func client(_ transport: ScriptedTransport, cache: HTTPCache? = nil) -> ServiceClient<Flagged> {
        EndpointBed.client(service, transport, cache: cache)
    }

    @Test(
        "A response passes status, validate of service and endpoint, the basic response and its validate, and output"
    )
    func order() async throws {
        let transport = ScriptedTransport([.respond(body: #"{"success":true,"name":"n"}"#)])
        let output = try await Get(calls: service.calls).makeRequest(to: client(transport))
        #expect(output.name == "n")
        #expect(service.calls.all == ["service response", "endpoint response", "service basic", "endpoint basic"])
        #expect(transport.sent[0].request.value(forHTTPHeaderField: "X-Configured") == "service, endpoint")
    }

    @Test("A bad status ends the stages at once; first the endpoint and then the service may handle it")
    func statusFirst() async throws {
        let transport = ScriptedTransport([.respond(500, body: #"{"success":true,"name":"n"}"#)])
        let error = await endpointError {
            _ = try await Get(calls: service.calls).makeRequest(to: client(transport))
        }
        #expect(error?.status == 500)
        #expect(service.calls.all == ["endpoint handle", "service handle"])
    }

    @Test("D-T17: a failing basic response fails calls of every kind, and is never stored", arguments: 0..<4)
    func basicResponse(_ kind: Int) async throws {
        let step = ScriptedTransport.Step.respond(
            200,
            ["Cache-Control": "max-age=60"],
            body: #"{"success":false,"name":"n"}"#
        )
        let transport = ScriptedTransport([step], repeatsLastStep: true)
        let client = client(transport, cache: .inMemory())
        for _ in 0..<2 {
            let error = await endpointError {
                switch kind {
                case 0: try await Ping().makeRequest(to: client)
                case 1: try await Put().makeRequest(to: client, with: [:])
                case 2: _ = try await Get(calls: service.calls).makeRequest(to: client)
                default: _ = try await Post().makeRequest(to: client, with: [:])
                }
            }
            #expect(error?.code == .validation)
            #expect(error?.cause is Flagged.Refused)
            #expect(error?.status == 200)
        }
        #expect(transport.sent.count == 2)
    }

    @Test("A successful basic response is stored")
    func basicResponseStored() async throws {
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=60"], body: #"{"success":true}"#)
        let transport = ScriptedTransport([step])
        let client = client(transport, cache: .inMemory())
        for _ in 0..<2 { try await Ping().makeRequest(to: client) }
        #expect(transport.sent.count == 1)
    }

    @Test("D-T18: a failed call with the service's error response has its message and keeps the original")
    func errorResponse() async throws {
        let transport = ScriptedTransport([.respond(400, body: #"{"message":"Name is taken.","code":17}"#)])
        let error = await endpointError { try await Ping().makeRequest(to: client(transport)) }
        #expect(error?.reason == "Name is taken.")
        #expect(error?.alertMessage == "Name is taken.")
        #expect(error?.errorResponse(as: Flagged.ErrorResponse.self)?.code == 17)
        #expect(error?.code == .http)
        #expect(error?.status == 400)
        let original = try #require(error?.original)
        #expect(original.reason.contains("400"))
        #expect((original.cause as? ServiceError)?.code == .unacceptableStatus)
    }

    @Test("D-T19: a failed call with other content has the error of its status")
    func otherContent() async throws {
        let transport = ScriptedTransport([.respond(400, body: "<html>")])
        let error = await endpointError { try await Ping().makeRequest(to: client(transport)) }
        #expect(error?.code == .http)
        #expect(error?.status == 400)
        #expect(error?.errorResponse == nil)
        #expect(error?.original == nil)
        #expect(error?.response?.body.bytesInMemory?.count == 6)
    }

    @Test("Content that cannot be decoded is also tried as an error response")
    func outputFailure() async throws {
        let transport = ScriptedTransport([.respond(200, body: #"{"success":true,"message":"No such thing."}"#)])
        let error = await endpointError {
            _ = try await Get(calls: service.calls).makeRequest(to: client(transport))
        }
        #expect(error?.code == .decoding)
        #expect(error?.reason == "No such thing.")
        #expect(error?.original?.code == .decoding)
        #expect(service.calls.all.last == "service handle")
    }

    @Test("A missing basic response is an error, even if no output is declared")
    func missingBasicResponse() async throws {
        let error = await endpointError { try await Ping().makeRequest(to: client(ScriptedTransport([.respond(204)]))) }
        #expect(error?.code == .missingData)
    }
}
