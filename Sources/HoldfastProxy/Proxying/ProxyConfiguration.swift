// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    public import Holdfast
    internal import HoldfastSemantics

    /// How a ``ProxyServer`` listens, whom it asks, what it keeps, and where its limits are.
    public struct ProxyConfiguration: Sendable {
        /// In front of whom it stands.
        public var role: ProxyRole

        /// The address to listen on: an IP address or a name; `127.0.0.1` by default, so that this machine alone reaches it.
        /// `unix:/path` is a socket in the file system, `fd:3` a descriptor on which whoever started the process listens already.
        ///
        /// A forward proxy listens on another address only where its rules say that it ``ForwardRules/isOpen``.
        public var host = "127.0.0.1"

        /// The port to listen on; 8080 by default, 0: one that the system picks.
        public var port = 8080

        /// The cache; nil: none. By default one in memory of 64 MB for many users.
        ///
        /// It is the caller's to close, after the server.
        public var cache: HTTPCache?

        /// Makes the retrier of each call that fails; by default what a gateway may do: one retry, of idempotent methods alone.
        public var retrierFactory: any RetrierFactory = .gateway

        /// The name in Via, a token; nil, the default: a reverse proxy adds no Via, and a forward proxy makes a name up.
        ///
        /// With a name, a request that has passed this proxy before is answered 508.
        public var viaName: String?

        /// Whether the origin is told who asked, for which host and by which scheme; it is not by default.
        ///
        /// Where it is, and where ``keepsHost`` is set, responses are stored under the host that the client named, since the origin may
        /// make another answer for each.
        public var clientAddressFields = ClientAddressFields.none

        /// The scheme that the origin is told with ``clientAddressFields``: `https` where TLS ends in front of this proxy. nil, the default:
        /// the one that the proxy speaks itself.
        public var clientScheme: String?

        /// The certificate with which clients are served over TLS; nil, the default: they are served without.
        public var certificate: ProxyCertificate?

        /// Whether a reverse proxy leaves Host as the client sent it; false by default: it is the origin's.
        ///
        /// An origin of one site does not care, and can then be asked under any name, while clients cannot fill the cache with one copy
        /// for each name that they think of. Set it for an origin of several sites, or one that writes its own URLs by Host.
        public var keepsHost = false

        /// Further servers that answer as the origin of a reverse proxy does: they take turns, and who fails is left out for a while.
        public var furtherOrigins: [ProxyOrigin] = []

        /// Where the operator asks for metrics, health, purges and the inspector; nil, the default: nowhere.
        public var admin: AdminConfiguration?

        /// The time the origin may take to answer, retries and waits included; 60 s by default, nil: no limit of the proxy's own.
        ///
        /// While content is sent that came in as a stream it is the time in which the origin may do nothing. It does not hold for
        /// the body of the answer, which has ``Limits/stallTimeout``.
        public var answerTimeout: Duration? = .seconds(60)

        /// Limits of connections and heads.
        public var limits = Limits()

        /// How the origin is connected to. Whether a stale connection is made good by the transport or by the retrier follows from
        /// ``retrierFactory``, so that nothing is sent more often than its rules say.
        public var transport = OriginTransport.Configuration()

        /// Who is told what happens to calls; nobody by default.
        public var observers: [any EventObserver] = []

        /// Is told of each answer once it has been handed over or has broken off; on an event loop, so it must neither wait nor block.
        /// Nil by default.
        public var onAnswer: (@Sendable (ProxyRecord) -> Void)?

        /// Is told of what goes wrong: what the proxy answers itself and why, requests and connections that are refused, failures of
        /// the store. As ``onAnswer`` otherwise.
        public var onFailure: (@Sendable (ProxyFailure) -> Void)?

        /// The time that everything but connections goes by.
        public var clock: any HoldfastClock = SystemClock()

        /// The defaults, in front of someone.
        public init(_ role: ProxyRole) {
            self.role = role
            cache = .inMemory(capacity: 64_000_000, options: .shared)
        }

        /// Limits to what clients may cost.
        public struct Limits: Sendable, Hashable {
            /// How many client connections are served at a time; 10,000 by default. Further ones get a 503.
            public var connections = 10_000
            /// The bytes of a request's head; 64 KiB by default. A larger one gets a 431.
            public var headBytes = 64 << 10
            /// The field lines of a request's head; 100 by default. More get a 431.
            public var headLines = 100
            /// The time for a request's head from its first byte; 30 s by default. Then 408.
            public var headTimeout: Duration = .seconds(30)
            /// How long a connection may lie idle between requests; 75 s by default.
            public var idleTimeout: Duration = .seconds(75)
            /// How long a client may neither send content nor take the answer; 60 s by default.
            public var stallTimeout: Duration = .seconds(60)

            /// The defaults.
            public init() {}
        }

        /// Refuses what cannot work or must not be, each in one line.
        ///
        /// - Throws: ``ProxyConfigurationError``.
        public func validate() throws(ProxyConfigurationError) {
            guard (0...65_535).contains(port) else {
                throw ProxyConfigurationError("the port \(port) is none; choose one from 1 to 65535, or 0 for any")
            }
            if let viaName, !ProxyConfiguration.isToken(viaName) {
                throw ProxyConfigurationError("'\(viaName)' cannot stand in Via; choose letters, digits and hyphens")
            }
            try admin?.validate()
            if let clientScheme, !["http", "https"].contains(clientScheme) {
                throw ProxyConfigurationError("'\(clientScheme)' is no scheme of HTTP; it is http or https")
            }
            switch role.kind {
            case .forward(let rules):
                guard furtherOrigins.isEmpty, !keepsHost else {
                    throw ProxyConfigurationError("a forward proxy asks whom its clients name, and has no origin")
                }
                guard rules.isOpen || ProxyConfiguration.isLoopback(host) else {
                    throw ProxyConfigurationError(
                        "a forward proxy on \(host) would be open to other machines; say so, or listen on 127.0.0.1"
                    )
                }
            case .reverse(let origin):
                let isSamePort = port != 0 && origin.port == port
                let own = host.contains(":") ? "[\(host)]" : host
                guard !(isSamePort && (TargetRules.isThisMachine(origin.host) || origin.host == own)) else {
                    throw ProxyConfigurationError("the origin \(origin) is the proxy itself; give it another port")
                }
            }
        }

        /// The servers of a reverse proxy; nil for a forward proxy.
        var originGroup: OriginGroup? {
            guard case .reverse(let origin) = role.kind else { return nil }
            return OriginGroup([origin] + furtherOrigins, keepsHost: keepsHost)
        }

        /// The name in Via that is in force.
        var via: ViaField? {
            if let viaName { return ViaField(name: viaName) }
            guard role.isForward else { return nil }
            var generator = SystemRandomNumberGenerator()
            return ViaField(name: ViaField.pseudonym(using: &generator))
        }

        /// Whether an address to listen on is reached from this machine alone.
        static func isLoopback(_ host: String) -> Bool {
            if host.loweringASCII() == "localhost" || host.hasPrefix("unix:") { return true }
            guard let bytes = NetworkAddress(host)?.bytes else { return false }
            return bytes.count == 4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1]
        }

        private static func isToken(_ text: String) -> Bool {
            FieldName(text) != nil
        }
    }

    /// In front of whom a proxy stands.
    public struct ProxyRole: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case reverse(ProxyOrigin)
            case forward(ForwardRules)
        }

        let kind: Kind

        /// In front of one origin: it is asked for the path and the query of every target, whatever host that names.
        public static func reverse(_ origin: ProxyOrigin) -> ProxyRole {
            ProxyRole(kind: .reverse(origin))
        }

        /// In front of its clients: each names the origin by an absolute URL, over plain http.
        public static func forward(_ rules: ForwardRules = ForwardRules()) -> ProxyRole {
            ProxyRole(kind: .forward(rules))
        }

        /// Whether it is a forward proxy.
        var isForward: Bool {
            if case .forward = kind { true } else { false }
        }
    }

    /// The origin that a reverse proxy stands in front of: scheme, host and port.
    public struct ProxyOrigin: Sendable, Hashable, CustomStringConvertible {
        /// The origin as a URI without a slash behind it, such as `http://127.0.0.1:3000`; a default port is left out.
        public let description: String
        /// The host, an IPv6 address in its brackets.
        public let host: String
        /// The port.
        public let port: Int

        /// Reads an origin.
        ///
        /// - Parameter text: an absolute http or https URL without a path: the targets of requests are passed on as they are.
        /// - Throws: ``ProxyConfigurationError`` that says what is wrong with it.
        public init(_ text: String) throws(ProxyConfigurationError) {
            let uri: TargetURI
            do throws(TargetURI.Rejection) {
                uri = try TargetURI(text)
            } catch {
                throw ProxyConfigurationError("'\(text)' is no origin: \(error.message)")
            }
            guard uri.userinfo == nil else {
                throw ProxyConfigurationError(
                    "an origin bears no user name and no password; leave what stands before '@' out"
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

    /// A configuration that cannot be used: what is wrong, in one line.
    public struct ProxyConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
        /// What is wrong and what to do about it.
        public let description: String

        init(_ description: String) {
            self.description = description
        }
    }
#endif
