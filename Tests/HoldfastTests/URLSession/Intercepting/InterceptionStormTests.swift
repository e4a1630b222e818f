// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Many tasks of intercepted sessions at once", .timeLimit(.minutes(20)))
struct InterceptionStormTests {
    private enum Treatment: CaseIterable {
        case leave, cancelBefore, cancelAtOnce, cancelLater, suspend, resumeTwice
    }

    private static func echoing() -> Pipeline {
        Pipeline(
            transport: ScriptedTransport(answering: { request in
                if request.url?.path == "/slow" { for _ in 0..<20 { await Task.yield() } }
                return .respond(body: request.url?.query ?? "")
            })
        )
    }

    @Test(
        "Started, suspended and cancelled in random order, every task ends exactly once",
        arguments: [11, 12] as [UInt64]
    )
    func storm(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let pipeline = Self.echoing()
        defer { pipeline.stopIntercepting() }
        let sessions = (0..<4).map { _ in InterceptedClient(pipeline).session }
        let count = 1000
        let ends = Mutex([Int](repeating: 0, count: count))
        let ended = CountWatch()
        var later: [URLSessionTask] = []
        for index in 0..<count {
            let path = Bool.random(using: &generator) ? "slow" : "quick"
            let url = try #require(URL(string: "http://origin.example/\(path)?\(index)"))
            let session = try #require(sessions.randomElement(using: &generator))
            let task = session.dataTask(with: url) { data, _, error in
                if error == nil {
                    #expect(data.map { String(decoding: $0, as: UTF8.self) } == "\(index)")
                } else {
                    #expect((error as? URLError)?.code == .cancelled)
                }
                ends.withLock { $0[index] += 1 }
                ended.increment()
            }
            switch Treatment.allCases.randomElement(using: &generator) ?? .leave {
            case .leave: task.resume()
            case .cancelBefore:
                task.cancel()
                task.resume()
            case .cancelAtOnce:
                task.resume()
                task.cancel()
            case .cancelLater:
                task.resume()
                later.append(task)
            case .suspend:
                task.resume()
                task.suspend()
                task.resume()
            case .resumeTwice:
                task.resume()
                task.resume()
            }
            if Int.random(in: 0..<8, using: &generator) == 0, let task = later.popLast() { task.cancel() }
        }
        for task in later.shuffled(using: &generator) { task.cancel() }
        try await ended.wait(for: count)
        for session in sessions { session.finishTasksAndInvalidate() }
        #expect(ends.withLock { $0 } == [Int](repeating: 1, count: count), "seed \(seed)")
    }

    @Test(
        "Forty calls waiting at the server are cancelled, and their session is not called on another one's queue"
    )
    func cancelledAtServer() async throws {
        let server = try LoopbackServer.start { _ in .never }
        var patience = PipelineConfiguration()
        patience.attemptTimeout = nil
        let pipeline = Pipeline(transport: URLSessionTransport(), configuration: patience)
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline, configure: { $0.timeoutIntervalForRequest = 1200 })
        var request = URLRequest(url: server.url())
        request.timeoutInterval = 1200
        let waiting = request
        let calls = (0..<40).map { _ in Task { try await client.send(waiting) } }
        try await server.requests(atLeast: 1)
        for call in calls {
            call.cancel()
            let error = await #expect(throws: URLError.self) { try await call.value }
            #expect(error?.code == .cancelled)
        }
    }

    @Test("Three hundred calls at once over real sockets, some cancelled")
    func calls() async throws {
        let server = try LoopbackServer.start { LoopbackReply(body: $0.target) }
        let pipeline = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(.atOnce))
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        let texts = await withTaskGroup(of: String?.self) { group in
            for index in 0..<300 {
                let url = server.url("/\(index)")
                group.addTask {
                    let call = Task { try await client.get(url).text }
                    if index % 5 == 0 { call.cancel() }
                    return try? await call.value
                }
            }
            var texts: Set<String> = []
            for await text in group { if let text { texts.insert(text) } }
            return texts
        }
        #expect(texts.isSuperset(of: (0..<300).filter { $0 % 5 != 0 }.map { "/\($0)" }))
    }
}
