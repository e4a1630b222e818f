// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    public import NIOSSL
    internal import NIOCore

    extension OriginTransport {
        /// Timeouts and limits of a transport; everything has a default.
        public struct Configuration: Sendable {
            /// How long a connection may take to come about, name resolution and TLS included; 5 s by default. It never goes beyond the
            /// attempt's deadline.
            public var connectTimeout: Duration = .seconds(5)
            /// How long a body may stand still, on its way up or down; 60 s by default.
            public var stallTimeout: Duration = .seconds(60)
            /// How long a connection is kept that nobody uses; 4 s by default, less than the 5 s of servers on Node.js.
            public var idleTimeout: Duration = .seconds(4)
            /// How many connections there may be to one origin; further requests wait in line. 256 by default.
            public var connectionsPerOrigin = 256
            /// How many connections there may be in all; 2048 by default.
            public var connections = 2048
            /// How many unused connections are kept to one origin; 64 by default.
            public var idleConnectionsPerOrigin = 64
            /// How many unused connections are kept in all; 256 by default.
            public var idleConnections = 256
            /// How many requests may wait for a connection; further ones fail with `.tooManyInFlight`. 16,384 by default.
            public var waitingRequests = 16_384
            /// The most bytes of a response's header; 256 KiB by default. A longer one is a `.protocolError`, and so are those below.
            public var headBytes = 256 << 10
            /// The most lines of a response's header; 256 by default.
            public var headLines = 256
            /// The most interim responses to one request; 32 by default.
            public var interimResponses = 32
            /// Whether a request is sent once more, over a connection of its own, when the used connection it went out on broke before any
            /// byte of an answer, and sending it twice does no harm (RFC 9112 §9.3.1): its method is idempotent, or nothing of it had
            /// left. True by default.
            public var resendsAfterStaleConnection = true
            /// How TLS is spoken; nil, the default: TLS 1.2 or later, the system's roots, host names verified.
            public var tls: TLSConfiguration?

            /// Throws where a connection that was made must not be used, by the IP address that a host led to; nil, the default: none
            /// is refused.
            var admission: (@Sendable (_ host: String, _ port: Int, _ address: String?) throws -> Void)?

            /// All defaults.
            public init() {}

            var poolLimits: PoolState.Limits {
                PoolState.Limits(
                    perOrigin: max(connectionsPerOrigin, 1),
                    total: max(connections, 1),
                    idlePerOrigin: max(idleConnectionsPerOrigin, 0),
                    idleTotal: max(idleConnections, 0),
                    idleTime: idleTimeout.timeAmount,
                    waiting: max(waitingRequests, 0)
                )
            }

            var rules: Exchange.Rules {
                Exchange.Rules(
                    headLimits: HeadLimits(bytes: headBytes, fieldLines: headLines),
                    interimLimit: max(interimResponses, 0),
                    stall: stallTimeout.timeAmount
                )
            }
        }

        /// How many connections a transport has and had.
        public struct ConnectionCounts: Sendable, Hashable {
            /// Those that stand, idle ones included.
            public internal(set) var open = 0
            /// Those that nobody uses at present.
            public internal(set) var idle = 0
            /// The requests in line for one.
            public internal(set) var waiting = 0
            /// How many were opened so far.
            public internal(set) var opened = 0
            /// How many exchanges went over a connection that had carried another one.
            public internal(set) var reused = 0
        }
    }

    extension Duration {
        /// The same time for NIO, cut to what its deadlines can bear.
        var timeAmount: TimeAmount {
            let century = Duration.seconds(100 * 365 * 86_400)
            let (seconds, attoseconds) = max(min(self, century), .zero).components
            return .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
        }
    }
#endif
