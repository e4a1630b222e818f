// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(
    "RETRY §1 row 46, §3.1: broken bodies are resumed with Range and If-Range, and a resume is retried",
    .timeLimit(.minutes(20))
)
struct ResumedBodyTests {
    /// Answers 503 in the place of some requests.
    struct StumblingTransport: Transport {
        let base: ScriptedTransport
        let stumbles = StumbleCount()
        var enforcesDeadline: Bool { true }

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            let response = try await base.send(request, body: body, context: context)
            guard stumbles.takesOne() else { return response }
            response.body.discard()
            return Response(status: .serviceUnavailable)
        }
    }

    final class StumbleCount: Sendable {
        private let left = Mutex(0)

        func add(_ count: Int) { left.withLock { $0 += count } }

        func takesOne() -> Bool {
            left.withLock { left in
                guard left > 0 else { return false }
                left -= 1
                return true
            }
        }
    }

    static func pipeline(_ transport: StumblingTransport, _ store: any CacheStore) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        return Pipeline(
            transport: transport,
            cache: HTTPCache(store: store),
            retrierFactory: .seeded(),
            configuration: configuration
        )
    }

    @Test("Row 46: a broken download continues where it stopped, with the same range in each attempt")
    func interruptedDownload() async throws {
        let origin = RangeOrigin(length: 100_000) { $0.chunkSize = 1_000 }
        let transport = StumblingTransport(base: origin.transport)
        let pipeline = Self.pipeline(transport, MemoryStore(capacity: 1 << 20))
        origin.change { $0.breaksAfter = 30_000 }
        let broken = try await pipeline.send(.get())
        await #expect(throws: ServiceError.self) { try await broken.body.collect() }
        transport.stumbles.add(2)
        let response = try await pipeline.send(.get())
        #expect(String(decoding: try await response.body.collect(), as: UTF8.self) == origin.bytes())
        let sent = transport.base.sent.map(\.request)
        #expect(
            sent.map { $0.value(forHTTPHeaderField: "Range") }.dropFirst() == [
                "bytes=30000-99999", "bytes=30000-99999", "bytes=30000-99999",
            ]
        )
        #expect(sent.last?.value(forHTTPHeaderField: "If-Range") == "\"1\"")
    }

    @Test(
        "Row 46: a damaged stored body is completed for its reader although the origin fails twice before"
    )
    func healedBody() async throws {
        let origin = RangeOrigin(length: 1_000_000)
        let transport = StumblingTransport(base: origin.transport)
        try await DiskCacheTests.withDirectory { directory in
            let store = try await StoreKind.open(directory)
            let pipeline = Self.pipeline(transport, store)
            _ = try await pipeline.send(.get()).body.collect()
            try PartFailureTests.damageBody(in: directory)
            transport.stumbles.add(2)
            let response = try await pipeline.send(.get())
            #expect(response.source == .fresh)
            #expect(String(decoding: try await response.body.collect(), as: UTF8.self) == origin.bytes())
            let ranges = transport.base.sent.map { $0.request.value(forHTTPHeaderField: "Range") }
            #expect(ranges.count == 4 && ranges[1] != nil && ranges[1] == ranges[2] && ranges[2] == ranges[3])
            await store.close()
        }
    }
}
