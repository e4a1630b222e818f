// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy && Tool && os(Linux)
    import Foundation
    import Glibc
    import HoldfastProxy
    import HoldfastStorage
    import HoldfastTestKit
    import HoldfastTesting
    import NIOCore
    import Testing

    /// What clients and origins do to a proxy that runs for long: it leaks nothing, hangs on nothing, and mixes nothing up.
    @Suite("Chaos on real sockets", .timeLimit(.minutes(20)))
    struct ProxyChaosTests {
        private static let rounds = 1_000

        /// An origin that answers `/N` with N bytes of the pattern, and measures what it is sent.
        private func origin(_ handler: @escaping @Sendable (LoopbackRequest) -> LoopbackReply? = { _ in nil }) throws
            -> LoopbackServer
        {
            try LoopbackServer.start(
                connectionLimit: 600,
                bodyLimit: Self.length,
                script: LoopbackScript(intake: { _ in .measure }) { request in
                    if let reply = handler(request) { return reply }
                    let length = Int(request.path.dropFirst().prefix { $0 != "/" }) ?? 0
                    return LoopbackReply(fields: [("Cache-Control", "no-store")], steps: [.pattern(length)])
                }
            )
        }

        private func isPattern(_ body: [UInt8], _ length: Int) -> Bool {
            var checker = TransferPattern.Checker()
            checker.read(ByteChunk(body))
            return checker.isIntact && checker.count == length
        }

        /// Runs the rounds, some at a time.
        private func storm(_ round: @escaping @Sendable (Int, inout SeededGenerator) async throws -> Void) async throws
        {
            try await withThrowingTaskGroup { group in
                for worker in 0..<16 {
                    group.addTask {
                        var generator = SeededGenerator(seed: UInt64(worker) + 1)
                        for number in stride(from: worker, to: Self.rounds, by: 16) {
                            try await round(number, &generator)
                        }
                    }
                }
                try await group.waitForAll()
            }
        }

        @Test("1,000 clients disconnect at random points, and nothing of theirs is left")
        func clients() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try await ProxyProcess(origin: Int(origin.port))
            #expect(isPattern(try await ProbeClient(port: proxy.port).ask("/5000").body, 5_000))
            let before = proxy.descriptors
            try await storm { _, generator in
                let client = try await ProbeClient(port: proxy.port)
                defer { client.channel.reset() }
                switch Int.random(in: 0..<5, using: &generator) {
                case 0:
                    let head = "GET /100000 HTTP/1.1\r\nHost: x\r\n\r\n"
                    try await client.send(String(head.prefix(Int.random(in: 0..<head.utf8.count, using: &generator))))
                case 1:
                    try await client.send("GET /100000 HTTP/1.1\r\nHost: x\r\n\r\n")
                case 2:
                    try await client.send(
                        "GET /\(Int.random(in: 1...3_000_000, using: &generator)) HTTP/1.1\r\nHost: x\r\n\r\n"
                    )
                    _ = try await client.next()
                case 3:
                    try await client.send("PUT /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
                    try await client.channel.write(
                        ByteBuffer(repeating: 1, count: Int.random(in: 0..<99_999, using: &generator))
                    )
                default:
                    let length = Int.random(in: 0...40_000, using: &generator)
                    let answer = try await client.ask("/\(length)")
                    guard isPattern(answer.body, length) else { throw ProxyProcess.Failure(text: "a wrong byte") }
                }
            }
            // Of the origin's connections some are kept for the next request, and given up after 4 s.
            #expect(try await proxy.settled(to: before + 1) <= before + 1)
            #expect(isPattern(try await ProbeClient(port: proxy.port).ask("/70000").body, 70_000))
            #expect(await proxy.end() == 0)
        }

        @Test("1,000 times the origin resets, truncates or aborts; every client notices, and nothing is left")
        func resets() async throws {
            let origin = try origin { request in
                let length = 30_000
                switch request.path.split(separator: "/").last {
                case "reset": return LoopbackReply(before: [.reset])
                case "close": return LoopbackReply(before: [.close])
                case "torn": return LoopbackReply(framing: .length(length), steps: [.pattern(length / 2), .reset])
                case "short": return LoopbackReply(framing: .length(length), steps: [.pattern(length / 2), .close])
                case "chunks": return LoopbackReply(framing: .chunked, steps: [.pattern(length / 2), .reset])
                default: return nil
                }
            }
            defer { origin.stop() }
            let proxy = try await ProxyProcess(origin: Int(origin.port))
            #expect(isPattern(try await ProbeClient(port: proxy.port).ask("/5000").body, 5_000))
            let before = proxy.descriptors
            try await storm { number, generator in
                let client = try await ProbeClient(port: proxy.port)
                let kinds = ["reset", "close", "torn", "short", "chunks", "whole"]
                let kind = kinds[Int.random(in: 0..<kinds.count, using: &generator)]
                let answer: ProbeAnswer?
                do { answer = try await client.ask("/30000/\(number)/\(kind)") } catch { answer = nil }
                let isRight =
                    switch kind {
                    case "reset", "close": answer?.status == 502
                    case "whole": answer.map { $0.status == 200 && isPattern($0.body, 30_000) } ?? false
                    // An answer that breaks off ends with its connection, and is never taken for whole.
                    default: answer == nil || answer?.status == 502
                    }
                guard isRight else {
                    throw ProxyProcess.Failure(
                        text: "\(kind): \(answer.map { "\($0.status), \($0.body.count) bytes" } ?? "none")"
                    )
                }
            }
            #expect(try await proxy.settled(to: before + 1) <= before + 1)
            #expect(isPattern(try await ProbeClient(port: proxy.port).ask("/70000").body, 70_000))
            #expect(await proxy.end() == 0)
        }

        @Test("300 clients that send a head byte by byte do not block the others, up to the connection limit")
        func slowLoris() async throws {
            let origin = try origin()
            defer { origin.stop() }
            // On a busy machine, 300 take longer to connect than the 30 s that a first head may take.
            let options = ["--max-connections", "301", "--client-idle", "10m"]
            let proxy = try await ProxyProcess(origin: Int(origin.port), options)
            let before = proxy.descriptors
            var clients: [ProbeClient] = []
            for _ in 0...300 {
                let client = try await ProbeClient(port: proxy.port)
                #expect(try await client.ask("/1").status == 200)
                clients.append(client)
            }
            let served = clients.removeLast()
            let refused = try await ProbeClient(port: proxy.port).answer()
            #expect(refused.status == 503)
            #expect(refused["Retry-After"] != nil)
            for client in clients { try await client.send("GET / HTTP/1.1\r\nHost: x\r\nX-A: ") }
            #expect(isPattern(try await served.ask("/5000").body, 5_000))
            for client in clients {
                try? await client.send("y")
                client.channel.reset()
            }
            served.channel.reset()
            #expect(try await proxy.settled(to: before + 1) <= before + 1)
            #expect(await proxy.end() == 0)
        }

        /// 64 MB; 2 GB with HOLDFAST_LONG_TESTS=1.
        private static let length =
            LongTests.areOn ? 2_000_000_000 : 64_000_000

        @Test("A long body arrives byte for byte in both directions, in little memory")
        func longBodies() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try await ProxyProcess(origin: Int(origin.port))
            let down = try await ProbeClient(port: proxy.port)
            try await down.send("GET /\(Self.length) HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(try await down.head()["Content-Length"] == "\(Self.length)")
            var checker = TransferPattern.Checker()
            while checker.count < Self.length, let bytes = try await down.next() {
                bytes.withUnsafeReadableBytes { checker.read($0) }
            }
            #expect(checker.count == Self.length)
            #expect(checker.isIntact)
            let up = try await ProbeClient(port: proxy.port)
            try await up.send("PUT /10/up HTTP/1.1\r\nHost: x\r\nContent-Length: \(Self.length)\r\n\r\n")
            var sent = 0
            while sent < Self.length {
                let bytes = TransferPattern.bytes(min(65_000, Self.length - sent), at: sent)
                try await up.channel.write(bytes.withUnsafeBytes { ByteBuffer(bytes: $0) })
                sent += bytes.count
            }
            #expect(isPattern(try await up.answer().body, 10))
            let request = try #require(origin.requests.last)
            #expect(request.bodyLength == Self.length)
            #expect(request.isPattern)
            #expect(proxy.peakMemory < 200_000_000)
            #expect(await proxy.end() == 0)
        }

        @Test("SIGTERM under load: every response that began is completed, and the program exits with 0")
        func drain() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try await ProxyProcess(origin: Int(origin.port), ["--drain-timeout", "10m"])
            let answered = CountWatch()
            let torn = try await withThrowingTaskGroup { group in
                for _ in 0..<16 {
                    group.addTask {
                        do {
                            let client = try await ProbeClient(port: proxy.port)
                            while true {
                                try await client.send("GET /200000 HTTP/1.1\r\nHost: x\r\n\r\n")
                                // A connection that ends before an answer begins is one that was idle.
                                guard let head = try? await client.head() else { return false }
                                guard head.status == 200 else { return true }
                                var checker = TransferPattern.Checker()
                                while checker.count < 200_000, let bytes = try await client.next() {
                                    bytes.withUnsafeReadableBytes { checker.read($0) }
                                }
                                guard checker.count == 200_000, checker.isIntact else { return true }
                                answered.increment()
                                if head["Connection"] == "close" { return false }
                            }
                        } catch {
                            return false
                        }
                    }
                }
                try await answered.wait(for: 100)
                proxy.signal(SIGTERM)
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(torn == 0)
            #expect(await proxy.end() == 0)
        }
    }
#endif
