// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import HoldfastStorage

    /// A server's reply to one command; closed, like its protocol.
    enum RedisReply: Sendable, Hashable {
        case bytes([UInt8])
        case status(String)
        case integer(Int)
        case array([RedisReply])
        case null
        /// The server refused the command; nothing else is wrong.
        case error(String)

        /// The bytes of a string; nil for anything else.
        var bytes: [UInt8]? {
            switch self {
            case .bytes(let bytes): bytes
            case .status(let text): Array(text.utf8)
            case .integer, .array, .null, .error: nil
            }
        }

        /// A number, also if it is written as a string.
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

        /// The server's error text.
        var errorText: String? {
            if case .error(let text) = self { text } else { nil }
        }
    }

    extension RedisReply {
        /// What a refusal means, and what to do; nil if nothing was refused.
        ///
        /// `.badConfiguration` and `.readOnly` last until the server or the address is changed, `.temporarilyUnavailable`
        /// passes, `.noSpace` needs room, and `.corrupt` is only about this command. A script's refusal may follow text of the
        /// server's own.
        var refusal: StoreError? { errorText.map(RedisReply.refusal(for:)) }

        static func refusal(for text: String) -> StoreError {
            func has(_ words: String...) -> Bool { words.contains { text.contains($0) } }
            let said = "Redis said: \(text.prefix(200))"
            if has("NOAUTH", "WRONGPASS", "invalid password", "AUTH <password>") {
                return StoreError(
                    .badConfiguration,
                    "Redis requires a user and password. Use redis://user:password@host, or redis://:password@host. \(said)"
                )
            }
            if has("MOVED ", "ASK ", "CROSSSLOT", "CLUSTERDOWN") {
                return StoreError(
                    .badConfiguration,
                    "Redis is a node of a cluster, and another node has the store's keys. Use the address of that node. \(said)"
                )
            }
            if has("READONLY", "MASTERDOWN") {
                return StoreError(
                    .readOnly,
                    "Redis is a replica, which accepts no writes. Use the address of its primary. \(said)"
                )
            }
            if has("publish to the channel", "channels used") {
                return StoreError(
                    .badConfiguration,
                    "The ACL of this user does not include the store's channels. Add &holdfast:2:{PREFIX}:*. \(said)"
                )
            }
            if has("NOPERM", "No permissions", "user executing the script") {
                return StoreError(
                    .badConfiguration,
                    "The ACL of this user does not include all commands and keys that docs/operating/redis.md lists. \(said)"
                )
            }
            if has("OOM ") {
                return StoreError(
                    .noSpace,
                    "Redis has no memory left. Raise its maxmemory, or lower the store's capacity. \(said)"
                )
            }
            if has("LOADING", "BUSY ", "TRYAGAIN", "MISCONF", "NOREPLICAS") {
                return StoreError(
                    .temporarilyUnavailable,
                    "Redis accepts no commands at the moment. It is tried again soon. \(said)"
                )
            }
            return StoreError(.corrupt, "Redis refused a command. Check its configuration. \(said)")
        }
    }

    /// One command: its name and its arguments, of any bytes.
    struct RedisCommand: Sendable {
        let words: [[UInt8]]

        init(_ words: [[UInt8]]) {
            self.words = words
        }

        /// A command of texts.
        init(_ words: String...) {
            self.words = words.map { Array($0.utf8) }
        }
    }
#endif
