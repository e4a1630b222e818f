// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics

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
