// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastProxy
    internal import HoldfastRedis
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import Synchronization

    struct ProxyCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "proxy",
            abstract: "A caching, retrying proxy: in front of one server, or of this machine's programs.",
            usage: """
                holdfast proxy --origin URL [options]
                holdfast proxy --forward [options]
                """,
            discussion: """
                With --origin it is a reverse proxy: whatever it is asked, it asks that server. With --forward it is a forward proxy for plain \
                http: programs name it in HTTP_PROXY, and it asks whom they name. Responses are stored and answered by RFC 9111. It writes one \
                line to standard error when it listens; SIGTERM or Control-C lets the requests under way end, and a second one cuts them off.

                Sizes are written 64MB or 1GiB, times 250ms, 10s or 5m; a time of 0 is no limit.

                Exit status: 0 after SIGTERM or Control-C; 1 where the address is taken or the directory cannot be used; 64 a wrong \
                command line.
                """
        )

        @Option(
            help: ArgumentHelp(
                "Where to listen: an address and a port, or a port of 127.0.0.1; port 0 takes any.",
                valueName: "host:port"
            )
        )
        var listen = ListenAddress(host: "127.0.0.1", port: 8080)

        @Option(help: ArgumentHelp("The server to stand in front of, without a path.", valueName: "url"))
        var origin: String?

        @Flag(help: "Be a forward proxy for plain http.")
        var forward = false

        @Option(
            help: ArgumentHelp(
                "Forward to this host alone (may be repeated): a name, .example.com for all beneath it, an address; :port where one port is meant.",
                valueName: "host"
            )
        )
        var allowHost: [String] = []

        @Flag(help: "Forward to no loopback, private or link-local address; so it is anyway with --open-forward-proxy.")
        var denyPrivate = false

        @Flag(help: "Let a forward proxy listen where other machines reach it: whoever does sends in your name.")
        var openForwardProxy = false

        @Option(help: "For whom the cache stores: one user, or many.")
        var mode = Mode.shared

        @Option(help: ArgumentHelp("Memory for stored responses; 0 keeps none there.", valueName: "size"))
        var memory = ByteCount(64_000_000)

        @Option(help: ArgumentHelp("Keep responses in this directory too, over restarts.", valueName: "dir"))
        var disk: String?

        @Option(help: ArgumentHelp("How much the directory may hold.", valueName: "size"))
        var diskSize = ByteCount(1_000_000_000)

        @Option(
            help: ArgumentHelp("Keep responses in this Redis or Valkey too, for a fleet of proxies.", valueName: "url")
        )
        var redis: String?

        @Option(help: "How failed requests are repeated.")
        var retry = Retry.gateway

        @Option(help: ArgumentHelp("How long the origin may take to answer, retries included.", valueName: "time"))
        var timeout = TimeSpan(.seconds(9))

        @Option(help: ArgumentHelp("Name this proxy so in Via, by which loops are seen.", valueName: "name"))
        var via: String?

        @Option(help: ArgumentHelp("Tell under this name in Cache-Status what the cache did.", valueName: "name"))
        var cacheStatus: String?

        @Option(help: "Tell the origin who asked.")
        var clientAddress = ClientAddress.none

        @Option(help: ArgumentHelp("How many client connections are served at a time.", valueName: "count"))
        var maxConnections = 10_000

        @Option(help: ArgumentHelp("How large the head of a request may be.", valueName: "size"))
        var headerLimit = ByteCount(65_536)

        @Option(help: ArgumentHelp("How long a client's connection may lie idle.", valueName: "time"))
        var clientIdle = TimeSpan(.seconds(75))

        @Option(help: ArgumentHelp("How long requests under way have to end after SIGTERM.", valueName: "time"))
        var drainTimeout = TimeSpan(.seconds(10))

        @Option(
            help: ArgumentHelp(
                "Serve a page on this port of 127.0.0.1 that shows what the cache does.",
                valueName: "port"
            )
        )
        var inspect: Int?

        @Option(help: "Write a line for each request to standard output.")
        var log = Log.none

        func run() async throws {
            try await run(on: .standard, until: Signals.ending())
        }

        /// For whom the cache stores.
        enum Mode: String, ExpressibleByArgument, CaseIterable {
            case `private`, shared
        }

        /// What is written to standard output for each request.
        enum Log: String, ExpressibleByArgument, CaseIterable {
            case none, access, decisions
        }

        /// What the origin is told of the client.
        enum ClientAddress: String, ExpressibleByArgument, CaseIterable {
            case none, xForwardedFor = "x-forwarded-for", forwarded
        }

        /// The library's presets of retrying.
        enum Retry: String, ExpressibleByArgument, CaseIterable {
            case gateway, `default`, strict, patient, interactive, none

            /// A factory with budgets of its own.
            var factory: any RetrierFactory {
                switch self {
                case .gateway: .gateway
                case .default: .default
                case .strict: .strict
                case .patient: .patient
                case .interactive: .interactive
                case .none: .never
                }
            }
        }

        /// The options as the proxy takes them, but for the cache.
        ///
        /// - Throws: ``CommandFailure`` with status 64.
        func proxyConfiguration() throws -> ProxyConfiguration {
            var configuration = ProxyConfiguration(try role())
            configuration.host = listen.host
            configuration.port = listen.port
            configuration.retrierFactory = retry.factory
            configuration.viaName = via
            configuration.clientAddressFields =
                switch clientAddress {
                case .none: .none
                case .xForwardedFor: .xForwardedFor
                case .forwarded: .forwarded
                }
            configuration.answerTimeout = timeout.limit
            guard maxConnections > 0 else { throw CommandFailure.usage("--max-connections is to be at least 1") }
            configuration.limits.connections = maxConnections
            guard (1_024...16_777_216).contains(headerLimit.bytes) else {
                throw CommandFailure.usage("--header-limit is to lie between 1KiB and 16MiB")
            }
            configuration.limits.headBytes = headerLimit.bytes
            configuration.limits.idleTimeout = clientIdle.limit ?? .seconds(86_400)
            if let inspect, !(0...65_535).contains(inspect) {
                throw CommandFailure.usage("--inspect \(inspect) is no port; choose one from 1 to 65535, or 0 for any")
            }
            if let cacheStatus, FieldName(cacheStatus) == nil {
                throw CommandFailure.usage(
                    "--cache-status '\(cacheStatus)' is no token; choose letters, digits and hyphens"
                )
            }
            do throws(ProxyConfigurationError) {
                try configuration.validate()
            } catch {
                let hint = forward && !openForwardProxy ? " (--open-forward-proxy)" : ""
                throw CommandFailure.usage(error.description + (error.description.contains("be open") ? hint : ""))
            }
            return configuration
        }

        private func role() throws -> ProxyRole {
            if forward {
                guard origin == nil else { throw CommandFailure.usage("--origin and --forward exclude each other") }
                var rules = ForwardRules()
                rules.isOpen = openForwardProxy
                rules.allowedHosts = allowHost
                rules.deniesPrivateAddresses = denyPrivate ? true : nil
                return .forward(rules)
            }
            guard let origin else { throw CommandFailure.usage("say whom to ask: --origin URL, or --forward") }
            guard allowHost.isEmpty, !denyPrivate, !openForwardProxy else {
                throw CommandFailure.usage("--allow-host, --deny-private and --open-forward-proxy are for --forward")
            }
            do throws(ProxyConfigurationError) {
                return .reverse(try ProxyOrigin(origin))
            } catch {
                throw CommandFailure.usage("--origin: \(error)")
            }
        }

        /// The rules of the cache.
        var cacheOptions: CacheOptions {
            var options: CacheOptions = mode == .shared ? .shared : .private
            options.cacheName = cacheStatus
            return options
        }

        /// The cache that the options ask for; nil where they leave it no room.
        ///
        /// - Throws: ``CommandFailure``: 64 for options that do not go together, 1 where a store cannot be opened.
        func makeCache() async throws -> HTTPCache? {
            if let redis {
                guard disk == nil else { throw CommandFailure.usage("--disk and --redis exclude each other") }
                return try await redisCache(redis)
            }
            guard let disk else {
                return memory.bytes > 0 ? .inMemory(capacity: memory.bytes, options: cacheOptions) : nil
            }
            let directory = URL(fileURLWithPath: disk, isDirectory: true)
            do {
                guard memory.bytes > 0 else {
                    return try await .onDisk(at: directory, capacity: diskSize.bytes, options: cacheOptions)
                }
                return try await .tiered(
                    at: directory,
                    memory: memory.bytes,
                    capacity: diskSize.bytes,
                    options: cacheOptions
                )
            } catch let error as StoreError {
                throw CommandFailure("--disk \(disk): \(error.message)")
            }
        }

        private func redisCache(_ url: String) async throws -> HTTPCache {
            #if Redis
                var options = RedisOptions()
                options.memory = memory.bytes
                do throws(StoreError) {
                    return HTTPCache(store: try await RedisStore.connect(url, options: options), options: cacheOptions)
                } catch {
                    throw CommandFailure(
                        "--redis: \(error.message)",
                        exitStatus: error.code == .badConfiguration ? 64 : 1
                    )
                }
            #else
                throw CommandFailure.usage(
                    "--redis needs the trait Redis: swift run --traits Tool,Redis holdfast proxy …"
                )
            #endif
        }

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
                try await serve(configuration, inspector: inspector, console: console, endings: endings)
            } catch {
                await cache?.close()
                throw error
            }
            await cache?.close()
            await logging?.flush()
        }

        private func serve(
            _ configuration: ProxyConfiguration,
            inspector: Inspector?,
            console: Console,
            endings: AsyncStream<Void>
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
            await ProxyCommand.drain(server, within: drainTimeout.duration, endings: endings)
            await inspector?.stop()
        }

        private static func drain(_ server: ProxyServer, within limit: Duration, endings: AsyncStream<Void>) async {
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

    extension TimeSpan {
        /// The time as a limit; nil for 0.
        fileprivate var limit: Duration? { duration > .zero ? duration : nil }
    }
#endif
