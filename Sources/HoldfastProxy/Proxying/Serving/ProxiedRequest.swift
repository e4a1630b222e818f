// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics

    /// A request as a client sent it: what the rules of forwarding look at.
    struct ProxiedRequest: Sendable {
        /// The method as it arrived.
        var method: RequestMethod
        /// The target as it arrived.
        var target: String
        /// The version of the message, such as `1.1`.
        var version = "1.1"
        /// The field lines in their order.
        var fields = HeaderFields()
        /// The content.
        var body = RequestBody.none
        /// The address of the client, without its port.
        var clientAddress: String?
        /// Sends an interim response to the client.
        var sendInterim: (@Sendable (ResponseHead) -> Void)?

        /// The fields as URLRequest holds them: lines of one name joined, those of Cookie by "; " (RFC 9110 §5.3, RFC 6265 §5.4).
        static func joined(_ fields: HeaderFields) -> [String: String] {
            var joined: [String: String] = [:]
            joined.reserveCapacity(fields.count)
            // The names as they were spelled first; most requests repeat none, and an array that short beats a set.
            var spellings: [FieldName] = []
            spellings.reserveCapacity(fields.count)
            for line in fields {
                if let spelling = spellings.first(where: { $0 == line.name }) {
                    joined[spelling.rawName, default: ""] += (line.name == .cookie ? "; " : ", ") + line.value
                } else {
                    spellings.append(line.name)
                    joined[line.name.rawName] = line.value
                }
            }
            return joined
        }
    }
#endif
