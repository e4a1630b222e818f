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

@Suite("Opening a stream", .timeLimit(.minutes(20)))
struct StreamOpeningTests {
    private func opened(_ request: AnyStreamRequest<StreamMessage, StreamMessage>, _ service: StreamService)
        async throws
        -> URLRequest
    {
        let transport = ScriptedStreamTransport()
        let stream = request.schedule(with: ServiceClient(service), over: transport)
        try await stream.waitUntilOpen()
        return try #require(transport.requests.first)
    }

    private func request(
        usesSecureProtocol: Bool? = nil,
        header: HttpHeader = [:],
        authorization: AuthorizationRequirement = .optional,
        subprotocols: [String] = []
    ) -> AnyStreamRequest<StreamMessage, StreamMessage> {
        AnyStreamRequest(
            usesSecureProtocol: usesSecureProtocol,
            routes: ["a b", "c"],
            query: ["b": "2", "a": "1"],
            header: header,
            subprotocols: subprotocols,
            authorizationRequirement: authorization,
            encode: { $0 },
            decode: { $0 }
        )
    }

    @Test(
        "S14: the scheme is wss, or ws if the service is not secure, and the request has the last word",
        arguments: [(true, nil, "wss"), (false, nil, "ws"), (true, false, "ws"), (false, true, "wss")]
            as [(Bool, Bool?, String)]
    )
    func scheme(service isSecure: Bool, request: Bool?, scheme: String) async throws {
        let service = StreamService(usesSecureProtocol: isSecure)
        let urlRequest = try await opened(self.request(usesSecureProtocol: request), service)
        #expect(urlRequest.url?.absoluteString == "\(scheme)://api.example.com/v1/a%20b/c?a=1&b=2")
        #expect(urlRequest.httpMethod == "GET")
    }

    /// A stream whose request is forged at its last step.
    private struct ForgingStream: StreamRequest {
        typealias Message = StreamMessage
        typealias Result = StreamMessage
        let isPort: Bool

        func prepare(_ request: URLRequest) -> URLRequest {
            var forged = request
            if isPort {
                forged.url = URL(string: "wss://api.example.com:70000/")
            } else {
                forged.setValue("x", forHTTPHeaderField: "A\r\nAuthorization: Bearer forged\r\nB")
            }
            return forged
        }

        func encode(_ message: StreamMessage) -> StreamMessage { message }
        func decode(_ message: StreamMessage) -> StreamMessage { message }
    }

    @Test("An ambiguous field or an invalid port reaches no transport")
    func refused() async throws {
        let transport = ScriptedStreamTransport()
        for isPort in [true, false] {
            let request = ForgingStream(isPort: isPort)
            let stream = request.schedule(with: ServiceClient(StreamService()), over: transport)
            let error = await #expect(throws: ServiceError.self) { try await stream.waitUntilOpen() }
            #expect(error?.code == .badRequest)
        }
        #expect(transport.requests.isEmpty)
    }

    @Test("S22: service header < asyncHeader < authorization < request header, as for requests")
    func precedence() async throws {
        let service = StreamService(
            header: ["A": "1", "B": "1", "C": "1", "authorization": "1"],
            laterHeader: ["b": "2", "c": "2"],
            credential: .bearer("token")
        )
        let fields = try await opened(request(header: ["c": "3"]), service).allHTTPHeaderFields ?? [:]
        let header = HeaderFields(fields)
        #expect(["A", "B", "C", "Authorization"].map { header[$0] } == ["1", "2", "3", "Bearer token"])
        #expect(header.count == 4)
        let own = try await opened(request(header: ["Authorization": "own"]), service)
        #expect(own.value(forHTTPHeaderField: "Authorization") == "own")
        let bare = try await opened(request(authorization: .none), service)
        #expect(bare.value(forHTTPHeaderField: "Authorization") == nil)
    }

    @Test("A stream that requires a credential fails without one before anything is opened")
    func required() async throws {
        let transport = ScriptedStreamTransport()
        let stream = request(authorization: .required).schedule(with: ServiceClient(StreamService()), over: transport)
        await #expect {
            try await stream.send(.text("x"))
        } throws: { error in
            (error as? ServiceError)?.code == .authorizationFailed
        }
        #expect(transport.requests.isEmpty)
    }

    @Test("Subprotocols are sent in their field")
    func subprotocols() async throws {
        let urlRequest = try await opened(request(subprotocols: ["chat.v2", "chat.v1"]), StreamService())
        #expect(urlRequest.value(forHTTPHeaderField: "Sec-WebSocket-Protocol") == "chat.v2, chat.v1")
    }

    @Test("`prepare` comes last and sees the scheme of the stream; the service's own transport is used")
    func prepared() async throws {
        struct Prepared: StreamRequest {
            typealias Message = String
            typealias Result = Data
            var header: HttpHeader { ["X": "1"] }
            func prepare(_ request: URLRequest) async throws -> URLRequest {
                var request = request
                request.setValue(request.url?.scheme, forHTTPHeaderField: "X")
                return request
            }
        }
        let transport = ScriptedStreamTransport()
        let stream = Prepared().schedule(with: ServiceClient(StreamService(streamTransport: transport)))
        try await stream.send("text")
        #expect(transport.connection.sent == [.text("text")])
        #expect(transport.requests.first?.value(forHTTPHeaderField: "X") == "wss")
        transport.connection.push(.text("1"))
        var iterator = stream.makeAsyncIterator()
        #expect(try await iterator.next()?.get() == Data("1".utf8))
    }
}
