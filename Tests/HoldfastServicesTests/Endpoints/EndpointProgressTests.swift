// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

private struct Text: OutEndpoint {
    typealias Service = EndpointBed.Service
    typealias Output = String
    let path = "text"
}

private final class Fractions: Sendable {
    private let list = Mutex<[Double]>([])
    var all: [Double] { list.withLock { $0 } }
    var report: EndpointProgress { { fraction in self.list.withLock { $0.append(fraction) } } }
}

@Suite("Progress of endpoints", .timeLimit(.minutes(20)))
struct EndpointProgressTests {
    private let fractions = Fractions()

    private func client(_ steps: [ScriptedTransport.Step], cache: HTTPCache? = nil) -> ServiceClient<
        EndpointBed.Service
    > {
        EndpointBed.client(EndpointBed.Service(), ScriptedTransport(steps), cache: cache)
    }

    @Test("0 comes first, then fractions of a known length, and 1 comes last, once")
    func known() async throws {
        let client = client([.stream(chunks: ["ab", "c", "d"], length: 4)])
        _ = try await Text().makeRequest(to: client, onProgress: fractions.report)
        #expect(fractions.all == [0, 0.5, 0.75, 1])
    }

    @Test("Without a known length there are only 0 and 1")
    func unknown() async throws {
        let client = client([.stream(chunks: ["ab", "c", "d"])])
        _ = try await Text().makeRequest(to: client, onProgress: fractions.report)
        #expect(fractions.all == [0, 1])
    }

    @Test("A length that is too small never makes progress exceed what is to come")
    func wrongLength() async throws {
        let client = client([.stream(chunks: ["ab", "cd", "ef"], length: 3)])
        _ = try? await Text().makeRequest(to: client, onProgress: fractions.report)
        #expect(fractions.all.allSatisfy { (0...1).contains($0) })
        #expect(fractions.all == fractions.all.sorted())
        #expect(fractions.all.filter { $0 == 1 }.count == 1)
    }

    @Test("A call that fails never reports 1")
    func failed() async throws {
        let failure = ServiceError(.connectionLost, "scripted", progress: .headReceived)
        let client = client([.stream(chunks: ["ab"], length: 4, failure: failure)])
        _ = await endpointError { _ = try await Text().makeRequest(to: client, onProgress: fractions.report) }
        #expect(fractions.all == [0, 0.5])
    }

    @Test("A download reports too, and so does an endpoint without output")
    func others() async throws {
        let client = client([.stream(chunks: ["ab", "cd"], length: 4), .respond(204)])
        let url = try await Text().makeDownloadRequest(to: client, onProgress: fractions.report)
        try FileManager.default.removeItem(at: url)
        try await EndpointBed.CheckStatus().makeRequest(to: client, onProgress: fractions.report)
        #expect(fractions.all == [0, 0.5, 1, 0, 1])
    }

    @Test("An exchange that goes on after a stale response reports no progress, although attempts are checked")
    func afterPatience() async throws {
        var options = CacheOptions()
        options.serveStaleAfter = .seconds(3)
        var configuration = PipelineConfiguration()
        let clock = ManualClock()
        configuration.clock = clock
        let transport = ScriptedTransport([
            .respond(200, ["Cache-Control": "max-age=10"], body: "old"),
            .stream(chunks: ["ne", "w!"], length: 4).delayed(by: .seconds(5)),
        ])
        let client = ServiceClient(
            EndpointBed.Service(),
            transport: transport,
            cache: .inMemory(options: options),
            retrierFactory: BackoffRetrier.factory(checksAttempts: true),
            configuration: configuration
        )
        _ = try await Text().makeRequest(to: client)
        clock.advance(by: .seconds(20))
        let call = Task { try await Text().makeRequest(to: client, onProgress: fractions.report) }
        try await transport.waitForSends(2)
        clock.advance(by: .seconds(3))
        #expect(try await call.value == "old")
        clock.advance(by: .seconds(5))
        await client.pipeline.drain()
        #expect(fractions.all == [0, 1])
    }
}
