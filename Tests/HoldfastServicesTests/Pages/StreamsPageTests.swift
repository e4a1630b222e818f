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

/// The code of docs/services/streams.md, so that what stands there compiles and does what it says.
@Suite("The page on streams", .timeLimit(.minutes(20)))
struct StreamsPageTests {
    struct PriceStream: JsonStreamRequest {
        struct Subscription: Codable, Sendable {
            let symbolName: String
        }
        struct Price: Codable, Sendable {
            let symbolName: String
            let lastPrice: Double
        }

        typealias Message = Subscription
        typealias Result = Price

        var routes: HttpRoute { ["prices"] }
    }

    /// Plays the library of the page: answers each message with a price, a word that is no price, and another price.
    final class LibrarySocket: Sendable {
        let url: URL?
        private let connection = ScriptedStreamConnection()

        private init(_ request: URLRequest) { url = request.url }

        static func open(_ request: URLRequest, maximumMessageSize: Int) async throws -> LibrarySocket {
            LibrarySocket(request)
        }

        func write(_ message: StreamMessage) async throws {
            try await connection.send(message)
            connection.push(
                .text(#"{"symbol_name":"abc","last_price":1.5}"#),
                .text(try message.string()),
                .text(#"{"symbol_name":"abc","last_price":2.5}"#)
            )
        }
        func read() async throws -> StreamMessage? { try await connection.receive() }
        func ping() async throws { try await connection.ping() }
        func close(_ code: UInt16, _ reason: String?) {
            connection.close(code: StreamCloseCode(rawValue: code), reason: reason)
        }
    }

    struct LibraryTransport: StreamTransport {
        func open(_ request: URLRequest, limits: StreamLimits) async throws -> any StreamConnection {
            LibraryConnection(try await LibrarySocket.open(request, maximumMessageSize: limits.messageSize))
        }
    }

    struct LibraryConnection: StreamConnection {
        let socket: LibrarySocket

        init(_ socket: LibrarySocket) { self.socket = socket }

        func send(_ message: StreamMessage) async throws { try await socket.write(message) }
        func receive() async throws -> StreamMessage {
            guard let message = try await socket.read() else { throw StreamClosedError(.noStatusReceived) }
            return message
        }
        func ping() async throws { try await socket.ping() }
        func close(code: StreamCloseCode, reason: String?) { socket.close(code.rawValue, reason) }
    }

    struct PriceService: HttpService {
        var apiUrl: any UrlConvertible { "prices.example.com" }
        var streamTransport: any StreamTransport { LibraryTransport() }
    }

    @Test("A stream of JSON over a library's sockets: send, read, an unreadable message, close")
    func prices() async throws {
        let client = ServiceClient(PriceService())
        var prices: [Double] = []
        var unreadable: [any Error] = []
        let stream = PriceStream().schedule(with: client)
        try await stream.send(PriceStream.Subscription(symbolName: "abc"))
        for try await result in stream {
            switch result {
            case .success(let price): prices.append(price.lastPrice)
            case .failure(let error): unreadable.append(error)
            }
            if prices.count == 2 { stream.close() }
        }
        #expect(prices == [1.5, 2.5])
        #expect(unreadable.count == 1)
    }

    @Test("A stream request made from values")
    func rooms() async throws {
        let client = ServiceClient(PriceService())
        let echo = AnyStreamRequest<String, String>(
            routes: ["rooms", "7"],
            encode: { .text($0) },
            decode: { try $0.string() }
        )
        let room = echo.schedule(with: client)
        try await room.send("good morning")
        try await room.ping()
        var iterator = room.makeAsyncIterator()
        #expect(try await iterator.next()?.get() == #"{"symbol_name":"abc","last_price":1.5}"#)
        #expect(try await iterator.next()?.get() == "good morning")
    }
}
