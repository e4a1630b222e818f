// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Dispatch
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
            abstract: "A proxy with a cache and retries, for one server or for the programs of this machine.",
            usage: """
                holdfast proxy --origin URL [options]
                holdfast proxy --forward [options]
                """,
            discussion: """
                With --origin it is a reverse proxy that sends all requests to that server. With --forward it is a forward proxy for plain \
                http: programs set it in HTTP_PROXY, and it sends their requests to any server. Responses are cached by RFC 9111. It writes one \
                line to standard error when it listens, and reports failures there. SIGHUP reopens the log and reloads rules and certificate. After SIGTERM or Control-C the \
                current requests may finish; a second signal ends them.

                Sizes are written as 64MB or 1GiB, times as 250ms, 10s or 5m; a time of 0 means no limit, \
                except for --drain-timeout, where it ends them at once.

                Exit status: 0 after SIGTERM or Control-C; 1 if the address is in use or the directory cannot be used; 64 a wrong \
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
                "The URL of the server, without a path; give it several times for servers that take turns.",
                valueName: "url"
            )
        )
        var origin: [String] = []

        @Option(help: "The Host that the origin gets: its own, or the one that the client sent (keep).")
        var host = HostField.origin

        @Option(
            help: ArgumentHelp(
                "Check each origin regularly with this path; do not use those that fail. 200 to 399 is a success.",
                valueName: "path"
            )
        )
        var check: String?

        @Option(help: ArgumentHelp("The time between two checks of an origin, 1s to 1h.", valueName: "time"))
        var checkInterval = TimeSpan(.seconds(5))

        @Flag(help: "Run as a forward proxy for plain http.")
        var forward = false

        @Option(
            help: ArgumentHelp(
                "Forward only to this host (may be repeated): a name, .example.com for all its subdomains, or an address; add :port for one port.",
                valueName: "host"
            )
        )
        var allowHost: [String] = []

        @Flag(help: "Do not forward to loopback, private or link-local addresses; always so with --open-forward-proxy.")
        var denyPrivate = false

        @Flag(
            help:
                "Allow a forward proxy to listen where other machines can reach it; they can then send requests in your name."
        )
        var openForwardProxy = false

        @Option(help: "Whether the cache is for one user or shared by many.")
        var mode = CacheKind.shared

        @Option(help: ArgumentHelp("Memory for stored responses; 0 for none.", valueName: "size"))
        var memory = ByteCount(64_000_000)

        @Option(
            help: ArgumentHelp(
                "Also keep responses in this directory, so that they survive restarts.",
                valueName: "dir"
            )
        )
        var disk: String?

        @Option(help: ArgumentHelp("The most bytes that the directory may hold. (default: 1GB)", valueName: "size"))
        var diskSize: ByteCount?

        @Option(
            help: ArgumentHelp(
                "Also keep responses in this Redis or Valkey server, for a fleet of proxies.",
                valueName: "url"
            )
        )
        var redis: String?

        @Option(
            help: ArgumentHelp(
                "Lifetimes, keys and what is never stored, by host, path and content type, from this JSON file. SIGHUP reloads it.",
                valueName: "file"
            )
        )
        var rules: String?

        @Option(help: "How failed requests are retried.")
        var retry = Retry.gateway

        @Option(help: ArgumentHelp("How long the origin may take to respond, retries included.", valueName: "time"))
        var timeout = TimeSpan(.seconds(60))

        @Option(help: ArgumentHelp("The name of this proxy in Via, which is used to detect loops.", valueName: "name"))
        var via: String?

        @Option(help: ArgumentHelp("Report what the cache did in Cache-Status, under this name.", valueName: "name"))
        var cacheStatus: String?

        @Option(help: "Send the client's address, the host and the scheme to the origin in this field.")
        var clientAddress = ClientAddress.none

        @Option(
            help: ArgumentHelp(
                "The scheme that the origin gets: https if TLS ends in front of this proxy. (default: the proxy's own)",
                valueName: "scheme"
            )
        )
        var clientScheme: String?

        @Option(
            help: ArgumentHelp(
                "Serve https, including HTTP/2, with the certificate chain in this file (PEM). SIGHUP reloads it.",
                valueName: "file"
            )
        )
        var tlsCert: String?

        @Option(help: ArgumentHelp("The private key of the certificate (PEM).", valueName: "file"))
        var tlsKey: String?

        @Option(help: ArgumentHelp("The most client connections at a time.", valueName: "count"))
        var maxConnections = 10_000

        @Option(help: ArgumentHelp("The largest allowed head of a request.", valueName: "size"))
        var headerLimit = ByteCount(65_536)

        @Option(
            help: ArgumentHelp(
                "The most lines in the head of a request; for responses the same, but at least 256.",
                valueName: "count"
            )
        )
        var headerLines = 100

        @Option(help: ArgumentHelp("How long a client's connection may be idle.", valueName: "time"))
        var clientIdle = TimeSpan(.seconds(75))

        @Option(help: ArgumentHelp("How long current requests may take to finish after SIGTERM.", valueName: "time"))
        var drainTimeout = TimeSpan(.seconds(10))

        @Option(
            help: ArgumentHelp(
                "Serve metrics, health, purges and the inspector here: a port of 127.0.0.1, an address and a port, or unix:PATH.",
                valueName: "host:port"
            )
        )
        var admin: ListenAddress?

        @Option(
            help: ArgumentHelp(
                "A file whose first line is the token that --admin requires: at least 16 characters, without blanks.",
                valueName: "file"
            )
        )
        var adminToken: String?

        @Option(help: "Log a line for each request; failures are always reported on standard error.")
        var log = Log.none

        @Option(
            help: ArgumentHelp(
                "Append the log to this file instead of standard output; SIGHUP reopens it.",
                valueName: "file"
            )
        )
        var logFile: String?

        func run() async throws {
            try await OpenFiles.prepare(forStore: storeFiles)
            try await run(
                on: .standard,
                until: Signals.ending(),
                reloading: Signals.hangUps(),
                output: .standardOutput
            )
        }

        /// What is logged for each request.
        enum Log: String, ExpressibleByArgument, CaseIterable {
            case none, access, decisions, json
        }

        /// Which Host the origin gets.
        enum HostField: String, ExpressibleByArgument, CaseIterable {
            case origin, keep
        }

        /// What the origin is told about the client.
        enum ClientAddress: String, ExpressibleByArgument, CaseIterable {
            case none, xForwardedFor = "x-forwarded-for", forwarded
        }

        /// The library's retry presets.
        enum Retry: String, ExpressibleByArgument, CaseIterable {
            case gateway, `default`, strict, patient, interactive, none

            /// A factory with its own budgets.
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

        /// How many files the store will hold open.
        private var storeFiles: Int { disk == nil ? 0 : DiskStore.openFiles(capacity: diskCapacity) }

        private var diskCapacity: Int { diskSize?.bytes ?? 1_000_000_000 }

        /// The number of client connections to serve in a process that may open this many files, of which the store has `store`.
        ///
        /// The rest is for tunnels, bodies on the disk, refused connections, the logs and connections to the origin. A process without
        /// descriptors cannot reach the origin, and libdispatch on Linux ends it.
        static func connections(_ wanted: Int, openFiles: Int, store: Int) -> Int {
            guard openFiles > 0 else { return wanted }
            let left = max(1, openFiles - store)
            // Each may take a second one: the other end of its tunnel, or a body that is read from the disk or written to it.
            return min(wanted, max(1, (left - min(128, left / 2) - min(256, left / 4)) / 2))
        }

        /// The options in the form that the proxy takes, except for the cache.
        ///
        /// - Throws: ``CommandFailure`` with status 64.
        func proxyConfiguration() throws -> ProxyConfiguration {
            var configuration = ProxyConfiguration(try role())
            configuration.host = try listen.resolved(ProcessInfo.processInfo.environment)
            configuration.port = listen.port
            configuration.keepsHost = host == .keep
            if !forward { configuration.furtherOrigins = Array(try origins().dropFirst()) }
            if let check {
                guard !forward else { throw CommandFailure.usage("--check needs --origin") }
                configuration.check = OriginCheck(path: check)
                configuration.check?.interval = checkInterval.duration
            }
            configuration.clientScheme = clientScheme
            switch (tlsCert, tlsKey) {
            case (nil, nil): break
            case (let certificate?, let key?):
                configuration.certificate = ProxyCertificate(certificatePath: certificate, keyPath: key)
            default: throw CommandFailure.usage("--tls-cert and --tls-key must be used together")
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
            guard maxConnections > 0 else { throw CommandFailure.usage("--max-connections must be at least 1") }
            configuration.limits.connections = ProxyCommand.connections(
                maxConnections,
                openFiles: Int(sysconf(Int32(_SC_OPEN_MAX))),
                store: storeFiles
            )
            guard (1_024...16_777_216).contains(headerLimit.bytes) else {
                throw CommandFailure.usage("--header-limit must be between 1KiB and 16MiB")
            }
            configuration.limits.headBytes = headerLimit.bytes
            guard (1...100_000).contains(headerLines) else {
                throw CommandFailure.usage("--header-lines must be between 1 and 100000")
            }
            configuration.limits.headLines = headerLines
            configuration.transport.headLines = max(configuration.transport.headLines, headerLines)
            configuration.transport.headBytes = max(configuration.transport.headBytes, headerLimit.bytes)
            if diskSize != nil, disk == nil { throw CommandFailure.usage("--disk-size needs --disk") }
            if logFile != nil, log == .none {
                throw CommandFailure.usage("--log-file needs --log access, decisions or json")
            }
            configuration.limits.idleTimeout = clientIdle.limit ?? .seconds(86_400)
            if let cacheStatus, FieldName(cacheStatus) == nil {
                throw CommandFailure.usage(
                    "--cache-status '\(cacheStatus)' is not a token; use letters, digits and hyphens"
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
                guard adminToken == nil else { throw CommandFailure.usage("--admin-token needs --admin") }
                return nil
            }
            var configuration = AdminConfiguration()
            configuration.host = admin.host
            configuration.port = admin.port
            if let adminToken {
                guard let text = try? String(contentsOfFile: adminToken, encoding: .utf8) else {
                    throw CommandFailure(
                        "cannot read --admin-token \(adminToken); check the path and its permissions"
                    )
                }
                configuration.token = String(text.prefix { !$0.isNewline })
            }
            return configuration
        }

        private func role() throws -> ProxyRole {
            if forward {
                guard origin.isEmpty else {
                    throw CommandFailure.usage("--origin and --forward cannot be used together")
                }
                if let wrong = allowHost.first(where: { !ForwardRules.isPattern($0) }) {
                    throw CommandFailure.usage(
                        "--allow-host: \"\(wrong)\" is not a host; give a name, .example.com for all subdomains, or an IP address, "
                            + "each with :PORT for one port only"
                    )
                }
                var rules = ForwardRules()
                rules.isOpen = openForwardProxy
                rules.allowedHosts = allowHost
                rules.deniesPrivateAddresses = denyPrivate ? true : nil
                return .forward(rules)
            }
            guard let first = try origins().first else {
                throw CommandFailure.usage("use --origin URL or --forward")
            }
            guard allowHost.isEmpty, !denyPrivate, !openForwardProxy else {
                throw CommandFailure.usage("--allow-host, --deny-private and --open-forward-proxy need --forward")
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

        /// The options of the cache.
        var cacheOptions: CacheOptions {
            var options: CacheOptions = mode == .shared ? .shared : .private
            options.cacheName = cacheStatus
            options.tagFields = ["Surrogate-Key", "Cache-Tag"]
            return options
        }

        /// The cache that the options specify; nil if they leave no room for one.
        ///
        /// - Throws: ``CommandFailure``: 64 for options that cannot be combined, 1 if a store cannot be opened.
        func makeCache() async throws -> HTTPCache? {
            var cacheOptions = self.cacheOptions
            if let rules { cacheOptions.rules = try CacheRules(ofOption: rules) }
            if let redis {
                guard disk == nil else { throw CommandFailure.usage("--disk and --redis cannot be used together") }
                return try await redisCache(redis, options: cacheOptions)
            }
            guard let disk else {
                return memory.bytes > 0 ? .inMemory(capacity: memory.bytes, options: cacheOptions) : nil
            }
            let directory = URL(fileURLWithPath: disk, isDirectory: true)
            do {
                guard memory.bytes > 0 else {
                    return try await .onDisk(at: directory, capacity: diskCapacity, options: cacheOptions)
                }
                return try await .tiered(
                    at: directory,
                    memory: memory.bytes,
                    capacity: diskCapacity,
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
                    "--redis needs a build with the trait Redis: swift run --traits Tool,Redis holdfast proxy …"
                )
            #endif
        }

        /// Serves until `endings` has an element, then finishes the active requests and closes the cache; a second
        /// element cancels them. Each element of `hangUps` reopens the log and reloads rules and certificate.
        ///
        /// - Parameter output: where the log is written without `--log-file`; nil: the console.
        /// - Throws: ``CommandFailure``.
        func run(
            on console: Console,
            until endings: AsyncStream<Void>,
            reloading hangUps: AsyncStream<Void> = AsyncStream { $0.finish() },
            output: LogFile? = nil
        ) async throws {
            var configuration = try proxyConfiguration()
            let logging = try ProxyLog(log, file: logFile, output: output, on: console)
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
                if configuration.cache == nil { console.error("there is no cache to inspect, because of --memory 0\n") }
            }
            noteAdmin(configuration.admin, port: server.adminPort, console: console)
            defer { if let disk { AdminNote.remove(in: URL(fileURLWithPath: disk, isDirectory: true)) } }
            let address = listen.isSocket ? listen : ListenAddress(host: listen.host, port: server.port)
            let link = tlsCert == nil ? address.link : address.link.replacing("http://", with: "https://")
            console.error("listening on \(link)\n")
            ServiceManager.tell("READY=1")
            let reloading = Task {
                for await _ in hangUps {
                    ServiceManager.tell("RELOADING=1")
                    await reload(server, logging: logging, console: console)
                    ServiceManager.tell("READY=1")
                }
            }
            defer { reloading.cancel() }
            var iterator = endings.makeAsyncIterator()
            _ = await iterator.next()
            ServiceManager.tell("STOPPING=1")
            console.error("draining; send the signal again to end at once\n")
            await ProxyCommand.drain(server, within: drainTimeout.duration, endings: endings)
        }

        /// Writes to the cache's directory where `holdfast cache purge` can send purges; removes the note of another
        /// process.
        private func noteAdmin(_ admin: AdminConfiguration?, port: Int?, console: Console) {
            guard let disk else { return }
            let directory = URL(fileURLWithPath: disk, isDirectory: true)
            guard let admin else { return AdminNote.remove(in: directory) }
            // On this machine, an address for all interfaces is reachable as the loopback address.
            var host = ["0.0.0.0": "127.0.0.1", "::": "::1"][admin.host] ?? admin.host
            if host.hasPrefix("unix:") {
                host = "unix:" + URL(fileURLWithPath: String(host.dropFirst(5))).standardizedFileURL.path
            }
            let note = AdminNote(
                process: ProcessInfo.processInfo.processIdentifier,
                address: ListenAddress(host: host, port: port ?? admin.port).link,
                instance: admin.instance,
                tokenFile: adminToken.map { URL(fileURLWithPath: $0).standardizedFileURL.path }
            )
            do {
                try note.write(in: directory)
            } catch {
                AdminNote.remove(in: directory)
                console.error("holdfast: `holdfast cache purge` cannot find this proxy: \(SystemText.of(error))\n")
            }
        }

        /// Reopens the log, and reloads the certificate and the rules. Errors are reported, and the previous ones stay
        /// in use.
        private func reload(_ server: ProxyServer, logging: ProxyLog, console: Console) async {
            logging.reopen()
            do throws(ProxyConfigurationError) {
                try server.reloadCertificate()
            } catch {
                console.error("holdfast: continuing with the old certificate: \(error)\n")
            }
            guard let path = rules else { return }
            let new: CacheRules
            do throws(CommandFailure) {
                new = try CacheRules(ofOption: path)
            } catch {
                console.error("holdfast: continuing with the old rules: \(error)\n")
                return
            }
            do throws(StoreError) {
                let removed = try await server.replaceRules(with: new)
                let note = removed.map {
                    "; the keys of some routes changed, so \($0) of their responses were removed"
                }
                console.error("the rules in \(path) are in force\(note ?? "")\n")
            } catch {
                console.error(
                    "holdfast: the rules in \(path) are in force, but stored responses of routes whose keys changed could not "
                        + "be removed, so these routes are not cached until the next SIGHUP: \(CommandFailure(error))\n"
                )
            }
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

        /// Why a server could not listen, in a few words.
        private static func reason(_ error: any Error) -> String {
            guard let code = ProxyServer.systemErrorNumber(error) else {
                return "\((error as? ProxyListenError)?.cause ?? error)"
            }
            return switch code {
            case EADDRINUSE: "the port is in use; choose another one"
            case EACCES: "this user may not listen there; choose a port above 1023"
            case EADDRNOTAVAIL: "the address does not belong to this machine"
            case EEXIST: "it exists and is no socket; remove it, or choose another path"
            default: String(cString: strerror(code))
            }
        }
    }

    extension TimeSpan {
        /// The time as a limit; nil for 0.
        fileprivate var limit: Duration? { duration > .zero ? duration : nil }
    }

    /// The number of files that the process may open: sockets, pipes and files.
    enum OpenFiles {
        /// The least number with which a proxy starts that has no store on disk.
        static let least = 128

        #if canImport(Glibc)
            private static let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            private static let files = RLIMIT_NOFILE
        #endif

        /// Raises the limit of this process to the highest that it may set, as servers do, and opens what must be there.
        ///
        /// - Parameter store: how many files the proxy's store will hold open.
        /// - Throws: ``CommandFailure`` if that is too low for a proxy.
        static func prepare(forStore store: Int) async throws(CommandFailure) {
            // Dispatch opens a descriptor for each kind of timer when it is first used, and ends the process if it cannot.
            await withCheckedContinuation { continuation in
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) {
                    DispatchQueue.global().asyncAfter(wallDeadline: .now() + .milliseconds(1)) { continuation.resume() }
                }
            }
            try? await Task.sleep(for: .milliseconds(1), clock: .continuous)
            try? await Task.sleep(for: .milliseconds(1), clock: .suspending)
            let limit = raiseLimit()
            guard limit >= least + store else {
                throw CommandFailure(
                    "this process may open only \(limit) files, and a proxy needs at least \(least + store)"
                        + (store > 0 ? ", \(store) of them for --disk; " : "; ")
                        + "raise the limit (ulimit -n, or LimitNOFILE= in a systemd unit)"
                )
            }
        }

        /// Raises the soft limit to the hard one; returns the limit that now applies.
        private static func raiseLimit() -> Int {
            var limit = rlimit()
            guard getrlimit(files, &limit) == 0 else { return .max }
            // Some systems allow no more than this, whatever their hard limit says.
            for wanted in [limit.rlim_max, min(limit.rlim_max, 10_240)] where wanted > limit.rlim_cur {
                var raised = limit
                raised.rlim_cur = wanted
                if setrlimit(files, &raised) == 0 { return Int(clamping: wanted) }
            }
            return Int(clamping: limit.rlim_cur)
        }
    }
#endif
