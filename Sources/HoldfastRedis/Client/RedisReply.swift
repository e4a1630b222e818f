// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    /// What a server answered to one command; closed, as its protocol is.
    enum RedisReply: Sendable, Hashable {
        case bytes([UInt8])
        case status(String)
        case integer(Int)
        case array([RedisReply])
        case null
        /// The server refuses the command; nothing else is wrong.
        case error(String)

        /// The bytes of a string; nil for anything else.
        var bytes: [UInt8]? {
            switch self {
            case .bytes(let bytes): bytes
            case .status(let text): Array(text.utf8)
            case .integer, .array, .null, .error: nil
            }
        }

        /// A number, also where it is written as a string.
        var integer: Int? {
            switch self {
            case .integer(let number): number
            case .bytes(let bytes): Int(String(decoding: bytes, as: UTF8.self))
            case .status, .array, .null, .error: nil
            }
        }

        /// The elements of an array; nil for anything else.
        var array: [RedisReply]? {
            if case .array(let elements) = self { elements } else { nil }
        }

        /// What the server said against the command.
        var errorText: String? {
            if case .error(let text) = self { text } else { nil }
        }
    }

    /// One command: its name and its arguments, of any bytes.
    struct RedisCommand: Sendable {
        let words: [[UInt8]]

        init(_ words: [[UInt8]]) {
            self.words = words
        }

        /// A command of text alone.
        init(_ words: String...) {
            self.words = words.map { Array($0.utf8) }
        }
    }
#endif
