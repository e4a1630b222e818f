// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("Long bodies of LoopbackServer", .timeLimit(.minutes(20)))
struct LoopbackIntakeTests {
    private static func request(_ count: Int) -> String {
        "PUT /x HTTP/1.1\r\nContent-Length: \(count)\r\n\r\n" + String(repeating: "a", count: count)
    }

    @Test("Measured content is not kept, and kept content is measured too")
    func measuring() async throws {
        for intake in [LoopbackIntake.keep, .measure] {
            let server = try LoopbackServer.start(
                script: LoopbackScript(intake: { _ in intake }, handler: { LoopbackReply(body: "\($0.bodyLength)") })
            )
            #expect(try await RawClient.exchange(Self.request(1_000), with: server).hasSuffix("1000"))
            let request = try #require(server.requests.first)
            #expect(request.bodyLength == 1_000)
            #expect(!request.isPattern)
            #expect(request.body.isEmpty == (server.requests.first?.text.isEmpty ?? false))
        }
    }

    @Test("Held content is read when its gate opens, and its head is available before")
    func holding() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start(
            script: LoopbackScript(intake: { _ in .holding(after: 500, at: gate) }, handler: { _ in LoopbackReply() })
        )
        async let answer = RawClient.exchange(Self.request(100_000), with: server)
        try await gate.reached()
        #expect(try await server.heads(atLeast: 1).map(\.path) == ["/x"])
        #expect(server.requests.isEmpty)
        gate.open()
        try await gate.opened()
        #expect(try await answer.hasPrefix("HTTP/1.1 200"))
        #expect(server.requests.map(\.bodyLength) == [100_000])
    }

    @Test("Refused content ends the exchange without a response", arguments: [true, false])
    func breaking(resetting: Bool) async throws {
        let server = try LoopbackServer.start(
            script: LoopbackScript(
                intake: { _ in .breaking(after: 10, resetting: resetting) },
                handler: { _ in LoopbackReply() }
            )
        )
        let answer = try? await RawClient.exchange(Self.request(100_000), with: server)
        #expect(answer?.isEmpty ?? true)
        #expect(try await server.exchangeEnds(atLeast: 1).map(\.endedBy) == [.server])
        #expect(server.requests.isEmpty)
    }

    @Test("Pattern steps continue where the last one stopped, and the gauge counts what was sent")
    func pattern() async throws {
        let gauge = ByteGauge()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(steps: [.pattern(70_000, gauge: gauge), .pattern(30_000, gauge: gauge)])
        }
        let answer = try await RawClient.bytes("GET / HTTP/1.1\r\n\r\n", with: server)
        var checker = TransferPattern.Checker()
        checker.read(ByteChunk(Array(answer.suffix(100_000))))
        #expect(checker.isIntact)
        #expect(gauge.count == 100_000)
        try await gauge.wait(for: 100_000)
    }
}

@Suite("TransferPattern")
struct TransferPatternTests {
    private static func pattern(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count { TransferPattern.bytes(count - bytes.count, at: bytes.count).append(to: &bytes) }
        return bytes
    }

    @Test(
        "The pattern does not depend on how it is split",
        arguments: [1, 7, 4_096, 65_520, 65_521, 65_522, 131_042, 200_000]
    )
    func cuts(size: Int) {
        let all = Self.pattern(300_000)
        var checker = TransferPattern.Checker()
        var position = 0
        while position < all.count {
            let end = min(position + size, all.count)
            checker.read(ByteChunk(Array(all[position..<end])))
            position = end
            // One byte at a time is enough for the beginning.
            if size == 1, position > 70_000 { break }
        }
        #expect(checker.isIntact)
        #expect(checker.count == position)
    }

    @Test("A lost, doubled, changed or moved byte is detected")
    func damage() {
        let all = Self.pattern(200_000)
        let damages: [(inout [UInt8]) -> Void] = [
            { $0.remove(at: 70_000) }, { $0.insert($0[70_000], at: 70_000) }, { $0[199_999] ^= 1 }, { $0[0] ^= 1 },
            { $0.removeSubrange(4_096..<8_192) }, { $0.replaceSubrange(4_096..<8_192, with: $0[8_192..<12_288]) },
        ]
        for damage in damages {
            var bytes = all
            damage(&bytes)
            var checker = TransferPattern.Checker()
            checker.read(ByteChunk(bytes))
            #expect(!checker.isIntact)
        }
    }
}
