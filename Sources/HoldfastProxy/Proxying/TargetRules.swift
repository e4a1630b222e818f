// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics

    #if canImport(Darwin)
        private import Darwin
    #elseif canImport(Glibc)
        private import Glibc
    #elseif canImport(Musl)
        private import Musl
    #endif

    /// How a proxy interprets a request line: the target, and the server to send it to (RFC 9112 §3.2, RFC 9110 §7.4).
    struct TargetRules: Sendable {
        /// The origin of a reverse proxy, or the rules of a forward proxy.
        let role: ProxyRole
        /// Where the proxy itself listens.
        let ownHost: String
        let ownPort: BoundPort
        /// Whether a reverse proxy sends, and stores, for the host that the client requested.
        var asksByHost = false

        /// The head to send.
        ///
        /// - Parameter host: the client's Host field.
        /// - Throws: ``ProxyRefusal`` if the proxy has to respond itself.
        func head(
            _ method: RequestMethod,
            target: String,
            host: String? = nil
        ) throws(ProxyRefusal) -> ExactRequestHead {
            guard method != "PURGE" else {
                throw ProxyRefusal(.forbidden, text: "only the operator may purge, at the admin listener (--admin)")
            }
            guard method != .connect else {
                throw ProxyRefusal(
                    .notImplemented,
                    text:
                        "this proxy only opens tunnels to allowed hosts (--allow-host); send https requests without it"
                )
            }
            let (origin, rest) = try split(method, target: target, host: host)
            // A fragment is not part of a request; a cache would use the text before it for the key, but the origin might not.
            guard !rest.utf8.contains(UInt8(ascii: "#")) else {
                throw ProxyRefusal(
                    .badRequest,
                    text: "the request target has a fragment; leave out '#' and what follows"
                )
            }
            do throws(ServiceError) {
                return try ExactRequestHead(method: method, origin: origin, requestTarget: rest)
            } catch {
                throw ProxyRefusal(.badRequest, text: "the request target contains a space or a control character")
            }
        }

        /// Whether the response to a target must not be kept, because a cache would use another spelling for the key than the one that
        /// is sent, and an origin could answer the two differently: its response would be everyone's under that key. The key's spelling
        /// cannot be sent instead: a proxy must not change path and query (RFC 9110 §7.7).
        ///
        /// Brackets, braces, bars, "^" and "`" are not URI characters either, but browsers send them as they are, and they mean nothing in
        /// a page that repeats them. The digits of an escape mean the same in lower case.
        static func isKeyedOtherwise(_ head: ExactRequestHead) -> Bool {
            let key = head.target.canonical.utf8.dropFirst(head.target.originLength)
            if head.requestTarget.utf8.elementsEqual(key) { return false }
            var target: [UInt8] = []
            var digits = 0
            for byte in head.requestTarget.utf8 {
                if "[]^`{|}".utf8.contains(byte) {
                    target += Array("%\(String(byte, radix: 16, uppercase: true))".utf8)
                } else if digits > 0, byte >= UInt8(ascii: "a"), byte <= UInt8(ascii: "f") {
                    target.append(byte & 0xDF)
                } else {
                    target.append(byte)
                }
                digits = byte == UInt8(ascii: "%") ? 2 : max(0, digits - 1)
            }
            return !target.elementsEqual(key)
        }

        /// The origin, and the target to send there.
        private func split(
            _ method: RequestMethod,
            target: String,
            host: String?
        ) throws(ProxyRefusal) -> (String, String) {
            let isOriginForm = target.utf8.first == UInt8(ascii: "/") || target == "*"
            switch role.kind {
            case .reverse(let origin):
                let named = isOriginForm ? nil : try absolute(method, target: target)
                guard asksByHost, let host = named?.uri.origin.split(separator: "/").last.map({ String($0) }) ?? host,
                    !host.isEmpty
                else { return (origin.description, named?.rest ?? target) }
                let scheme = origin.description.prefix { $0 != ":" }
                guard let uri = try? TargetURI("\(scheme)://\(host)/"), uri.userinfo == nil else {
                    throw ProxyRefusal(.badRequest, text: "the Host field is not a valid host")
                }
                return (uri.origin, named?.rest ?? target)
            case .forward(let rules):
                guard !isOriginForm else {
                    throw ProxyRefusal(
                        .badRequest,
                        text: "this is a forward proxy: use absolute URLs, as in GET http://example.com/"
                    )
                }
                let (uri, rest) = try absolute(method, target: target)
                guard uri.scheme == "http" else {
                    throw ProxyRefusal(.notImplemented, text: "this forward proxy only supports plain http")
                }
                let port = uri.port ?? 80
                guard !isOwn(uri.host, port: port) else {
                    throw ProxyRefusal(.loopDetected, text: "the target is this proxy itself")
                }
                try rules.check(host: uri.host, port: port)
                return (uri.origin, rest)
            }
        }

        /// Reads a target in absolute form: its origin, and the target to send (RFC 9112 §3.2.2, §3.2.4).
        private func absolute(
            _ method: RequestMethod,
            target: String
        ) throws(ProxyRefusal) -> (uri: TargetURI, rest: String) {
            let bytes = target.utf8
            guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
                bytes[bytes.index(after: colon)...].starts(with: "//".utf8)
            else { throw ProxyRefusal(.badRequest, text: "the request target is neither a path nor an absolute URL") }
            let start = bytes.index(colon, offsetBy: 3)
            let end =
                bytes[start...].firstIndex {
                    $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#")
                }
                ?? bytes.endIndex
            guard let uri = try? TargetURI(String(target[..<end]) + "/") else {
                throw ProxyRefusal(.badRequest, text: "the request target has no host of an http URL")
            }
            guard uri.userinfo == nil else {
                throw ProxyRefusal(
                    .badRequest,
                    text: "the request target contains a user name; send Authorization instead"
                )
            }
            let rest = String(target[end...])
            if rest.isEmpty { return (uri, method == .options ? "*" : "/") }
            return (uri, rest.utf8.first == UInt8(ascii: "/") ? rest : "/" + rest)
        }

        /// Whether the proxy itself listens at an authority, as far as the text says.
        func isOwn(_ host: String, port: Int) -> Bool {
            guard port == ownPort.number else { return false }
            return TargetRules.isThisMachine(host, listeningOn: ownHost)
        }

        /// Whether a host is a standard name of this machine, or the address that it listens on.
        static func isThisMachine(_ host: String, listeningOn own: String) -> Bool {
            let host = host.withoutBrackets
            return ["localhost", "0.0.0.0", "::", own].contains(host) || host.hasSuffix(".localhost")
                || NetworkAddress(host)?.isLoopback == true
                || host.hasPrefix("127.") && NetworkAddress.isPrivate(host: host)
        }
    }

    extension String {
        /// A host without the brackets of an IPv6 address.
        var withoutBrackets: String { hasPrefix("[") && hasSuffix("]") ? String(dropFirst().dropLast()) : self }
    }

    /// An IP address, to find out whether it is public.
    struct NetworkAddress: Sendable, Hashable {
        /// The bytes of the address in network order: 4, or 16 if it does not contain an IPv4 address.
        let bytes: [UInt8]
        /// Whether it is a loopback address (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3), also an IPv4 one that is mapped to IPv6.
        let isLoopback: Bool

        /// Reads an address in its usual form, without brackets; the zone of an IPv6 address is ignored.
        init?(_ text: String) {
            var bytes = [UInt8](repeating: 0, count: 16)
            if inet_pton(AF_INET, text, &bytes) == 1 {
                self.bytes = Array(bytes[..<4])
                isLoopback = bytes[0] == 127
            } else if inet_pton(AF_INET6, String(text.prefix { $0 != "%" }), &bytes) == 1 {
                self.bytes = NetworkAddress.unwrapped(bytes)
                let zeros = [UInt8](repeating: 0, count: 10)
                isLoopback = bytes == zeros + [0, 0, 0, 0, 0, 1] || bytes.starts(with: zeros + [0xFF, 0xFF, 127])
            } else {
                return nil
            }
        }

        /// Whether a host of a URI leads to this machine or its network, as far as its text says.
        ///
        /// A name that ends in a number is not a name: resolvers read `2130706433` and `0x7f.1` as addresses, each in
        /// its own way.
        static func isPrivate(host: String) -> Bool {
            var name = host.loweringASCII().withoutBrackets
            while name.hasSuffix(".") { name.removeLast() }
            if name.isEmpty || name == "localhost" || name.hasSuffix(".localhost") { return true }
            if let address = NetworkAddress(name) { return address.isPrivate }
            let last = name.split(separator: ".").last ?? ""
            return last.utf8.allSatisfy(\.isDigit) || last.hasPrefix("0x")
        }

        /// Whether the address is not public: this machine, a private network, the link, a group, or unspecified (RFC
        /// 6890, RFC 1918, RFC 4193, RFC 6598).
        var isPrivate: Bool {
            let blocks = bytes.count == 4 ? NetworkAddress.blocks4 : NetworkAddress.blocks6
            return blocks.contains { block in
                block.prefix.indices.allSatisfy { index in
                    let left = block.length - index * 8
                    let mask: UInt8 = left >= 8 ? 0xFF : left <= 0 ? 0 : ~(0xFF >> UInt8(left))
                    return bytes[index] & mask == block.prefix[index] & mask
                }
            }
        }

        /// The IPv4 address in an IPv6 one (mapped, compatible, NAT64, 6to4); otherwise the address itself.
        private static func unwrapped(_ bytes: [UInt8]) -> [UInt8] {
            let zeros = [UInt8](repeating: 0, count: 10)
            if Array(bytes[..<10]) == zeros, bytes[10...11].allSatisfy({ $0 == 0xFF }) { return Array(bytes[12...]) }
            if Array(bytes[..<12]) == [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0] { return Array(bytes[12...]) }
            if bytes[0] == 0x20, bytes[1] == 0x02 { return Array(bytes[2..<6]) }
            return bytes
        }

        private static let blocks4: [(prefix: [UInt8], length: Int)] = [
            ([0], 8), ([10], 8), ([100, 64], 10), ([127], 8), ([169, 254], 16), ([172, 16], 12), ([192, 0, 0], 24),
            ([192, 168], 16), ([198, 18], 15), ([224], 4), ([240], 4),
        ]

        private static let blocks6: [(prefix: [UInt8], length: Int)] = [
            // Unspecified, loopback, and the old form for IPv4 addresses.
            ([UInt8](repeating: 0, count: 12), 96),
            ([0xFC], 7), ([0xFE, 0x80], 10), ([0xFE, 0xC0], 10), ([0xFF], 8),
        ]
    }
#endif
