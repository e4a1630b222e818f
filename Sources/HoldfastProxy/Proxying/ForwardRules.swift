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

        /// Where a tunnel to `host:port` may lead: to a host that is named, at port 443 or the one that is named with it; nil: nowhere.
        func tunnel(to authority: String) -> OriginKey? {
            guard let colon = authority.lastIndex(of: ":"), let port = Int(authority[authority.index(after: colon)...]),
                (1...65_535).contains(port)
            else { return nil }
            let host = ForwardRules.bare(String(authority[..<colon]).loweringASCII())
            let isNamed = allowedHosts.contains { pattern in
                let hasPort = ForwardRules.parts(pattern.loweringASCII()).port != nil
                var one = self
                one.allowedHosts = [pattern]
                return (port == 443 || hasPort) && one.names(host: host, port: port)
            }
            return isNamed ? OriginKey(isSecure: false, host: host, port: port) : nil
        }

        /// Refuses a host that is not to be asked.
        func check(host: String, port: Int) throws(ProxyRefusal) {
            if !allowedHosts.isEmpty {
                guard names(host: host, port: port) else {
                    throw ProxyRefusal(
                        .forbidden,
                        text: "this proxy may not ask that host; its list of allowed hosts lacks it"
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
        func admit(_ host: String, port: Int, address: String?) throws(ServiceError) {
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
            text: "this proxy asks no loopback, private or link-local address"
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

    /// Whether and how the origin is told who asked.
    public struct ClientAddressFields: Sendable, Hashable {
        enum Kind: Sendable, Hashable { case none, xForwardedFor, forwarded }

        let kind: Kind

        /// It is not told; fields of the client's own pass as they are. The default.
        public static let none = ClientAddressFields(kind: .none)
        /// The address is added to X-Forwarded-For, and X-Forwarded-Host and -Proto say what the client asked.
        public static let xForwardedFor = ClientAddressFields(kind: .xForwardedFor)
        /// The address is added to Forwarded (RFC 7239).
        public static let forwarded = ClientAddressFields(kind: .forwarded)

        /// Adds an address behind those that are there, and says anew what was asked: a client that could name another host there would
        /// have the answer stored under this one.
        ///
        /// - Parameters:
        ///   - address: an IP address without brackets and port; nil where there is none, as on a Unix domain socket.
        ///   - host: the Host that the client sent; nil where it sent none.
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
                fields.append("Forwarded", "for=\(node)\(named);proto=\(scheme)")
            }
        }
    }

    /// The fields that are for the next hop alone, and how they stay behind (RFC 9110 §7.6.1).
    enum HopByHopFields {
        /// The fields of a request that go on to the origin.
        ///
        /// Gone are the connection's own, those that Connection names, Proxy-Authorization, which is for a proxy and for no one behind it, Host,
        /// which the transport sets to the origin, Content-Length, which it makes from the content, and Expect, which the server has
        /// answered by then. Connection cannot name Cache-Control: that is for all on the way.
        static func requestFields(_ fields: HeaderFields) -> HeaderFields {
            remaining(fields, without: requestBound, sparing: requestSpared)
        }

        /// The fields of a response that go on to the client.
        ///
        /// Connection cannot take away what caches go by. What is for the client of a proxy (RFC 9110 §11.7) passes: a gateway is the
        /// origin to its clients.
        static func responseFields(_ fields: HeaderFields) -> HeaderFields {
            remaining(fields, without: connectionBound, sparing: responseSpared)
        }

        private static func remaining(
            _ fields: HeaderFields,
            without dropped: Set<FieldName>,
            sparing spared: Set<FieldName>
        ) -> HeaderFields {
            guard fields.contains(where: { dropped.contains($0.name) }) else { return fields }
            guard fields.contains(.connection) else {
                var kept = fields
                kept.removeAll { dropped.contains($0.name) }
                return kept
            }
            var dropped = dropped
            for line in fields where line.name == .connection {
                for option in line.value.split(separator: ",") {
                    let name = FieldName(String(option.trimming(while: { $0 == " " || $0 == "\t" })))
                    if let name, !spared.contains(name) { dropped.insert(name) }
                }
            }
            var kept = fields
            kept.removeAll { dropped.contains($0.name) }
            return kept
        }

        private static let connectionBound: Set<FieldName> = [
            .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade,
        ]

        private static let requestSpared: Set<FieldName> = [.cacheControl]
        private static let responseSpared: Set<FieldName> = [.age, .cacheControl, .date, .expires, .vary]
        private static let requestBound = connectionBound.union([.host, .contentLength, .expect, .proxyAuthorization])
    }

    extension Substring {
        /// The part without what the predicate takes at its ends.
        fileprivate func trimming(while isTrimmed: (Character) -> Bool) -> Substring {
            var rest = drop(while: isTrimmed)
            while let last = rest.last, isTrimmed(last) { rest.removeLast() }
            return rest
        }
    }

    /// Max-Forwards: how many more may pass a TRACE or OPTIONS on (RFC 9110 §7.6.2).
    enum MaxForwards {
        /// What becomes of a request.
        enum Judgement: Sendable, Hashable {
            /// It goes on as it is.
            case pass
            /// It goes on with this number.
            case forward(Int)
            /// It is to be answered here.
            case answer
        }

        static let name: FieldName = "Max-Forwards"

        /// Judges a request; a value that is no number is passed on, and of other methods it means nothing.
        static func judge(_ method: RequestMethod, fields: HeaderFields) -> Judgement {
            guard method == .trace || method == .options, fields.contains(name) else { return .pass }
            let lines = fields.values(of: name)
            guard lines.count == 1, !lines[0].isEmpty, lines[0].utf8.allSatisfy(\.isDigit) else { return .pass }
            // More digits than that count no hops that anyone would see the end of.
            guard let number = Int(lines[0]) else { return .forward(Int.max - 1) }
            return number == 0 ? .answer : .forward(number - 1)
        }

        /// What TRACE shows of a request: its line and its fields, without those that hold secrets (RFC 9110 §9.3.8).
        static func trace(_ method: RequestMethod, target: String, version: String, fields: HeaderFields)
            -> String
        {
            let lines = fields.filter { !secret.contains($0.name) }.map { "\($0.name.rawName): \($0.value)\r\n" }
            return "\(method) \(target) HTTP/\(version)\r\n" + lines.joined() + "\r\n"
        }

        private static let secret: Set<FieldName> = [.authorization, .cookie, .proxyAuthorization]
    }

    /// The Via field: who passed a message on, by which a loop is seen (RFC 9110 §7.6.3).
    struct ViaField: Sendable {
        /// The name that this proxy goes by: a token.
        let name: String

        /// Appends this proxy to the list, on a line of its own.
        ///
        /// - Parameter version: that of the message as it was received, such as `1.1`.
        func append(to fields: inout HeaderFields, version: String) {
            fields.append(.via, "\(version) \(name)")
        }

        /// Whether the request has been here before: its list names this proxy.
        func hasPassed(_ fields: HeaderFields) -> Bool {
            let own = name.loweringASCII()
            return fields.values(of: .via).contains { value in
                value.split(separator: ",").contains { member in
                    let words = member.split(whereSeparator: { $0 == " " || $0 == "\t" })
                    return words.count >= 2 && String(words[1]).loweringASCII() == own
                }
            }
        }

        /// A name that no other proxy has, for one whose operator gave none.
        static func pseudonym(using generator: inout some RandomNumberGenerator) -> String {
            let number = String(UInt32.random(in: 0...UInt32.max, using: &generator), radix: 16)
            return "holdfast-" + String(repeating: "0", count: 8 - number.utf8.count) + number
        }
    }
#endif
