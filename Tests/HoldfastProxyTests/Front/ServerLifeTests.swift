// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastProxy
    import HoldfastTesting
    import NIOCore
    import Testing

    @Suite("The server's limits and shutdown", .timeLimit(.minutes(20)))
    struct ServerLifeTests {
        private static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

        @Test("A connection over the limit gets a 503 with Retry-After, until another one ends")
        func connectionLimit() async throws {
            var configuration = ServerConfiguration()
            configuration.maximumConnections = 2
            try await withServer(configuration: configuration) { _ in
                .text("a")
            } _: { server in
                let first = try await RawClient.connect(to: server)
                let second = try await RawClient.connect(to: server)
                for client in [first, second] {
                    try await client.send(Self.get)
                    _ = try await client.answer()
                }
                let refused = try await RawClient.exchange(
                    "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                    with: server
                )
                #expect(refused.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
                #expect(refused.contains("\r\nRetry-After: 5\r\n"))
                #expect(server.statistics.connectionsRefused == 1)
                // One ends when it is asked to, so that the server has noticed it when the client has.
                try await second.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                _ = try await second.rest()
                second.bytes.close()
                var answer = ""
                for _ in 0..<10_000 where !answer.hasPrefix("HTTP/1.1 200") {
                    answer = try await RawClient.exchange(
                        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                        with: server
                    )
                }
                #expect(answer.hasPrefix("HTTP/1.1 200 OK"))
                first.bytes.close()
            }
        }

        @Test("A full server that may make room closes the oldest connection that waits for its client, and no other")
        func makesRoom() async throws {
            var configuration = ServerConfiguration()
            configuration.maximumConnections = 3
            configuration.closesWaitingConnections = true
            let begun = CountWatch()
            let gate = CountWatch()
            try await withServer(configuration: configuration) { request in
                guard request.target.text == "/slow" else { return .text("a") }
                begun.increment()
                try? await gate.wait(for: 1)
                return .text("slow")
            } _: { server in
                let busy = try await RawClient.connect(to: server)
                try await busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
                try await begun.wait(for: 1)
                let half = try await RawClient.connect(to: server)
                try await half.send(Self.get + "GET / HT")
                _ = try await half.answer()
                let idle = try await RawClient.connect(to: server)
                try await idle.send(Self.get)
                _ = try await idle.answer()
                let third = try await RawClient.exchange(
                    "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                    with: server
                )
                #expect(third.hasPrefix("HTTP/1.1 200 "), "\(third)")
                // The one that came before has been closed, the other ones are served.
                #expect(((try? await half.rest()) ?? "") == "")
                try await idle.send(Self.get)
                #expect(try await idle.answer().hasPrefix("HTTP/1.1 200 "))
                gate.increment()
                #expect(try await busy.answer().hasSuffix("slow"))
                #expect(server.statistics.connectionsRefused == 0)
                for client in [busy, half, idle] { client.bytes.close() }
            }
        }

        @Test("Draining closes idle connections at once and busy ones after their response")
        func drains() async throws {
            let begun = CountWatch()
            let gate = CountWatch()
            let handler = ClosureHandler { request in
                if request.target.text == "/slow" {
                    begun.increment()
                    try? await gate.wait(for: 1)
                }
                return .text("a")
            }
            let server = try await HTTPServer.start(at: .host("127.0.0.1", port: 0), handler: handler)
            let idle = try await RawClient.connect(to: server)
            try await idle.send(Self.get)
            _ = try await idle.answer()
            let busy = try await RawClient.connect(to: server)
            try await busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n" + Self.get)
            try await begun.wait(for: 1)
            let drained = Task { await server.drain(within: .hours(1)) }
            #expect(try await idle.rest() == "")
            gate.increment()
            #expect(try await busy.rest() == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na")
            busy.bytes.close()
            idle.bytes.close()
            await drained.value
            #expect(server.statistics.connectionsOpen == 0)
            #expect(server.statistics.requestsUnderWay == 0)
            await #expect(throws: (any Error).self) { try await RawClient.connect(to: server) }
        }

        @Test(
            "When the drain time is over, the remaining connections are cut",
            arguments: ["time", "cancellation", "close"]
        )
        func cuts(how: String) async throws {
            let begun = CountWatch()
            let cancelled = CountWatch()
            let never = CountWatch()
            let handler = ClosureHandler { _ in
                begun.increment()
                do { try await never.wait(for: 1) } catch { cancelled.increment() }
                return .text("a")
            }
            let server = try await HTTPServer.start(at: .host("127.0.0.1", port: 0), handler: handler)
            let client = try await RawClient.connect(to: server)
            try await client.send(Self.get)
            try await begun.wait(for: 1)
            switch how {
            case "time": await server.drain(within: .milliseconds(1))
            case "close": await server.close()
            default:
                let drained = Task { await server.drain(within: .hours(1)) }
                drained.cancel()
                await drained.value
            }
            try await cancelled.wait(for: 1)
            #expect((try? await client.rest()) ?? "" == "")
            client.bytes.close()
            #expect(server.statistics.connectionsOpen == 0)
        }

        @Test("It listens on a Unix socket, and on IPv6 where available")
        func addresses() async throws {
            let path = NSTemporaryDirectory() + "holdfast-\(UUID().uuidString.prefix(8)).sock"
            let addresses: [HTTPServer.Address] = [.unixSocket(path), .host("::1", port: 0)]
            for address in addresses {
                let handler = ClosureHandler { _ in .text("a") }
                let server: HTTPServer
                do {
                    server = try await HTTPServer.start(at: address, handler: handler)
                } catch {
                    // A machine without IPv6.
                    guard case .host = address else { throw error }
                    continue
                }
                let client = try await RawClient.connect(to: server)
                try await client.send(Self.get)
                #expect(try await client.answer().hasSuffix("\r\n\r\na"))
                client.bytes.close()
                await server.close()
            }
            try? FileManager.default.removeItem(atPath: path)
        }

        @Test("300 clients that come and go leave nothing behind")
        func vanishing() async throws {
            try await withServer { request in
                Response(status: 200, body: ResponseBody(CountingSource(chunk: 100_000, limit: 20)))
            } _: { server in
                for round in 0..<300 {
                    let client = try await RawClient.connect(to: server)
                    if round % 3 > 0 { try await client.send(Self.get) }
                    if round % 3 > 1 { _ = try await client.bytes.read() }
                    client.bytes.vanish()
                }
                // One that comes after them is served, and the server ends although they are all it had.
                let client = try await RawClient.connect(to: server)
                try await client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                #expect(try await client.rest().hasSuffix("0\r\n\r\n"))
                client.bytes.close()
                await server.drain(within: .hours(1))
                #expect(server.statistics.connectionsOpen == 0)
                #expect(server.statistics.requestsUnderWay == 0)
            }
        }

        @Test("A full server that may make room closes a connection whose client owes it content that nobody reads")
        func makesRoomWithinContent() async throws {
            var configuration = ServerConfiguration()
            configuration.maximumConnections = 1
            configuration.closesWaitingConnections = true
            try await withServer(configuration: configuration) { _ in
                .text("a")
            } _: { server in
                let slow = try await RawClient.connect(to: server)
                try await slow.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab")
                #expect(try await slow.answer().hasPrefix("HTTP/1.1 200 "))
                var answer = ""
                for _ in 0..<1_000 where !answer.hasPrefix("HTTP/1.1 200 ") {
                    answer = try await RawClient.exchange(
                        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                        with: server
                    )
                }
                #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
                slow.bytes.close()
            }
        }

        @Test("A server that ends leaves the Unix socket of its successor, which removes its own")
        func successor() async throws {
            let path = NSTemporaryDirectory() + "holdfast-\(UUID().uuidString.prefix(8)).sock"
            let handler = ClosureHandler { _ in .text("a") }
            let first = try await HTTPServer.start(at: .unixSocket(path), handler: handler)
            let second = try await HTTPServer.start(at: .unixSocket(path), handler: handler)
            await first.close()
            #expect(FileManager.default.fileExists(atPath: path))
            let client = try await RawClient.connect(to: second)
            try await client.send(Self.get)
            #expect(try await client.answer().hasSuffix("a"))
            client.bytes.close()
            await second.close()
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }
#endif
