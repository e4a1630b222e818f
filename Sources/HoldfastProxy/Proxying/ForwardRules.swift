// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics

    /// Whom a forward proxy sends to, and whom it serves.
    public struct ForwardRules: Sendable, Hashable {
        /// Whether it may listen on an address that other machines reach; false by default.
        ///
        /// Whoever reaches an open proxy sends in its name: to what stands behind the same firewall, and to the world.
        public var isOpen = false

        /// The hosts that may be asked for: names, `.example.com` for all beneath a name, IP addresses, each with `:port` where one port
        /// is meant; none, the default, means all.
        public var allowedHosts: [String] = []

        /// Whether loopback, private and link-local addresses are refused that ``allowedHosts`` does not name; nil, the default, means
        /// where the proxy ``isOpen``.
        ///
        /// Judged by the host of the target, and again by the address of the connection that was made, so that a name which leads
        /// there does not help.
        public var deniesPrivateAddresses: Bool?

        /// All hosts, for this machine alone.
        public init() {}

        var deniesPrivate: Bool { deniesPrivateAddresses ?? isOpen }

        /// Whether a host is named by the list.
        func names(host: String, port: Int) -> Bool {
            let host = ForwardRules.bare(host.loweringASCII())
            return allowedHosts.contains { pattern in
                var (name, named) = ForwardRules.parts(pattern.loweringASCII())
                guard named == nil || named == port else { return false }
                if name.hasPrefix("*.") { name.removeFirst() }
                if name.hasPrefix(".") { return host.hasSuffix(name) && host.utf8.count > name.utf8.count }
                return host == name
            }
        }

        /// Refuses a host that is not to be asked.
        func check(host: String, port: Int) throws(ProxyRefusal) {
            if !allowedHosts.isEmpty {
                guard names(host: host, port: port) else {
                    throw ProxyRefusal(
                        .forbidden,
                        "this proxy may not ask that host; its list of allowed hosts lacks it"
                    )
                }
                return
            }
            if deniesPrivate, NetworkAddress.isPrivate(host: host) {
                throw ForwardRules.privateAddress
            }
        }

        /// Refuses a connection that was made to an address which must not be asked.
        ///
        /// - Parameter address: an IP address as text; nil where it has none.
        /// - Throws: ``ServiceError`` whose cause is the refusal, and which no retrier repeats.
        func admit(_ host: String, _ port: Int, _ address: String?) throws(ServiceError) {
            if !deniesPrivate || names(host: host, port: port) { return }
            if let address = address.flatMap({ NetworkAddress($0) }), !address.isPrivate { return }
            throw ServiceError(
                .unsupported,
                "The host leads to an address that must not be asked; name it among the allowed ones if it may.",
                cause: ForwardRules.privateAddress,
                progress: .notSent
            )
        }

        private static let privateAddress = ProxyRefusal(
            .forbidden,
            "this proxy asks no loopback, private or link-local address"
        )

        /// A pattern's host and port.
        private static func parts(_ pattern: String) -> (host: String, port: Int?) {
            if pattern.hasPrefix("["), let end = pattern.lastIndex(of: "]") {
                let rest = pattern[pattern.index(after: end)...]
                return (bare(String(pattern[...end])), rest.hasPrefix(":") ? Int(rest.dropFirst()) : nil)
            }
            let pieces = pattern.split(separator: ":", omittingEmptySubsequences: false)
            guard pieces.count == 2, let port = Int(pieces[1]) else { return (pattern, nil) }
            return (String(pieces[0]), port)
        }

        private static func bare(_ host: String) -> String {
            host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        }
    }
#endif
