// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastProxy
    internal import Synchronization

    extension ProxyCommand {
        /// Serves until an element of `endings` comes, lets the requests under way end, and closes the cache; a second element cuts
        /// them off.
        ///
        /// - Throws: ``CommandFailure``.
        func run(on console: Console, until endings: AsyncStream<Void>) async throws {
            var configuration = try proxyConfiguration()
            let cache = try await makeCache()
            configuration.cache = cache
            let logging = log == .none ? nil : ProxyLog(log, on: console)
            if let logging { configuration.onAnswer = { logging.note($0) } }
            var inspector: Inspector?
            if inspect != nil, let cache {
                let model = InspectorModel(cache: cache)
                configuration.observers.append(model)
                inspector = Inspector(model: model, governor: configuration.retrierFactory.governor)
            }
            do {
                try await serve(configuration, inspector, console, endings)
            } catch {
                await cache?.close()
                throw error
            }
            await cache?.close()
            await logging?.flush()
        }

        private func serve(
            _ configuration: ProxyConfiguration,
            _ inspector: Inspector?,
            _ console: Console,
            _ endings: AsyncStream<Void>
        ) async throws {
            let server: ProxyServer
            do {
                server = try await ProxyServer.start(configuration)
            } catch {
                throw CommandFailure("cannot listen on \(listen): \(ProxyCommand.reason(error))")
            }
            if let inspector, let port = inspect {
                do {
                    let port = try await inspector.start(port: port)
                    console.error("inspector on http://127.0.0.1:\(port)/\n")
                } catch {
                    await server.close()
                    throw CommandFailure("cannot listen on 127.0.0.1:\(port): \(ProxyCommand.reason(error))")
                }
            } else if inspect != nil {
                console.error("there is no cache to inspect: --memory 0\n")
            }
            let address = ListenAddress(host: listen.host, port: server.port)
            console.error("listening on http://\(address)\n")
            var iterator = endings.makeAsyncIterator()
            _ = await iterator.next()
            console.error("draining; once more to end at once\n")
            await ProxyCommand.drain(server, within: drainTimeout.duration, endings)
            await inspector?.stop()
        }

        private static func drain(_ server: ProxyServer, within limit: Duration, _ endings: AsyncStream<Void>) async {
            await withTaskGroup { group in
                group.addTask {
                    await server.drain(within: limit)
                }
                group.addTask {
                    var iterator = endings.makeAsyncIterator()
                    if await iterator.next() != nil { await server.close() }
                }
                await group.next()
                group.cancelAll()
            }
            await server.close()
        }

        /// What kept a server from listening, in a few words.
        private static func reason(_ error: any Error) -> String {
            guard let code = ProxyServer.systemErrorNumber(error) else {
                return "\(error)"
            }
            return switch code {
            case EADDRINUSE: "the port is taken; choose another one"
            case EACCES: "this user may not listen there; choose a port above 1023"
            case EADDRNOTAVAIL: "the address is none of this machine's"
            default: String(cString: strerror(code))
            }
        }
    }

#endif
