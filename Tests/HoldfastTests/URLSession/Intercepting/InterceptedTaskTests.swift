// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Tasks of an intercepted session", .timeLimit(.minutes(20)))
struct InterceptedTaskTests {
    private let pipeline = Pipeline(transport: URLSessionTransport(), cache: .inMemory())

    private static func echo() throws -> LoopbackServer {
        try LoopbackServer.start { request in
            let fields = [("X-Method", request.method), ("X-Extra", request.values(of: "X-Extra").joined())]
            return LoopbackReply(fields: fields, bytes: request.body.isEmpty ? Array("hello".utf8) : request.body)
        }
    }

    @Test("A delegate gets the response, the data and the end, in this order")
    func delegate() async throws {
        let server = try Self.echo()
        defer { pipeline.stopIntercepting() }
        let delegate = NotingDelegate()
        let client = InterceptedClient(pipeline, delegate: delegate)
        client.session.dataTask(with: server.url()).resume()
        try await delegate.ended.wait(for: 1)
        #expect(delegate.notes == ["response 200 of 5", "data hello", "end"])
    }

    @Test("A completion handler is called once")
    func completionHandler() async throws {
        let server = try Self.echo()
        defer { pipeline.stopIntercepting() }
        let calls = CountWatch()
        let client = InterceptedClient(pipeline)
        client.session.dataTask(with: server.url()) { data, response, error in
            #expect(data == Data("hello".utf8))
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            #expect(error == nil)
            calls.increment()
        }.resume()
        try await calls.wait(for: 1)
        client.session.finishTasksAndInvalidate()
        #expect(calls.count == 1)
    }

    @Test("Uploads send their content; on Linux as without a pipeline, with the session's own fields")
    func uploads() async throws {
        let server = try Self.echo()
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline, configure: { $0.httpAdditionalHeaders = ["X-Extra": "extra"] })
        for method in ["POST", "PUT"] {
            var request = URLRequest(url: server.url())
            request.httpMethod = method
            let (data, response) = try await client.session.upload(for: request, from: Data("content".utf8))
            #expect(data == Data("content".utf8))
            #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Method") == method)
            #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Extra") == "extra")
        }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try Data("from a file".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        var request = URLRequest(url: server.url())
        request.httpMethod = "POST"
        #expect(try await client.session.upload(for: request, fromFile: file).0 == Data("from a file".utf8))
        #expect(server.requests.count == 3)
    }

    @Test("Downloads give a file; on Linux as without a pipeline")
    func downloads() async throws {
        let server = try Self.echo()
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        let (file, response) = try await client.session.download(for: URLRequest(url: server.url()))
        #expect(try Data(contentsOf: file) == Data("hello".utf8))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        try FileManager.default.removeItem(at: file)
        let delegate = NotingDelegate()
        let delegated = InterceptedClient(pipeline, delegate: delegate)
        delegated.session.downloadTask(with: server.url()).resume()
        try await delegate.ended.wait(for: 1)
        #expect(delegate.notes == ["file hello", "end"])
        let refused = try LoopbackServer.refusingPort()
        let nowhere = try #require(URL(string: "http://127.0.0.1:\(refused)/"))
        await #expect(throws: URLError.self) { try await client.session.download(from: nowhere) }
    }

    @Test("Downloads and uploads can be cancelled")
    func cancelledStandIn() async throws {
        let server = try LoopbackServer.start { _ in .never }
        defer { pipeline.stopIntercepting() }
        let session = InterceptedClient(pipeline).session
        let url = server.url()
        let download = Task { try await session.download(from: url) }
        try await server.requests(atLeast: 1)
        download.cancel()
        let error = await #expect(throws: URLError.self) { try await download.value }
        #expect(error?.code == .cancelled)
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        let upload = Task { [request] in try await session.upload(for: request, from: Data("x".utf8)) }
        try await server.requests(atLeast: 2)
        upload.cancel()
        await #expect(throws: URLError.self) { try await upload.value }
    }

    @Test(
        "A cancelled task ends with URLError.cancelled, and its exchange ends at the origin",
        arguments: [true, false]
    )
    func cancelled(byTask: Bool) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            byTask ? .never : LoopbackReply(framing: .chunked, steps: [.send("begun"), .pause(gate)])
        }
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        let url = server.url()
        let call = Task { try await client.get(url) }
        try await server.requests(atLeast: 1)
        if !byTask { try await gate.reached() }
        call.cancel()
        let error = await #expect(throws: URLError.self) { try await call.value }
        #expect(error?.code == .cancelled)
        try await server.connectionEnds(atLeast: 1)
    }

    @Test("Invalidating and cancelling a session ends its loads, finishing lets them end")
    func invalidated() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { request in
            request.path == "/never" ? .never : LoopbackReply(before: [.pause(gate)], steps: [.send("done")])
        }
        defer { pipeline.stopIntercepting() }
        let url = server.url()
        let cancelling = InterceptedClient(pipeline)
        let cancelled = Task { try await cancelling.get(url.appendingPathComponent("never")) }
        try await server.requests(atLeast: 1)
        cancelling.session.invalidateAndCancel()
        await #expect(throws: URLError.self) { try await cancelled.value }
        try await server.connectionEnds(atLeast: 1)
        let finishing = InterceptedClient(pipeline)
        let finished = Task { try await finishing.get(url) }
        try await gate.reached()
        finishing.session.finishTasksAndInvalidate()
        gate.open()
        #expect(try await finished.value.text == "done")
    }

    @Test("A suspended task holds its result back, and its request is sent once")
    func suspended() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in LoopbackReply(before: [.pause(gate)], steps: [.send("once")]) }
        defer { pipeline.stopIntercepting() }
        let delegate = NotingDelegate()
        let client = InterceptedClient(pipeline, delegate: delegate)
        let task = client.session.dataTask(with: server.url())
        task.resume()
        try await gate.reached()
        task.suspend()
        gate.open()
        await pipeline.drain()
        task.resume()
        try await delegate.ended.wait(for: 1)
        #expect(delegate.notes == ["response 200 of 4", "data once", "end"])
        #expect(server.requests.count == 1)
    }

    #if !canImport(Darwin)
        @Test("On Linux a task that a pipeline loads reports no progress")
        func progress() async throws {
            let server = try Self.echo()
            defer { pipeline.stopIntercepting() }
            let delegate = NotingDelegate()
            let task = InterceptedClient(pipeline, delegate: delegate).session.dataTask(with: server.url())
            task.resume()
            try await delegate.ended.wait(for: 1)
            #expect(task.countOfBytesReceived == 0)
        }
    #endif
}
