// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics

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
        static func judge(_ method: RequestMethod, _ fields: HeaderFields) -> Judgement {
            guard method == .trace || method == .options, fields.contains(name) else { return .pass }
            let lines = fields.values(of: name)
            guard lines.count == 1, !lines[0].isEmpty, lines[0].utf8.allSatisfy(\.isDigit) else { return .pass }
            // More digits than that count no hops that anyone would see the end of.
            guard let number = Int(lines[0]) else { return .forward(Int.max - 1) }
            return number == 0 ? .answer : .forward(number - 1)
        }

        /// What TRACE shows of a request: its line and its fields, without those that hold secrets (RFC 9110 §9.3.8).
        static func trace(_ method: RequestMethod, _ target: String, _ version: String, _ fields: HeaderFields)
            -> String
        {
            let lines = fields.filter { !secret.contains($0.name) }.map { "\($0.name.rawName): \($0.value)\r\n" }
            return "\(method) \(target) HTTP/\(version)\r\n" + lines.joined() + "\r\n"
        }

        private static let secret: Set<FieldName> = [.authorization, .cookie, .proxyAuthorization]
    }
#endif
