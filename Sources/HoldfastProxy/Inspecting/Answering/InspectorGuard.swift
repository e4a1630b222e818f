// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics

    /// Decides who may ask the inspector anything: a person at this machine, by a page that the inspector itself has served.
    ///
    /// Nobody on the network (the address it comes from), no page of another site whose name was made to lead here (Host), none that
    /// sends requests across origins (Origin, Sec-Fetch-Site), nobody behind a proxy at this machine (Via and its like), and nothing that changes the cache without the word that only our own
    /// page knows.
    struct InspectorGuard: Sendable {
        /// Why a request is refused.
        struct Refusal: Error, Sendable, Hashable {
            let status: StatusCode
            /// What a person may do about it.
            let message: String
            var allow: String?
        }

        /// Names the field that bears ``word`` with a request that changes something.
        static let wordField: FieldName = "X-Holdfast-Inspector"

        /// What proxies write into requests (RFC 9110 §7.6.3, RFC 7239): behind one anybody may stand.
        private static let marksOfProxies: [FieldName] = [
            "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP",
        ]

        /// The port that the inspector listens at.
        let port: Int
        /// What the page carries and an order must bear; new with each start.
        let word: String

        /// - Parameter word: by default 32 random bytes in hexadecimal digits.
        init(port: Int, word: String = InspectorGuard.randomWord()) {
            self.port = port
            self.word = word
        }

        /// Whether a request is to be answered at all.
        func check(_ request: InspectorRequest) throws(Refusal) {
            guard let address = request.remoteAddress, InspectorGuard.isLoopback(address) else {
                throw Refusal(status: 403, message: "The inspector answers this machine alone.")
            }
            let hosts = request.fields.values(of: .host)
            guard hosts.count == 1, let host = hosts.first?.lowercased(), isOwn(host) else {
                throw Refusal(
                    status: 403,
                    message: "Open the inspector as http://127.0.0.1:\(port)/ or http://localhost:\(port)/."
                )
            }
            guard !InspectorGuard.marksOfProxies.contains(where: { request.fields.contains($0) }) else {
                throw Refusal(status: 403, message: "The inspector answers no request that comes by a proxy.")
            }
            let origins = request.fields.values(of: "Origin")
            guard origins.allSatisfy({ $0.lowercased() == "http://\(host)" }) else {
                throw Refusal(status: 403, message: "The inspector answers no page but its own.")
            }
            let sites = request.fields.values(of: "Sec-Fetch-Site")
            guard sites.allSatisfy({ ["same-origin", "none"].contains($0.lowercased()) }) else {
                throw Refusal(
                    status: 403,
                    message: "The inspector cannot be opened from a page of another site; type its address."
                )
            }
        }

        /// Whether a request may change something; to be asked after ``check(_:)``.
        func checkOrder(_ request: InspectorRequest) throws(Refusal) {
            let type = request.fields.values(of: .contentType)
            let essence = type.first?.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
            guard type.count == 1, essence == "application/json" else {
                throw Refusal(status: 415, message: "Send the order as application/json.")
            }
            let words = request.fields.values(of: InspectorGuard.wordField)
            guard words.count == 1, let given = words.first, InspectorGuard.isEqual(given, word) else {
                throw Refusal(status: 403, message: "The page is older than the proxy; load it again.")
            }
        }

        private func isOwn(_ host: String) -> Bool {
            ["127.0.0.1", "localhost", "[::1]"].contains { name in
                host == "\(name):\(port)" || port == 80 && host == name
            }
        }

        /// Compares in a time that tells nothing of where two texts differ.
        static func isEqual(_ left: String, _ right: String) -> Bool {
            let (left, right) = (Array(left.utf8), Array(right.utf8))
            guard left.count == right.count else { return false }
            var difference: UInt8 = 0
            for index in left.indices { difference |= left[index] ^ right[index] }
            return difference == 0
        }

        /// Whether a numeric address is one of this machine's own loopback (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
        static func isLoopback(_ address: String) -> Bool {
            var address = address.lowercased()
            if address == "::1" || address == "0:0:0:0:0:0:0:1" { return true }
            if address.hasPrefix("::ffff:") { address.removeFirst(7) }
            let octets = address.split(separator: ".", omittingEmptySubsequences: false)
            return octets.count == 4 && octets[0] == "127" && octets.allSatisfy { UInt8($0) != nil }
        }

        static func randomWord() -> String {
            var generator = SystemRandomNumberGenerator()
            return (0..<4).map { _ in
                let digits = String(generator.next(), radix: 16)
                return String(repeating: "0", count: 16 - digits.count) + digits
            }
            .joined()
        }
    }
#endif
