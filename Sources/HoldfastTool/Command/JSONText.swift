// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastCommand

    /// A JSON value whose members keep their order (RFC 8259).
    indirect enum JSONText: Sendable {
        case null
        case bool(Bool)
        case int(Int)
        case string(String)
        case array([JSONText])
        case object([(String, JSONText)])

        /// The value on one line.
        var text: String {
            switch self {
            case .null: "null"
            case .bool(let value): value ? "true" : "false"
            case .int(let value): String(value)
            case .string(let value): Self.quoted(value)
            case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
            case .object(let members):
                "{" + members.map { Self.quoted($0.0) + ":" + $0.1.text }.joined(separator: ",") + "}"
            }
        }

        /// A text in quotation marks, with everything escaped that must be (RFC 8259 §7), and the control characters that need not be:
        /// a terminal may obey them.
        static func quoted(_ text: String) -> String {
            var quoted = "\""
            quoted.reserveCapacity(text.utf8.count + 2)
            for scalar in text.unicodeScalars {
                switch scalar {
                case "\"": quoted += "\\\""
                case "\\": quoted += "\\\\"
                case "\n": quoted += "\\n"
                case "\r": quoted += "\\r"
                case "\t": quoted += "\\t"
                case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}":
                    let digits = String(scalar.value, radix: 16)
                    quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                default: quoted.unicodeScalars.append(scalar)
                }
            }
            return quoted + "\""
        }
    }

    /// Writes an array of JSON values one by one, one per line.
    struct JSONArrayWriter {
        private let console: Console
        private var isEmpty = true

        init(on console: Console) {
            self.console = console
            console.output("[")
        }

        mutating func add(_ value: JSONText) {
            console.output((isEmpty ? "\n" : ",\n") + value.text)
            isEmpty = false
        }

        func end() {
            console.output(isEmpty ? "]\n" : "\n]\n")
        }
    }
#endif
