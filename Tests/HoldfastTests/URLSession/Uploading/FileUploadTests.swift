// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Dispatch
import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSessionTransport: request bodies in files", .timeLimit(.minutes(20)))
struct FileUploadTests {
    @Test(
        "A file is sent with its length and no other framing, whatever fields the caller sets (RFC 9112 §6.2)",
        arguments: ["PUT", "POST", "PATCH", "DELETE", "OPTIONS"]
    )
    func framing(_ method: String) async throws {
        let server = try LoopbackServer.start { LoopbackReply(bytes: $0.body) }
        defer { server.stop() }
        let file = try ScratchFile(patternedBytes(300_000))
        // The caller's own framing would be how requests are smuggled, if it were sent.
        let fields = ["Content-Length": "7", "Transfer-Encoding": "chunked", "X-Mine": "m"]
        let own = URLSessionTransport()
        let foreign = URLSessionTransport(session: URLSession(configuration: .ephemeral))
        for transport in [own, own, foreign] {
            let response = try await transport.send(server.url(), method: method, fields: fields, body: .file(file.url))
            #expect(try await response.body.collect().array == patternedBytes(300_000))
        }
        #expect(server.requests.count == 3)
        for request in server.requests {
            #expect(request.values(of: "Content-Length") == ["300000"])
            #if !canImport(Darwin)
                #expect(request.values(of: "Transfer-Encoding") == [])
                #expect(request.values(of: "Expect") == [])
            #endif
            #expect(request.values(of: "X-Mine") == ["m"])
        }
        #expect(server.connectionCount == 2, "a connection can be used again after a file was sent")
    }

    @Test(
        "Files of 0, 1 and 65,536 bytes arrive, with their length",
        arguments: [0, 1, 65_535, 65_536, 65_537, 131_072]
    )
    func edges(_ count: Int) async throws {
        let server = try LoopbackServer.start { LoopbackReply(bytes: $0.body) }
        defer { server.stop() }
        let file = try ScratchFile(patternedBytes(count))
        let response = try await URLSessionTransport().send(server.url(), method: "POST", body: .file(file.url))
        #expect(try await response.body.collect().array == patternedBytes(count))
        #expect(server.requests.map { $0.values(of: "Content-Length") } == [["\(count)"]])
    }

    #if !canImport(Darwin)
        @Test("A stream collected in a file leaves no file name behind before anything is sent")
        func nameless() async throws {
            let chunks = (0..<4).map { _ in ByteChunk(patternedBytes(1_000)) }
            let body = RequestBody.oneShot(ListSource(chunks))
            let upload = try await RequestUpload.prepare(.get(), body: body, memoryLimit: 1_500)
            let file = try #require(upload.file)
            #expect(file.count == 4_000)
            #expect(!FileManager.default.fileExists(atPath: file.url.path))
            var content = [UInt8](repeating: 0, count: 4_000)
            #expect(content.withUnsafeMutableBytes { file.read(into: $0, at: 0) } == 4_000)
            #expect(content == chunks.flatMap(\.array))
        }
    #endif

    @Test(
        "A missing file, a directory, a dangling link, a URL that is not a file: .badRequest, and nothing is sent"
    )
    func unreadable() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply() }
        defer { server.stop() }
        let file = try ScratchFile([1])
        let gone = file.url.appendingPathExtension("gone")
        let link = file.url.appendingPathExtension("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: gone)
        defer { try? FileManager.default.removeItem(at: link) }
        for url in [gone, FileManager.default.temporaryDirectory, link, server.url("/file")] {
            let error = await #expect(throws: ServiceError.self, "\(url)") {
                try await URLSessionTransport().send(server.url(), method: "PUT", body: .file(url))
            }
            #expect(error?.code == .badRequest, "\(url)")
            #expect(error?.progress == .notSent, "\(url)")
            #expect(error?.cause != nil, "\(url)")
        }
        #expect(server.connectionCount == 0)
    }

    @Test("A file that is unlinked after it was opened is sent completely")
    func unlinked() async throws {
        let file = try ScratchFile(patternedBytes(1 << 20))
        let url = file.url
        let server = try LoopbackServer.start(
            script: LoopbackScript(
                intake: { _ in
                    try? FileManager.default.removeItem(at: url)
                    return .keep
                },
                handler: { LoopbackReply(body: $0.body == patternedBytes(1 << 20) ? "whole" : "broken") }
            )
        )
        defer { server.stop() }
        let response = try await URLSessionTransport().send(server.url(), method: "PUT", body: .file(url))
        #expect(try await response.text() == "whole")
    }

    #if !canImport(Darwin)
        @Test(
            "Linux: content in a HEAD or GET is refused and nothing is sent, from a file or not",
            arguments: ["HEAD", "GET"]
        )
        func noContent(_ method: String) async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply() }
            defer { server.stop() }
            let file = try ScratchFile([1])
            for body in [RequestBody.file(file.url), .data(Data([1]))] {
                let error = await #expect(throws: ServiceError.self) {
                    try await URLSessionTransport().send(server.url(), method: method, body: body)
                }
                #expect(error?.code == .unsupported)
                #expect(error?.progress == .notSent)
            }
            #expect(server.requests.isEmpty)
        }

        @Test(
            "Linux: a file that grows or shrinks while it is sent breaks the exchange and never counts as complete",
            arguments: [-1, 1, -(32 << 20)]
        )
        func changed(by difference: Int) async throws {
            let gate = LoopbackGate()
            let server = try LoopbackServer.start(
                script: LoopbackScript(
                    intake: { $0.path == "/changed" ? .holding(at: gate) : .measure },
                    handler: { LoopbackReply(body: $0.path) }
                )
            )
            defer { server.stop() }
            // Longer than what the sockets of both sides hold.
            let length = 32 << 20
            let file = try ScratchFile(length: length)
            let transport = URLSessionTransport()
            let url = file.url
            let task = Task {
                try await transport.send(server.url("/changed"), method: "PUT", body: .file(url)).status.rawValue
            }
            _ = try await server.heads(atLeast: 1)
            try file.resize(to: length + difference)
            gate.open()
            let error = await #expect(throws: ServiceError.self) { try await task.value }
            #expect(error?.code == .badRequest)
            #expect(error?.progress == .headSent)
            #expect(error?.cause != nil)
            _ = try await server.exchangeEnds(atLeast: 1)
            let response = try await transport.send(server.url("/after"))
            #expect(try await response.text() == "/after")
            #expect(server.requests.map(\.path) == ["/after"], "no request with a part of the file arrived whole")
        }
    #endif

    @Test("A file that is not opened in time ends the attempt at its deadline")
    func slowDisk() async throws {
        let file = try ScratchFile([1])
        let clock = ManualClock()
        // All threads for files wait for a disk that does not respond.
        let gate = DispatchSemaphore(value: 0)
        for _ in 0..<4 { BlockingWork.enqueue { gate.wait() } }
        defer { for _ in 0..<4 { gate.signal() } }
        let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(1)))
        let call = Task {
            try await URLSessionTransport()
                .send(.request("PUT", "http://127.0.0.1:9/"), body: .file(file.url), context: context)
        }
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(1))
        let error = await #expect(throws: ServiceError.self) { try await call.value }
        #expect(error?.progress == .notSent)
    }
}
