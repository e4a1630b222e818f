// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastProxy
    import HoldfastSemantics
    import HoldfastTesting
    import Synchronization

    /// An origin on a real socket that answers each path as it was laid down, and a proxy in front of it.
    final class ProxyBench: Sendable {
        typealias Turn = @Sendable (LoopbackRequest) -> LoopbackReply

        private struct Laid {
            var turns: [String: [Turn]] = [:]
            var seen: [String: [LoopbackRequest]] = [:]
            var serial = 0
        }

        private final class Paths: Sendable {
            let laid = Mutex(Laid())

            func answer(_ request: LoopbackRequest) -> LoopbackReply {
                let turn: Turn? = laid.withLock { laid in
                    let count = laid.seen[request.path, default: []].count
                    laid.seen[request.path, default: []].append(request)
                    guard let turns = laid.turns[request.path] else { return nil }
                    return turns[min(count, turns.count - 1)]
                }
                return turn?(request) ?? LoopbackReply(body: "body")
            }
        }

        let origin: LoopbackServer
        let proxy: ProxyServer
        private let paths: Paths

        /// - Parameters:
        ///   - intake: what the origin does with content.
        ///   - adjust: changes the configuration: a cache in shared mode, no retries, any port.
        init(
            isForward: Bool = false,
            intake: @escaping @Sendable (LoopbackRequest) -> LoopbackIntake = { _ in .keep },
            _ adjust: (inout ProxyConfiguration) -> Void = { _ in }
        ) async throws {
            let paths = Paths()
            self.paths = paths
            origin = try LoopbackServer.start(
                connectionLimit: 400,
                script: LoopbackScript(intake: intake) { paths.answer($0) }
            )
            var configuration = ProxyConfiguration(
                isForward ? .forward() : .reverse(try ProxyOrigin("http://127.0.0.1:\(origin.port)"))
            )
            configuration.port = 0
            configuration.retrierFactory = .never
            // This machine may be so busy that nothing moves for a minute.
            configuration.answerTimeout = nil
            configuration.limits.headTimeout = .seconds(1_200)
            configuration.limits.stallTimeout = .seconds(1_200)
            configuration.transport.connectTimeout = .seconds(1_200)
            configuration.transport.stallTimeout = .seconds(1_200)
            adjust(&configuration)
            proxy = try await ProxyServer.start(configuration)
        }

        /// A fresh path whose n-th request is answered by the n-th turn, and further ones by the last.
        func lay(_ turns: Turn...) -> String {
            paths.laid.withLock { laid in
                laid.serial += 1
                let path = "/check/\(laid.serial)"
                laid.turns[path] = turns
                return path
            }
        }

        /// A fresh path that is always answered like this.
        func lay(_ reply: LoopbackReply) -> String { lay { _ in reply } }

        /// The requests for a path that the origin has seen.
        func seen(_ path: String) -> [LoopbackRequest] {
            paths.laid.withLock { $0.seen[path] ?? [] }
        }

        /// Asks the proxy over a connection of its own.
        func ask(
            _ target: String,
            _ fields: [String] = [],
            method: String = "GET",
            body: String? = nil
        ) async throws -> ProbeAnswer {
            try await ProbeClient(port: proxy.port).ask(target, fields, method: method, body: body)
        }

        func client() async throws -> ProbeClient {
            try await ProbeClient(port: proxy.port)
        }

        func end() async {
            await proxy.close()
            origin.stop()
        }

        /// Runs a test on a bench that ends with it.
        static func with(
            isForward: Bool = false,
            intake: @escaping @Sendable (LoopbackRequest) -> LoopbackIntake = { _ in .keep },
            adjust: (inout ProxyConfiguration) -> Void = { _ in },
            _ test: (ProxyBench) async throws -> Void
        ) async throws {
            let bench = try await ProxyBench(isForward: isForward, intake: intake, adjust)
            do {
                try await test(bench)
                await bench.end()
            } catch {
                await bench.end()
                throw error
            }
        }
    }
#endif
