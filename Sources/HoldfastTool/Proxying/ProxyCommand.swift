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
                line to standard error when it listens, and tells failures there; SIGHUP opens the log anew; SIGTERM or Control-C lets the \
                requests under way end, and a second one cuts them off.

                Sizes are written 64MB or 1GiB, times 250ms, 10s or 5m; a time of 0 is no limit.

                Exit status: 0 after SIGTERM or Control-C; 1 where the address is taken or the directory cannot be used; 64 a wrong \
                command line.
                """
        )

        @Option(
            help: ArgumentHelp(
                "Where to listen: an address and a port, a port of 127.0.0.1 (0: any), unix:PATH, or systemd for its socket.",
                valueName: "host:port"
            )
        )
        var listen = ListenAddress(host: "127.0.0.1", port: 8080)

        @Option(
            help: ArgumentHelp(
                "The server to stand in front of, without a path; given several times, servers that take turns.",
                valueName: "url"
            )
        )
        var origin: [String] = []

        @Option(help: "What Host the origin sees: its own, or the one that the client sent (keep).")
        var host = HostField.origin

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

        @Option(
            help: ArgumentHelp(
                "Lifetimes, keys and what is never stored, by host, path and content type, from this JSON file.",
                valueName: "file"
            )
        )
        var rules: String?

        @Option(help: "How failed requests are repeated.")
        var retry = Retry.gateway

        @Option(help: ArgumentHelp("How long the origin may take to answer, retries included.", valueName: "time"))
        var timeout = TimeSpan(.seconds(60))

        @Option(help: ArgumentHelp("Name this proxy so in Via, by which loops are seen.", valueName: "name"))
        var via: String?

        @Option(help: ArgumentHelp("Tell under this name in Cache-Status what the cache did.", valueName: "name"))
        var cacheStatus: String?

        @Option(help: "Tell the origin who asked, for which host and by which scheme.")
        var clientAddress = ClientAddress.none

        @Option(
            help: ArgumentHelp(
                "The scheme that the origin is told: https where TLS ends in front of this proxy. (default: the proxy's own)",
                valueName: "scheme"
            )
        )
        var clientScheme: String?

        @Option(
            help: ArgumentHelp(
                "Serve https with the certificate in this file (PEM, with those behind it); SIGHUP reads it anew.",
                valueName: "file"
            )
        )
        var tlsCert: String?

        @Option(help: ArgumentHelp("The key of the certificate (PEM).", valueName: "file"))
        var tlsKey: String?

        @Option(help: ArgumentHelp("How many client connections are served at a time.", valueName: "count"))
        var maxConnections = 10_000

        @Option(help: ArgumentHelp("How large the head of a request may be.", valueName: "size"))
        var headerLimit = ByteCount(65_536)

        @Option(
            help: ArgumentHelp(
                "How many lines the head of a request may have; of an answer as many, or 256 where that is more.",
                valueName: "count"
            )
        )
        var headerLines = 100

        @Option(help: ArgumentHelp("How long a client's connection may lie idle.", valueName: "time"))
        var clientIdle = TimeSpan(.seconds(75))

        @Option(help: ArgumentHelp("How long requests under way have to end after SIGTERM.", valueName: "time"))
        var drainTimeout = TimeSpan(.seconds(10))

        @Option(
            help: ArgumentHelp(
                "Serve metrics, health, purges and the inspector here: a port of 127.0.0.1, an address and a port, or unix:PATH.",
                valueName: "host:port"
            )
        )
        var admin: ListenAddress?

        @Option(
            help: ArgumentHelp("A file whose first line is the token that --admin asks for.", valueName: "file")
        )
        var adminToken: String?

        @Option(help: "Write a line for each request; failures are told on standard error in any case.")
        var log = Log.none

        @Option(
            help: ArgumentHelp(
                "Add the lines to this file rather than to standard output; SIGHUP opens it anew.",
                valueName: "file"
            )
        )
        var logFile: String?

        func run() async throws {
            try await run(on: .standard, until: Signals.ending(), reloading: Signals.hangUps())
        }

        /// For whom the cache stores.
        enum Mode: String, ExpressibleByArgument, CaseIterable {
            case `private`, shared
        }

        /// What is written for each request.
        enum Log: String, ExpressibleByArgument, CaseIterable {
            case none, access, decisions, json
        }

        /// Whose Host the origin sees.
        enum HostField: String, ExpressibleByArgument, CaseIterable {
            case origin, keep
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
            configuration.host = try listen.resolved(ProcessInfo.processInfo.environment)
            configuration.port = listen.port
            configuration.keepsHost = host == .keep
            if !forward { configuration.furtherOrigins = Array(try origins().dropFirst()) }
            configuration.clientScheme = clientScheme
            switch (tlsCert, tlsKey) {
            case (nil, nil): break
            case (let certificate?, let key?):
                configuration.certificate = ProxyCertificate(certificatePath: certificate, keyPath: key)
            default: throw CommandFailure.usage("--tls-cert and --tls-key go together")
            }
            configuration.admin = try adminConfiguration()
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
            guard (1...100_000).contains(headerLines) else {
                throw CommandFailure.usage("--header-lines is to lie between 1 and 100000")
            }
            configuration.limits.headLines = headerLines
            configuration.transport.headLines = max(configuration.transport.headLines, headerLines)
            configuration.transport.headBytes = max(configuration.transport.headBytes, headerLimit.bytes)
            if logFile != nil, log == .none {
                throw CommandFailure.usage("--log-file needs --log access, decisions or json")
            }
            configuration.limits.idleTimeout = clientIdle.limit ?? .seconds(86_400)
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

        private func adminConfiguration() throws -> AdminConfiguration? {
            guard let admin else {
                guard adminToken == nil else { throw CommandFailure.usage("--admin-token is for --admin") }
                return nil
            }
            var configuration = AdminConfiguration()
            configuration.host = admin.host
            configuration.port = admin.port
            if let adminToken {
                guard let text = try? String(contentsOfFile: adminToken, encoding: .utf8) else {
                    throw CommandFailure(
                        "--admin-token \(adminToken) cannot be read; check the path and its permissions"
                    )
                }
                configuration.token = String(text.prefix { !$0.isNewline })
            }
            return configuration
        }

        private func role() throws -> ProxyRole {
            if forward {
                guard origin.isEmpty else { throw CommandFailure.usage("--origin and --forward exclude each other") }
                var rules = ForwardRules()
                rules.isOpen = openForwardProxy
                rules.allowedHosts = allowHost
                rules.deniesPrivateAddresses = denyPrivate ? true : nil
                return .forward(rules)
            }
            guard let first = try origins().first else {
                throw CommandFailure.usage("say whom to ask: --origin URL, or --forward")
            }
            guard allowHost.isEmpty, !denyPrivate, !openForwardProxy else {
                throw CommandFailure.usage("--allow-host, --deny-private and --open-forward-proxy are for --forward")
            }
            return .reverse(first)
        }

        private func origins() throws(CommandFailure) -> [ProxyOrigin] {
            var origins: [ProxyOrigin] = []
            for text in origin {
                do throws(ProxyConfigurationError) {
                    origins.append(try ProxyOrigin(text))
                } catch {
                    throw .usage("--origin: \(error)")
                }
            }
            return origins
        }

        /// The rules of the cache.
        var cacheOptions: CacheOptions {
            var options: CacheOptions = mode == .shared ? .shared : .private
            options.cacheName = cacheStatus
            options.tagFields = ["Surrogate-Key", "Cache-Tag"]
            return options
        }

        /// The cache that the options ask for; nil where they leave it no room.
        ///
        /// - Throws: ``CommandFailure``: 64 for options that do not go together, 1 where a store cannot be opened.
        func makeCache() async throws -> HTTPCache? {
            var cacheOptions = self.cacheOptions
            if let rules { cacheOptions.rules = try CacheRules(ofOption: rules) }
            if let redis {
                guard disk == nil else { throw CommandFailure.usage("--disk and --redis exclude each other") }
                return try await redisCache(redis, options: cacheOptions)
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
                throw CommandFailure("--disk \(disk): \(CommandFailure(error))")
            }
        }

        private func redisCache(_ url: String, options cacheOptions: CacheOptions) async throws -> HTTPCache {
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
        /// them off. At each element of `hangUps` it opens its log anew.
        ///
        /// - Throws: ``CommandFailure``.
        func run(
            on console: Console,
            until endings: AsyncStream<Void>,
            reloading hangUps: AsyncStream<Void> = AsyncStream { $0.finish() }
        ) async throws {
            var configuration = try proxyConfiguration()
            let logging = try ProxyLog(log, file: logFile, on: console)
            let cache = try await makeCache()
            configuration.cache = cache
            if log != .none { configuration.onAnswer = { logging.note($0) } }
            configuration.onFailure = { logging.note($0) }
            do {
                try await serve(configuration, logging: logging, console: console, endings: endings, hangUps: hangUps)
            } catch {
                await cache?.close()
                throw error
            }
            await cache?.close()
            await logging.flush()
        }

        private func serve(
            _ configuration: ProxyConfiguration,
            logging: ProxyLog,
            console: Console,
            endings: AsyncStream<Void>,
            hangUps: AsyncStream<Void>
        ) async throws {
            let server: ProxyServer
            do {
                server = try await ProxyServer.start(configuration)
            } catch let error as ProxyConfigurationError {
                throw CommandFailure(error.description)
            } catch {
                var place = "\(listen)"
                if let error = error as? ProxyListenError, error.host != configuration.host || error.port != listen.port
                {
                    place = "\(ListenAddress(host: error.host, port: error.port))"
                }
                throw CommandFailure("cannot listen on \(place): \(ProxyCommand.reason(error))")
            }
            if let admin {
                let address = ListenAddress(host: admin.host, port: server.adminPort ?? admin.port)
                console.error("admin on \(address.link)\n")
                if configuration.cache == nil { console.error("there is no cache to inspect: --memory 0\n") }
            }
            let address = listen.isSocket ? listen : ListenAddress(host: listen.host, port: server.port)
            let link = tlsCert == nil ? address.link : address.link.replacing("http://", with: "https://")
            console.error("listening on \(link)\n")
            ServiceManager.tell("READY=1")
            let reloading = Task {
                for await _ in hangUps {
                    ServiceManager.tell("RELOADING=1")
                    logging.reopen()
                    do throws(ProxyConfigurationError) {
                        try server.reloadCertificate()
                    } catch {
                        console.error("holdfast: going on with the former certificate: \(error)\n")
                    }
                    ServiceManager.tell("READY=1")
                }
            }
            defer { reloading.cancel() }
            var iterator = endings.makeAsyncIterator()
            _ = await iterator.next()
            ServiceManager.tell("STOPPING=1")
            console.error("draining; once more to end at once\n")
            await ProxyCommand.drain(server, within: drainTimeout.duration, endings: endings)
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
                return "\((error as? ProxyListenError)?.cause ?? error)"
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
