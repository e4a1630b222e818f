// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastProxy
    import HoldfastTesting
    import Testing

    /// The code of `docs/tool/proxy.md`.
    @Suite("The page on the proxy", .timeLimit(.minutes(20)))
    struct ProxyPageTests {
        @Test("A proxy in your own program")
        func embedded() async throws {
            let origin = try LoopbackServer.start { _ in
                LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "hello")
            }
            defer { origin.stop() }
            let originURL = "http://127.0.0.1:\(origin.port)"

            var configuration = ProxyConfiguration(.reverse(try ProxyOrigin(originURL)))
            configuration.port = 0
            configuration.cache = .inMemory(capacity: 64_000_000, options: .shared)
            let server = try await ProxyServer.start(configuration)
            print("listening on http://127.0.0.1:\(server.port)")

            for _ in 1...2 {
                let answer = try await ProbeClient(port: server.port).ask("/")
                #expect(answer.text == "hello")
                await server.pipeline.drain()
            }
            #expect(origin.requests.count == 1)

            await server.drain(within: .seconds(10))
            await configuration.cache?.close()
        }
    }
#endif
