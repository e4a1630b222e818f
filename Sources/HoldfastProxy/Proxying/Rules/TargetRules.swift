// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics

    /// What a proxy makes of a request line: what is asked for, and of whom (RFC 9112 §3.2, RFC 9110 §7.4).
    struct TargetRules: Sendable {
        /// The origin of a reverse proxy, or the rules of a forward proxy.
        let role: ProxyRole
        /// Where the proxy itself listens.
        let ownHost: String
        let ownPort: BoundPort

        /// The head to send.
        ///
        /// - Throws: ``ProxyRefusal`` where the proxy has to answer itself.
        func head(_ method: RequestMethod, _ target: String) throws(ProxyRefusal) -> ExactRequestHead {
            guard method != .connect else {
                throw ProxyRefusal(.notImplemented, "this proxy opens no tunnels; https has to go past it")
            }
            let (origin, rest) = try split(method, target)
            // What stands behind it is no part of a request; a cache would key by what stands before, and the origin might not.
            guard !rest.utf8.contains(UInt8(ascii: "#")) else {
                throw ProxyRefusal(.badRequest, "the request target has a fragment; leave out '#' and what follows")
            }
            do throws(ServiceError) {
                return try ExactRequestHead(method: method, origin: origin, requestTarget: rest)
            } catch {
                throw ProxyRefusal(.badRequest, "the request target is no path with a query as RFC 3986 has it")
            }
        }

        /// Whether a path has segments `.` or `..`, their dots written as they may be (RFC 3986 §5.2.4, §6.2.2).
        ///
        /// Caches key by the path without them, and the target goes out as it came: an origin that takes them for names would
        /// leave its answer under another path's key, for all who ask that.
        static func hasDotSegments(_ target: String) -> Bool {
            guard target.utf8.contains(UInt8(ascii: ".")) || target.utf8.contains(UInt8(ascii: "%")) else {
                return false
            }
            return target.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: true).contains {
                segment in
                guard segment.utf8.count <= 6 else { return false }
                let plain = segment.lowercased().replacing("%2e", with: ".")
                return plain == "." || plain == ".."
            }
        }

        /// The origin, and the target as it is to be sent there.
        private func split(_ method: RequestMethod, _ target: String) throws(ProxyRefusal) -> (String, String) {
            let isOriginForm = target.utf8.first == UInt8(ascii: "/") || target == "*"
            switch role.kind {
            case .reverse(let origin):
                return (origin.description, isOriginForm ? target : try absolute(method, target).rest)
            case .forward(let rules):
                guard !isOriginForm else {
                    throw ProxyRefusal(
                        .badRequest,
                        "this is a forward proxy: ask it for absolute URLs, as in GET http://example.com/"
                    )
                }
                let (uri, rest) = try absolute(method, target)
                guard uri.scheme == "http" else {
                    throw ProxyRefusal(.notImplemented, "this forward proxy asks over plain http only")
                }
                let port = uri.port ?? 80
                guard !isOwn(uri.host, port) else {
                    throw ProxyRefusal(.loopDetected, "the target is this proxy itself")
                }
                try rules.check(host: uri.host, port: port)
                return (uri.origin, rest)
            }
        }

        /// Reads an absolute-form target: its origin, and what it is sent as (RFC 9112 §3.2.2, §3.2.4).
        private func absolute(
            _ method: RequestMethod,
            _ target: String
        ) throws(ProxyRefusal) -> (uri: TargetURI, rest: String) {
            let bytes = target.utf8
            guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
                bytes[bytes.index(after: colon)...].starts(with: "//".utf8)
            else { throw ProxyRefusal(.badRequest, "the request target is neither a path nor an absolute URL") }
            let start = bytes.index(colon, offsetBy: 3)
            let end =
                bytes[start...].firstIndex {
                    $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#")
                }
                ?? bytes.endIndex
            guard let uri = try? TargetURI(String(target[..<end]) + "/") else {
                throw ProxyRefusal(.badRequest, "the request target names no host of an http URL")
            }
            guard uri.userinfo == nil else {
                throw ProxyRefusal(.badRequest, "the request target holds a user name; send Authorization instead")
            }
            let rest = String(target[end...])
            if rest.isEmpty { return (uri, method == .options ? "*" : "/") }
            return (uri, rest.utf8.first == UInt8(ascii: "/") ? rest : "/" + rest)
        }

        /// Whether an authority is where the proxy itself listens, as far as the text says.
        private func isOwn(_ host: String, _ port: Int) -> Bool {
            guard port == ownPort.number else { return false }
            return TargetRules.isThisMachine(host) || host == ownHost || host == "[\(ownHost)]"
        }

        /// Whether a host is a name of this machine that it has everywhere.
        static func isThisMachine(_ host: String) -> Bool {
            ["localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]"].contains(host) || host.hasSuffix(".localhost")
                || host.hasPrefix("127.") && NetworkAddress.isPrivate(host: host)
        }
    }
#endif
