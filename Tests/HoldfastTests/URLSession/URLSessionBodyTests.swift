// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSessionTransport: response bodies", .timeLimit(.minutes(20)))
struct URLSessionBodyTests {
    private static let gzipped: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 87, 200, 64, 39, 1, 227, 81, 61, 141, 23, 0, 0, 0,
    ]
    private static let deflated: [UInt8] = [120, 156, 203, 72, 205, 201, 201, 87, 200, 64, 39, 1, 104, 3, 8, 177]

    @Test("The head and the first chunk arrive while the server still holds the rest")
    func streaming() async throws {
        let (beforeBody, beforeRest) = (LoopbackGate(), LoopbackGate())
        let server = try LoopbackServer.start { _ in
            LoopbackReply(
                framing: .chunked,
                steps: [.pause(beforeBody), .send("first"), .pause(beforeRest), .send("rest")]
            )
        }
        let response = try await URLSessionTransport().send(server.url())
        #expect(response.body.length == nil)
        beforeBody.open()
        var chunks = response.body.makeAsyncIterator()
        #expect(try await chunks.next()?.array == Array("first".utf8))
        beforeRest.open()
        #expect(try await chunks.next()?.array == Array("rest".utf8))
        #expect(try await chunks.next() == nil)
        #expect(try await chunks.next() == nil)
    }

    @Test("Content-Length is the body's length")
    func length() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "hello") }
        let response = try await URLSessionTransport().send(server.url())
        #expect(response.body.length == 5)
        #expect(!response.contentDecoded)
        #expect(try await response.text() == "hello")
    }

    @Test("32 MiB wait for a slow reader in the spill file, and every byte is right")
    func spill() async throws {
        let all = patternedBytes(32 << 20)
        let sent = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .length(all.count), steps: [.send(all), .pause(sent)])
        }
        var limits = URLSessionTransport.Limits()
        limits.bodyInMemory = 1 << 20
        let response = try await URLSessionTransport(limits: limits).send(server.url())
        #expect(response.body.length == all.count)
        // That the server got rid of it all, with nobody reading, shows that far more than the memory limit was taken in.
        try await sent.reached()
        sent.open()
        var position = 0
        for try await chunk in response.body {
            let isRight = chunk.withUnsafeBytes { part in
                position + part.count <= all.count && Data(all[position..<(position + part.count)]) == Data(part)
            }
            try #require(isRight, "a wrong byte in \(position)..<\(position + chunk.count)")
            position += chunk.count
        }
        #expect(position == all.count)
    }

    @Test(
        "A reader that keeps up, or falls behind sometimes, sees the bytes in order",
        arguments: [0, 1, 10_000, 8 << 20]
    )
    func pace(memory: Int) async throws {
        let all = patternedBytes(4 << 20)
        let pieces = stride(from: 0, to: all.count, by: 65_536).map {
            LoopbackReply.Step.send(Array(all[$0..<($0 + 65_536)]))
        }
        let server = try LoopbackServer.start { _ in LoopbackReply(framing: .chunked, steps: pieces) }
        var limits = URLSessionTransport.Limits()
        limits.bodyInMemory = memory
        let response = try await URLSessionTransport(limits: limits).send(server.url())
        var read: [UInt8] = []
        for try await chunk in response.body {
            #expect(!chunk.isEmpty)
            read += chunk.array
        }
        #expect(read == all)
    }

    @Test("A body beyond the limits ends the transfer with an error that names the limit")
    func tooLarge() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(bytes: patternedBytes(16 << 20)) }
        var limits = URLSessionTransport.Limits()
        limits.bodyInMemory = 64 << 10
        limits.bodyOnDisk = 256 << 10
        let response = try await URLSessionTransport(limits: limits).send(server.url())
        let ends = try await server.connectionEnds(atLeast: 1)
        #expect(ends.map(\.endedBy) == [.peer])
        let error = await #expect(throws: ServiceError.self) { try await response.body.collect() }
        #expect(error?.code == .bodyTooLarge)
        #expect(error?.progress == .bytesReceived)
        #expect(error?.message.contains("262144") == true)
        #expect(error?.message.contains("AsyncHTTPClient") == true)
    }

    @Test("A coded body is decoded once and marked, and its length is unknown", arguments: ["gzip", "deflate"])
    func decoding(_ coding: String) async throws {
        let bytes = coding == "gzip" ? URLSessionBodyTests.gzipped : URLSessionBodyTests.deflated
        let server = try LoopbackServer.start { _ in LoopbackReply(fields: [("Content-Encoding", coding)], bytes: bytes)
        }
        let response = try await URLSessionTransport().send(server.url())
        #expect(response.contentDecoded)
        #expect(response.fields["Content-Encoding"] == coding)
        #expect(response.body.length == nil)
        #expect(try await response.text() == "hello hello hello hello")
    }

    @Test("The identity coding does not count as a coding")
    func identity() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("Content-Encoding", "identity")], body: "plain")
        }
        let response = try await URLSessionTransport().send(server.url())
        #expect(!response.contentDecoded)
        #expect(response.body.length == 5)
        #expect(try await response.text() == "plain")
    }

    @Test("What came before the connection broke can be read, and then comes the error", arguments: [true, false])
    func brokenBody(reset: Bool) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .length(100), steps: [.send("some"), .pause(gate), reset ? .reset : .close])
        }
        let response = try await URLSessionTransport().send(server.url())
        var chunks = response.body.makeAsyncIterator()
        #expect(try await chunks.next()?.array == Array("some".utf8))
        gate.open()
        let error = await #expect(throws: ServiceError.self) { try await chunks.next() }
        #expect(error?.code == .connectionLost)
        #expect(error?.progress == .bytesReceived)
        #expect(error?.cause is URLError)
    }

    @Test("A body framed by the close is read to its end")
    func untilClose() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(framing: .untilClose, steps: [.send("all of it")]) }
        let response = try await URLSessionTransport().send(server.url())
        #expect(response.body.length == nil)
        #expect(try await response.text() == "all of it")
    }
}
