// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import HoldfastCommand

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
    }
#endif
