// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastServices

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Services that block", .timeLimit(.minutes(20)))
struct ServiceThreadsTests {
    /// What holds calls back until it is opened.
    private final class Gate: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        let inside = CountWatch()

        func pass() {
            inside.increment()
            semaphore.wait()
            semaphore.signal()
        }

        func open() { semaphore.signal() }
    }

    private func blocking(_ gate: Gate) throws -> URLRequest {
        try Foo.request { _, response, responseReturn, _, complete in
            gate.pass()
            responseReturn(response)
            complete()
        }
    }

    @Test("Three hundred blocking calls do not hold up another call")
    func manyBlock() async throws {
        let foo = FooRouter()
        let gate = Gate()
        defer { gate.open() }
        let request = try blocking(gate)
        let calls = (0..<300).map { _ in Task { try await foo.call(request).0.status } }
        try await gate.inside.wait(for: 300)
        let quick = try Foo.request { _, response, responseReturn, _, complete in
            responseReturn(response)
            complete()
        }
        #expect(try await foo.call(quick).0.status == .ok)
        gate.open()
        for call in calls { #expect(try await call.value == .ok) }
    }

    @Test("Beyond the limit calls wait in line, and a call whose caller has left is not made")
    func limit() async throws {
        var configuration = ServiceRouter.Configuration()
        configuration.blockingCalls = 2
        let foo = FooRouter(configuration: configuration)
        let gate = Gate()
        defer { gate.open() }
        let request = try blocking(gate)
        let calls = (0..<2).map { _ in Task { try await foo.call(request).0.status } }
        try await gate.inside.wait(for: 2)
        let made = CountWatch()
        let counted = try Foo.request { _, response, responseReturn, _, complete in
            made.increment()
            responseReturn(response)
            complete()
        }
        let left = Task { try await foo.call(counted).0.status }
        let waiting = Task { try await foo.call(counted).0.status }
        left.cancel()
        await #expect(throws: CancellationError.self) { try await left.value }
        gate.open()
        #expect(try await waiting.value == .ok)
        #expect(made.count == 1)
        for call in calls { #expect(try await call.value == .ok) }
    }

    @Test("What a call held is released when it is done, and not after the calls that waited behind it")
    func released() async throws {
        final class Held: Sendable {}
        weak var held: Held?
        let threads = ServiceThreads(limit: 1)
        let gates = (Gate(), Gate())
        defer { gates.1.open() }
        do {
            let object = Held()
            held = object
            threads.run { withExtendedLifetime(object) { gates.0.pass() } }
        }
        threads.run { gates.1.pass() }
        gates.0.open()
        try await gates.1.inside.wait(for: 1)
        #expect(held == nil)
    }
}
