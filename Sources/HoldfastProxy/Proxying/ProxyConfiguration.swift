// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    public import Holdfast
    internal import HoldfastSemantics

    /// The listener, the role, the cache and the limits of a ``ProxyServer``.
    public struct ProxyConfiguration: Sendable {
        /// The servers that it is a proxy for.
        public var role: ProxyRole

        /// The address to listen on: an IP address or a name; `127.0.0.1` by default, so that only this machine can
        /// reach it. `unix:/path` is a socket in the file system, `fd:3` a descriptor on which the parent process is
        /// already listening.
        ///
        /// A forward proxy listens on another address only if its rules are ``ForwardRules/isOpen``.
        public var host = "127.0.0.1"

        /// The port to listen on; 8080 by default, 0 for a free one.
        public var port = 8080

        /// The cache; nil: none. By default a shared one in memory, of 64 MB.
        ///
        /// The caller has to close it, after the server.
        public var cache: HTTPCache?

        /// Makes the retrier of each call that fails; by default what a gateway may do: one retry, only of idempotent
        /// methods.
        public var retrierFactory: any RetrierFactory = .gateway

        /// The name in Via, a token; nil, the default: a reverse proxy adds no Via, and a forward proxy makes up a
        /// name.
        ///
        /// With a name, a request that has passed this proxy before gets a 508.
        public var viaName: String?

        /// Whether the origin gets the client's address, the requested host and the scheme; not by default.
        ///
        /// With this, or with ``keepsHost``, responses are stored under the host that the client requested, because the
        /// origin may respond differently for each.
        public var clientAddressFields = ClientAddressFields.none

        /// The scheme that the origin gets with ``clientAddressFields``: `https` if TLS ends in front of this proxy.
        /// nil, the default: the proxy's own.
        public var clientScheme: String?

        /// The certificate for serving clients over TLS; nil, the default: no TLS.
        public var certificate: ProxyCertificate?

        /// Whether a reverse proxy keeps the client's Host; false by default: it sends the origin's.
        ///
        /// An origin with one site does not need it and can then be requested under any name, while clients cannot fill
        /// the cache with one copy for each name they make up. Set it for an origin with several sites, or one that
        /// derives its own URLs from Host.
        public var keepsHost = false

        /// More servers with the same content as the origin of a reverse proxy: they take turns, and those that fail
        /// are left out for a while.
        public var furtherOrigins: [ProxyOrigin] = []

        /// The active check of a reverse proxy's origins, in addition to their responses to requests; nil, the default:
        /// no checks.
        public var check: OriginCheck?

        /// The listener for metrics, health, purges and the inspector; nil, the default: none.
        public var admin: AdminConfiguration?

        /// How long the origin may take to respond, retries and waits included; 60 s by default, nil: no limit by the
        /// proxy.
        ///
        /// While streamed content is being sent, this is how long the origin may do nothing. It does not apply to the
        /// body of the response, which has ``Limits/stallTimeout``.
        public var answerTimeout: Duration? = .seconds(60)

        /// Limits of connections and heads.
        public var limits = Limits()

        /// How connections to the origin are made. ``retrierFactory`` determines whether the transport or the retrier
        /// resends after a stale connection, so that nothing is sent more often than its rules allow.
        public var transport = OriginTransport.Configuration()

        /// Observers of calls; none by default.
        public var observers: [any EventObserver] = []

        /// Called for each response once it was delivered or has failed, also to requests that are refused unread; on an
        /// event loop, so it must neither wait nor block. Nil by default.
        public var onAnswer: (@Sendable (ProxyRecord) -> Void)?

        /// Called for failures: responses that the proxy makes itself, with the reason, refused requests and
        /// connections, failures of the store. Otherwise like ``onAnswer``.
        public var onFailure: (@Sendable (ProxyFailure) -> Void)?

        /// The clock for everything except connections.
        public var clock: any HoldfastClock = SystemClock()

        /// Creates the default configuration for a role.
        public init(_ role: ProxyRole) {
            self.role = role
            cache = .inMemory(capacity: 64_000_000, options: .shared)
        }

        /// Limits on what clients may use.
        public struct Limits: Sendable, Hashable {
            /// The most client connections at a time; 10,000 by default. Further ones get a 503.
            public var connections = 10_000
            /// The bytes of a request's head; 64 KiB by default. A larger one gets a 431, and a target of more than this, or of
            /// more than 64 KiB, a 414.
            public var headBytes = 64 << 10
            /// The field lines of a request's head; 100 by default. More get a 431.
            public var headLines = 100
            /// The time for a request's head from its first byte; 30 s by default. Then 408.
            public var headTimeout: Duration = .seconds(30)
            /// How long a connection may be idle between requests; 75 s by default.
            public var idleTimeout: Duration = .seconds(75)
            /// How long a client may neither send content nor read the response; 60 s by default.
            public var stallTimeout: Duration = .seconds(60)

            /// Creates the default limits.
            public init() {}
        }

        /// Rejects a configuration that cannot work or is not allowed, with one line for each error.
        ///
        /// - Throws: ``ProxyConfigurationError``.
        public func validate() throws(ProxyConfigurationError) {
            guard (0...65_535).contains(port) else {
                throw ProxyConfigurationError("the port \(port) is invalid; choose one from 1 to 65535, or 0 for any")
            }
            if let viaName, FieldName(viaName) == nil {
                throw ProxyConfigurationError("'\(viaName)' is not allowed in Via; use letters, digits and hyphens")
            }
            try admin?.validate()
            try check?.validate()
            if let clientScheme, !["http", "https"].contains(clientScheme) {
                throw ProxyConfigurationError("'\(clientScheme)' is not an HTTP scheme; use http or https")
            }
            switch role.kind {
            case .forward(let rules):
                guard furtherOrigins.isEmpty, !keepsHost, check == nil else {
                    throw ProxyConfigurationError("a forward proxy has no origin; its clients name the servers")
                }
                guard rules.isOpen || ProxyConfiguration.isLoopback(host) else {
                    throw ProxyConfigurationError(
                        "a forward proxy on \(host) would be open to other machines; allow that, or listen on 127.0.0.1"
                    )
                }
            case .reverse(let origin):
                for origin in [origin] + furtherOrigins where port != 0 && origin.port == port {
                    guard !TargetRules.isThisMachine(origin.host, listeningOn: host) else {
                        throw ProxyConfigurationError("the origin \(origin) is the proxy itself; give it another port")
                    }
                }
            }
        }

        /// The servers of a reverse proxy; nil for a forward proxy.
        var originGroup: OriginGroup? {
            guard case .reverse(let origin) = role.kind else { return nil }
            return OriginGroup([origin] + furtherOrigins, keepsHost: keepsHost)
        }

        /// The name in Via that is used.
        var via: ViaField? {
            if let viaName { return ViaField(name: viaName) }
            guard role.isForward else { return nil }
            var generator = SystemRandomNumberGenerator()
            return ViaField(name: ViaField.pseudonym(using: &generator))
        }

        /// Whether a listening address can only be reached from this machine.
        static func isLoopback(_ host: String) -> Bool {
            host.loweringASCII() == "localhost" || host.hasPrefix("unix:") || NetworkAddress(host)?.isLoopback == true
        }
    }

    /// What a proxy is for: one origin, or its clients.
    public struct ProxyRole: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case reverse(ProxyOrigin)
            case forward(ForwardRules)
        }

        let kind: Kind

        /// A proxy for one origin, which gets the path and the query of every target, whatever its host.
        public static func reverse(_ origin: ProxyOrigin) -> ProxyRole {
            ProxyRole(kind: .reverse(origin))
        }

        /// A proxy for its clients, which name the server with an absolute URL, over plain http.
        public static func forward(_ rules: ForwardRules = ForwardRules()) -> ProxyRole {
            ProxyRole(kind: .forward(rules))
        }

        /// Whether it is a forward proxy.
        var isForward: Bool {
            if case .forward = kind { true } else { false }
        }
    }

    /// The origin of a reverse proxy: scheme, host and port.
    public struct ProxyOrigin: Sendable, Hashable, CustomStringConvertible {
        /// The origin as a URI without a final slash, such as `http://127.0.0.1:3000`; a default port is left out.
        public let description: String
        /// The host; an IPv6 address in brackets.
        public let host: String
        /// The port.
        public let port: Int

        /// Reads an origin.
        ///
        /// - Parameter text: an absolute http or https URL without a path; the targets of requests are forwarded
        ///   unchanged.
        /// - Throws: ``ProxyConfigurationError`` with what is wrong.
        public init(_ text: String) throws(ProxyConfigurationError) {
            let uri: TargetURI
            do throws(TargetURI.Rejection) {
                uri = try TargetURI(text)
            } catch {
                throw ProxyConfigurationError("'\(text)' is not an origin: \(error.message)")
            }
            guard uri.userinfo == nil else {
                throw ProxyConfigurationError(
                    "an origin has no user name and password; remove everything before '@'"
                )
            }
            guard uri.path == "/", uri.query == nil, !text.contains("#") else {
                throw ProxyConfigurationError(
                    "'\(text)' has a path; an origin is scheme, host and port, as in \(uri.origin)"
                )
            }
            description = uri.origin
            host = uri.host
            port = uri.port ?? (uri.scheme == "https" ? 443 : 80)
        }
    }

    /// A configuration that cannot be used, with the reason in one line.
    public struct ProxyConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
        /// What is wrong and what to do about it.
        public let description: String

        init(_ description: String) {
            self.description = description
        }
    }
#endif
