// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics

    /// The hosts that a forward proxy sends to, and the clients it serves.
    public struct ForwardRules: Sendable, Hashable {
        /// Whether it may listen on an address that other machines can reach; false by default.
        ///
        /// Anyone who can reach an open proxy sends in its name, to systems behind the same firewall and to the whole
        /// Internet.
        public var isOpen = false

        /// The allowed hosts: names, `.example.com` for all subdomains, IP addresses, each with `:port` for one port
        /// only; none, the default, means all.
        public var allowedHosts: [String] = []

        /// Whether to refuse loopback, private and link-local addresses that are not in ``allowedHosts``; nil, the
        /// default, means only if the proxy ``isOpen``.
        ///
        /// Checked for the host of the target, and again for the address of the connection, so that a name that
        /// resolves to such an address does not help.
        public var deniesPrivateAddresses: Bool?

        /// Allows all hosts, for this machine only.
        public init() {}

        var deniesPrivate: Bool { deniesPrivateAddresses ?? isOpen }

        /// Whether a host can match an entry of ``allowedHosts``.
        package static func isPattern(_ text: String) -> Bool {
            let (name, port) = parts(text.loweringASCII())
            guard port.map({ (1...65_535).contains($0) }) ?? true else { return false }
            let host = name.hasPrefix("*.") ? name.dropFirst(2) : name.hasPrefix(".") ? name.dropFirst() : name[...]
            if NetworkAddress(String(host)) != nil { return true }
            return !host.isEmpty && host.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }
        }

        /// Whether a host is in the list.
        func names(host: String, port: Int) -> Bool {
            let host = host.loweringASCII().withoutBrackets
            return allowedHosts.contains { pattern in
                var (name, named) = ForwardRules.parts(pattern.loweringASCII())
                guard named == nil || named == port else { return false }
                if name.hasPrefix("*.") { name.removeFirst() }
                if name.hasPrefix(".") { return host.hasSuffix(name) && host.utf8.count > name.utf8.count }
                return host == name
            }
        }

        /// Where a tunnel to `host:port` may lead: to a host in the list, at port 443 or the port in the list; nil:
        /// nowhere.
        func tunnel(to authority: String) -> OriginKey? {
            guard let colon = authority.lastIndex(of: ":"), let port = Int(authority[authority.index(after: colon)...]),
                (1...65_535).contains(port)
            else { return nil }
            let host = String(authority[..<colon]).loweringASCII().withoutBrackets
            return opens(host: host, port: port, usualPort: 443)
                ? OriginKey(isSecure: false, host: host, port: port) : nil
        }

        /// Whether arbitrary bytes may be sent to a host: it is listed, and the port is the usual one or listed with
        /// it.
        func opens(host: String, port: Int, usualPort: Int) -> Bool {
            allowedHosts.contains { pattern in
                let hasPort = ForwardRules.parts(pattern.loweringASCII()).port != nil
                var one = self
                one.allowedHosts = [pattern]
                return (port == usualPort || hasPort) && one.names(host: host, port: port)
            }
        }

        /// Refuses a host that is not allowed.
        func check(host: String, port: Int) throws(ProxyRefusal) {
            if !allowedHosts.isEmpty {
                guard names(host: host, port: port) else {
                    throw ProxyRefusal(
                        .forbidden,
                        text: "this proxy may not send to that host, because it is not in the list of allowed hosts"
                    )
                }
                return
            }
            if deniesPrivate, NetworkAddress.isPrivate(host: host) {
                throw ForwardRules.privateAddress
            }
        }

        /// Refuses a connection to an address that is not allowed.
        ///
        /// - Parameter address: an IP address as text; nil if there is none.
        /// - Throws: ``ServiceError`` whose cause is the refusal, and which no retrier repeats.
        func admit(_ host: String, port: Int, address: String?) throws(ServiceError) {
            if !deniesPrivate || names(host: host, port: port) { return }
            if let address = address.flatMap({ NetworkAddress($0) }), !address.isPrivate { return }
            throw ServiceError(
                .unsupported,
                "The host has an address that is not allowed. If it should be, add the host to the allowed hosts.",
                cause: ForwardRules.privateAddress,
                progress: .notSent
            )
        }

        private static let privateAddress = ProxyRefusal(
            .forbidden,
            text: "this proxy does not send to loopback, private or link-local addresses"
        )

        /// A pattern's host and port.
        private static func parts(_ pattern: String) -> (host: String, port: Int?) {
            if pattern.hasPrefix("["), let end = pattern.lastIndex(of: "]") {
                let rest = pattern[pattern.index(after: end)...]
                return (String(pattern[...end]).withoutBrackets, rest.hasPrefix(":") ? Int(rest.dropFirst()) : nil)
            }
            let pieces = pattern.split(separator: ":", omittingEmptySubsequences: false)
            guard pieces.count == 2, let port = Int(pieces[1]) else { return (pattern, nil) }
            return (String(pieces[0]), port)
        }
    }

    /// Whether and how the origin is told the client's address.
    public struct ClientAddressFields: Sendable, Hashable {
        enum Kind: Sendable, Hashable { case none, xForwardedFor, forwarded }

        let kind: Kind

        /// It is not told; the client's own fields pass unchanged. The default.
        public static let none = ClientAddressFields(kind: .none)
        /// The address is added to X-Forwarded-For, and X-Forwarded-Host and -Proto say what the client requested.
        public static let xForwardedFor = ClientAddressFields(kind: .xForwardedFor)
        /// The address is added to Forwarded (RFC 7239).
        public static let forwarded = ClientAddressFields(kind: .forwarded)

        /// Adds an address after existing ones, and replaces what was requested, of which Forwarded may say something in
        /// each element: a client that could give another host there would have the response stored under this one.
        ///
        /// - Parameters:
        ///   - address: an IP address without brackets and port; nil if there is none, as on a Unix domain socket.
        ///   - host: the Host that the client sent; nil if it sent none.
        func add(_ address: String?, host: String?, scheme: String, to fields: inout HeaderFields) {
            switch kind {
            case .none:
                return
            case .xForwardedFor:
                if let address { fields.append("X-Forwarded-For", address) }
                fields["X-Forwarded-Proto"] = scheme
                fields["X-Forwarded-Host"] = host
            case .forwarded:
                let node = address.map { $0.contains(":") ? "\"[\($0)]\"" : $0 } ?? "unknown"
                let named = host.map { ";host=\"\($0.filter { $0 != "\"" && $0 != "\\" })\"" } ?? ""
                let former = fields.values(of: "Forwarded").flatMap { ClientAddressFields.addresses(in: $0) }
                fields["Forwarded"] = (former + ["for=\(node)\(named);proto=\(scheme)"]).joined(separator: ", ")
            }
        }

        /// The elements of a line of Forwarded, with their addresses alone; none if the line is not well-formed (RFC 7239
        /// §4, §6), because the origin might read what follows it as a part of it.
        private static func addresses(in line: String) -> [String] {
            var elements: [String] = []
            for element in FieldScanner.members(of: line) {
                var addresses: [String] = []
                for pair in FieldScanner.members(of: element, separator: UInt8(ascii: ";")) {
                    var scanner = FieldScanner(pair)
                    guard let name = scanner.token()?.loweringASCII(), scanner.consume(UInt8(ascii: "=")),
                        let value = scanner.token() ?? scanner.quotedString(), scanner.isAtEnd
                    else { return [] }
                    guard name == "for" || name == "by" else { continue }
                    guard value.utf8.allSatisfy({ $0.isTokenCharacter || ":[]".utf8.contains($0) }) else { return [] }
                    addresses.append(pair)
                }
                if !addresses.isEmpty { elements.append(addresses.joined(separator: ";")) }
            }
            return elements
        }
    }

    /// The fields that are only for the next hop, and how they are removed (RFC 9110 §7.6.1).
    enum HopByHopFields {
        /// The fields of a request that are forwarded to the origin.
        ///
        /// Removed are the connection's own fields, those that Connection lists, Proxy-Authorization, which is only for
        /// a proxy, Host, which the transport sets to the origin, Content-Length, which it derives from the content,
        /// and Expect, which the server has answered by then. Connection cannot list Cache-Control, which is for all
        /// recipients on the way.
        static func requestFields(_ fields: HeaderFields) -> HeaderFields {
            remaining(fields, without: requestBound, sparing: requestSpared)
        }

        /// The fields of a response that are forwarded to the client.
        ///
        /// Connection cannot remove the fields that caches use. Fields for the client of a proxy (RFC 9110 §11.7) are
        /// forwarded: a gateway is the origin to its clients.
        static func responseFields(_ fields: HeaderFields) -> HeaderFields {
            remaining(fields, without: connectionBound, sparing: responseSpared)
        }

        private static func remaining(
            _ fields: HeaderFields,
            without bound: Bound,
            sparing spared: Set<FieldName>
        ) -> HeaderFields {
            guard fields.contains(where: { bound.finder.number(of: $0.name.rawName) != nil }) else { return fields }
            var dropped = bound.names
            guard fields.contains(.connection) else {
                var kept = fields
                kept.removeAll { dropped.contains($0.name) }
                return kept
            }
            for line in fields where line.name == .connection {
                for option in RequestFraming.members(line.value) {
                    if let name = FieldName(String(option)), !spared.contains(name) { dropped.insert(name) }
                }
            }
            var kept = fields
            kept.removeAll { dropped.contains($0.name) }
            return kept
        }

        /// Names of fields that are not forwarded, and a finder for them in a message.
        private struct Bound: Sendable {
            let names: Set<FieldName>
            let finder: FieldNameFinder

            init(_ names: Set<FieldName>) {
                self.names = names
                finder = FieldNameFinder(names.map(\.canonicalName))
            }
        }

        private static let connectionNames: Set<FieldName> = [
            .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade,
        ]
        private static let connectionBound = Bound(connectionNames)

        private static let requestSpared: Set<FieldName> = [.cacheControl]
        private static let responseSpared: Set<FieldName> = [.age, .cacheControl, .date, .expires, .vary]
        private static let requestBound = Bound(
            connectionNames.union([.host, .contentLength, .expect, .proxyAuthorization])
        )
    }

    /// Max-Forwards: how many more times a TRACE or OPTIONS may be forwarded (RFC 9110 §7.6.2).
    enum MaxForwards {
        /// What happens to a request.
        enum Decision: Sendable, Hashable {
            /// It is forwarded unchanged.
            case pass
            /// It is forwarded with this number.
            case forward(Int)
            /// It is answered here.
            case answer
        }

        static let name: FieldName = "Max-Forwards"

        /// Decides about a request; an invalid value is forwarded, and for other methods it has no meaning.
        static func decide(_ method: RequestMethod, fields: HeaderFields) -> Decision {
            guard method == .trace || method == .options, fields.contains(name) else { return .pass }
            let lines = fields.values(of: name)
            guard lines.count == 1, !lines[0].isEmpty, lines[0].utf8.allSatisfy(\.isDigit) else { return .pass }
            // More digits count no number of hops that would ever end.
            guard let number = Int(lines[0]) else { return .forward(Int.max - 1) }
            return number == 0 ? .answer : .forward(number - 1)
        }

        /// What TRACE shows of a request: its line and its fields, without those that contain secrets (RFC 9110
        /// §9.3.8).
        static func trace(_ method: RequestMethod, target: String, version: String, fields: HeaderFields)
            -> String
        {
            let lines = fields.filter { !secret.contains($0.name) }.map { "\($0.name.rawName): \($0.value)\r\n" }
            return "\(method) \(target) HTTP/\(version)\r\n" + lines.joined() + "\r\n"
        }

        private static let secret: Set<FieldName> = [.authorization, .cookie, .proxyAuthorization]
    }

    /// The Via field: who forwarded a message, which is used to detect loops (RFC 9110 §7.6.3).
    struct ViaField: Sendable {
        /// The name of this proxy: a token.
        let name: String

        /// Appends this proxy to the list, on a line of its own.
        ///
        /// - Parameter version: the version of the received message, such as `1.1`.
        func append(to fields: inout HeaderFields, version: String) {
            fields.append(.via, "\(version) \(name)")
        }

        /// Whether the request has been here before: its list contains this proxy.
        func hasPassed(_ fields: HeaderFields) -> Bool {
            let own = name.loweringASCII()
            return fields.values(of: .via).contains { value in
                value.split(separator: ",").contains { member in
                    let words = member.split(whereSeparator: { $0 == " " || $0 == "\t" })
                    return words.count >= 2 && String(words[1]).loweringASCII() == own
                }
            }
        }

        /// A unique name for a proxy whose operator gave none.
        static func pseudonym(using generator: inout some RandomNumberGenerator) -> String {
            "holdfast-" + UInt32.random(in: 0...UInt32.max, using: &generator).hexDigits
        }
    }
#endif
