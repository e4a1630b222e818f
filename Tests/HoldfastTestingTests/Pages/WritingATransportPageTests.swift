// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

final class ReplayingTransport: Transport {
    private let answers: Mutex<[String: (head: ResponseHead, body: ByteChunk)]>

    init(_ recording: [String: (head: ResponseHead, body: ByteChunk)]) {
        answers = Mutex(recording)
    }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        try Task.checkCancellation()
        guard let url = request.url else {
            throw ServiceError(.badRequest, "The request has no URL. Set one.", progress: .notSent)
        }
        guard let answer = answers.withLock({ $0[url.absoluteString] }) else {
            throw ServiceError(.connect, "Nothing was recorded for \(url.path); record it first.", progress: .notSent)
        }
        let fields = answer.head.fields
        return Response(status: answer.head.status, fields: fields, body: ResponseBody(answer.body), url: url)
    }
}

final class RecordingTransport: Transport {
    private let upstream: any Transport
    private let limit: Int
    private let answers = Mutex<[String: (head: ResponseHead, body: ByteChunk)]>([:])

    init(_ upstream: any Transport, limit: Int = 1 << 20) {
        self.upstream = upstream
        self.limit = limit
    }

    var recording: [String: (head: ResponseHead, body: ByteChunk)] { answers.withLock { $0 } }

    // What is below adds the fields and keeps the deadline, so it is asked.
    func implicitFields(for request: URLRequest) -> HeaderFields { upstream.implicitFields(for: request) }
    func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        upstream.implicitFields(for: request, context: context)
    }
    var enforcesDeadline: Bool { upstream.enforcesDeadline }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        var response = try await upstream.send(request, body: body, context: context)
        var head = response.head
        // What is kept is the decoded content.
        if response.contentDecoded {
            head.fields.removeAll("Content-Encoding")
            head.fields.removeAll("Content-Length")
        }
        let name = request.url?.absoluteString ?? ""
        let keep: @Sendable (ByteChunk) -> Void = { [head] bytes in
            self.answers.withLock { $0[name] = (head, bytes) }
        }
        if let source = response.body.source {
            let copy = CopyingSource(source, limit: limit, onEnd: keep)
            response.body = ResponseBody(copy, length: response.body.length)
        } else if let bytes = response.body.bytesInMemory {
            keep(bytes)
        }
        return response
    }
}

final class CopyingSource: ByteSource {
    private let upstream: any ByteSource
    private let limit: Int
    private let onEnd: @Sendable (ByteChunk) -> Void
    private let copy = Mutex<[UInt8]?>([])

    init(_ upstream: any ByteSource, limit: Int, onEnd: @escaping @Sendable (ByteChunk) -> Void) {
        self.upstream = upstream
        self.limit = limit
        self.onEnd = onEnd
    }

    func next() async throws -> ByteChunk? {
        let chunk = try await upstream.next()
        let whole: [UInt8]? = copy.withLock { copy in
            guard let bytes = copy else { return nil }
            guard let chunk else {
                copy = nil
                return bytes
            }
            copy = chunk.count <= limit - bytes.count ? bytes + chunk.array : nil
            return nil
        }
        if let whole { onEnd(ByteChunk(whole)) }
        return chunk
    }

    func cancel() { upstream.cancel() }
}

@Suite("RecordingTransport passes the transport conformance suite", .timeLimit(.minutes(20)))
struct RecordingTransportTests {
    static let recording = TransportSubject("recording", capabilities: .urlSession) {
        RecordingTransport(URLSessionTransport())
    }

    @Test(arguments: TransportConformance.checks)
    func check(_ check: TransportConformance.Check) async {
        let findings = await check.findings(of: Self.recording, at: .http1, longBody: 64 << 20)
        #expect(findings.isEmpty, "\(findings)")
    }
}

@Suite("docs/extending/writing-a-transport.md", .timeLimit(.minutes(20)))
struct WritingATransportPageTests {
    @Test("Recorded exchanges are replayed, and nothing else")
    func replaying() async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(fields: [("ETag", "\"a\"")], body: "hello from \(request.path)")
        }
        let recorder = RecordingTransport(URLSessionTransport())
        let first = try await Pipeline(transport: recorder).data(for: URLRequest(url: server.url("/a")))
        server.stop()

        let replaying = Pipeline(transport: ReplayingTransport(recorder.recording))
        let second = try await replaying.data(for: URLRequest(url: server.url("/a")))
        #expect(first.0 == second.0)
        let error = await #expect(throws: (any Error).self) {
            try await replaying.data(for: URLRequest(url: server.url("/b")))
        }
        #expect("\(String(describing: error))".contains("record it first"))
    }

    @Test("What was decoded on its way is replayed as decoded")
    func decoded() async throws {
        let gzipped: [UInt8] = [
            31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0,
        ]
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("Content-Encoding", "gzip")], steps: [.send(gzipped)])
        }
        let recorder = RecordingTransport(URLSessionTransport())
        let request = URLRequest(url: server.url())
        #expect(try await Pipeline(transport: recorder).data(for: request).0 == Data("hello".utf8))
        let replayed = try await ReplayingTransport(recorder.recording)
            .send(request, body: .none, context: CallContext())
        #expect(replayed.fields["Content-Encoding"] == nil)
        #expect(try await replayed.body.collect() == ByteChunk(copying: "hello".utf8))
    }

    @Test("A body beyond the limit, or one that is not read to its end, is not recorded")
    func bounds() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(steps: [.pattern(1_000)]) }
        let recorder = RecordingTransport(URLSessionTransport(), limit: 999)
        let request = URLRequest(url: server.url())
        #expect(try await recorder.send(request, body: .none, context: CallContext()).body.collect().count == 1_000)
        #expect(recorder.recording.isEmpty)
        let patient = RecordingTransport(URLSessionTransport(), limit: 1_000)
        _ = try await patient.send(request, body: .none, context: CallContext())
        #expect(patient.recording.isEmpty)
    }

    @Test("A server plays what it is told")
    func server() async throws {
        let transport = URLSessionTransport()
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { request in
            switch request.path {
            case "/slow": LoopbackReply(framing: .chunked, steps: [.send("first"), .pause(gate), .send("second")])
            case "/short": LoopbackReply(framing: .length(100), steps: [.send("some"), .close])
            case "/long": LoopbackReply(steps: [.pattern(200_000_000)])
            default: LoopbackReply(404, body: "not here")
            }
        }
        let response = try await transport.send(
            URLRequest(url: server.url("/slow")),
            body: .none,
            context: CallContext()
        )
        gate.open()
        #expect(try await response.body.collect().array == Array("firstsecond".utf8))
        #expect(server.requests.map(\.target) == ["/slow"])
    }
}
