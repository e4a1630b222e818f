// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Between a service and its caller", .timeLimit(.minutes(20)))
struct ServiceExchangeTests {
    @Test(
        "A broken contract is reported to the observers of the pipeline above, with the rule in words",
        arguments: [1, 2]
    )
    func events(times: Int) async throws {
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        configuration.attemptTimeout = nil
        let pipeline = Pipeline(transport: ServiceRouter(types: [Foo.self]), configuration: configuration)
        let request = try Foo.request { _, response, responseReturn, _, complete in
            responseReturn(response)
            for _ in 0..<times { responseReturn(response) }
            complete()
        }
        _ = try await pipeline.send(request).body.collect()
        let events = recorder.events(.serviceContractViolated)
        #expect(events.count == times)
        #expect(events.allSatisfy { $0.detail?.contains("responseReturn must be called once") == true })
        #expect(events.allSatisfy { $0.attempt == 1 })
    }

    @Test("Cancelling the caller ends the call at once, and what the service does later is ignored")
    func cancellation() async throws {
        let foo = FooRouter()
        let entered = CountWatch()
        let gate = CountWatch()
        let left = CountWatch()
        let request = try Foo.request { _, response, responseReturn, dataReturn, complete in
            entered.increment()
            Task {
                try await gate.wait(for: 1)
                responseReturn(response)
                dataReturn(Data("late"))
                complete()
                left.increment()
            }
        }
        let call = Task { try await foo.call(request) }
        try await entered.wait(for: 1)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        gate.increment()
        try await left.wait(for: 1)
        #expect(foo.brokenRules.isEmpty)
    }

    @Test("Cancelling the reader of a body ends the call at once")
    func cancelledReader() async throws {
        let foo = FooRouter()
        let kept = Mutex<[requestCompleteBlock]>([])
        let request = try Foo.request { _, response, responseReturn, _, complete in
            kept.withLock { $0.append(complete) }
            responseReturn(response)
        }
        let response = try await foo.router.processRequest(request)
        let reading = Task { try await response.body.collect() }
        reading.cancel()
        await #expect(throws: CancellationError.self) { try await reading.value }
        for complete in kept.withLock({ $0 }) { complete() }
        #expect(foo.brokenRules.isEmpty)
    }

    @Test("A body that is dropped ends the call; what the service does later is ignored")
    func droppedBody() async throws {
        let foo = FooRouter()
        let gate = CountWatch()
        let left = CountWatch()
        let request = try Foo.request { _, response, responseReturn, dataReturn, complete in
            responseReturn(response)
            Task {
                try await gate.wait(for: 1)
                dataReturn(Data("late"))
                left.increment()
            }
        }
        do {
            let response = try await foo.router.processRequest(request)
            #expect(response.body.source != nil)
            response.body.discard()
        }
        gate.increment()
        try await left.wait(for: 1)
        #expect(foo.brokenRules.isEmpty)
    }

    @Test("A service that blocks its thread does not keep a cancelled caller waiting")
    func blocking() async throws {
        let foo = FooRouter()
        let entered = CountWatch()
        let lock = DispatchSemaphore(value: 0)
        let request = try Foo.request { _, response, responseReturn, _, complete in
            entered.increment()
            lock.wait()
            responseReturn(response)
            complete()
        }
        let call = Task { try await foo.call(request) }
        try await entered.wait(for: 1)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        lock.signal()
    }

    @Test(
        "Bytes ahead of their reader are bounded, and beyond that the body fails",
        arguments: [(8, true), (9, false)]
    )
    func bound(count: Int, fits: Bool) async throws {
        var configuration = ServiceRouter.Configuration()
        configuration.unreadLimit = 8
        let foo = FooRouter(configuration: configuration)
        let returned = CountWatch()
        let request = try Foo.request { _, response, responseReturn, dataReturn, complete in
            responseReturn(response)
            for _ in 0..<count { dataReturn(Data("x")) }
            returned.increment()
            complete()
        }
        let response = try await foo.router.processRequest(request)
        try await returned.wait(for: 1)
        if fits {
            #expect(try await response.body.collect().count == count)
        } else {
            let error = await #expect(throws: ServiceError.self) { try await response.body.collect() }
            #expect(error?.code == .bodyTooLarge)
            #expect(error?.message.contains("unreadLimit") == true)
        }
        #expect(foo.brokenRules.isEmpty)
    }

    @Test("Bytes that wait for their reader stay in order and make room when they are read")
    func boundIsFreed() async throws {
        var configuration = ServiceRouter.Configuration()
        configuration.unreadLimit = 4
        let foo = FooRouter(configuration: configuration)
        let rounds = CountWatch()
        let returned = CountWatch()
        let request = try Foo.request { _, response, responseReturn, dataReturn, complete in
            responseReturn(response)
            Task {
                for round in 1...3 {
                    try await rounds.wait(for: round)
                    for digit in 1...4 { dataReturn(Data("\(digit)")) }
                    returned.increment()
                }
                complete()
            }
        }
        var body = try await foo.router.processRequest(request).body.makeAsyncIterator()
        for round in 1...3 {
            rounds.increment()
            try await returned.wait(for: round)
            for digit in 1...4 { #expect(try await body.next() == ByteChunk(copying: "\(digit)".utf8)) }
        }
        #expect(try await body.next() == nil)
    }

    @Test(
        "The content is passed in httpBody whatever its form, up to a limit",
        arguments: ["bytes", "file", "factory", "oneShot"]
    )
    func content(form: String) async throws {
        let text = "the content"
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try Data(text).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        func body() -> RequestBody {
            switch form {
            case "bytes": .data(Data(text))
            case "file": .file(file)
            case "factory": .factory { ScriptedSource(text) }
            default: .oneShot(ScriptedSource(text))
            }
        }
        let request = try Foo.request { request, response, responseReturn, dataReturn, complete in
            responseReturn(response)
            dataReturn(request.httpBody)
            complete()
        }
        let router = ServiceRouter(types: [Foo.self])
        let response = try await router.send(request, body: body(), context: CallContext())
        #expect(try await response.body.collect() == ByteChunk(copying: text.utf8))
        var configuration = ServiceRouter.Configuration()
        configuration.requestContentLimit = text.utf8.count - 1
        let narrow = ServiceRouter(types: [Foo.self], configuration: configuration)
        let error = await #expect(throws: ServiceError.self) {
            try await narrow.send(request, body: body(), context: CallContext())
        }
        #expect(error?.code == .bodyTooLarge)
        #expect(error?.progress == .notSent)
    }
}

/// Text as a stream of one chunk.
private final class ScriptedSource: ByteSource {
    private let rest: Mutex<ByteChunk?>

    init(_ text: String) { rest = Mutex(ByteChunk(copying: text.utf8)) }

    func next() async throws -> ByteChunk? {
        rest.withLock { rest in
            defer { rest = nil }
            return rest
        }
    }

    func cancel() { rest.withLock { $0 = nil } }
}
