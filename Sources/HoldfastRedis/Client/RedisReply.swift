// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import HoldfastStorage

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

    extension RedisReply {
        /// What a refusal means, and what to do; nil where the server refused nothing.
        ///
        /// `.badConfiguration` and `.readOnly` last until somebody changes the server or the address, `.resting` passes, `.noSpace` needs
        /// room, and `.corrupt` concerns this one command. A script's refusal may stand behind words of the server's own.
        var refusal: StoreError? { errorText.map(RedisReply.refusal(for:)) }

        static func refusal(for text: String) -> StoreError {
            func has(_ words: String...) -> Bool { words.contains { text.contains($0) } }
            let said = "Redis said: \(text.prefix(200))"
            if has("NOAUTH", "WRONGPASS", "invalid password", "AUTH <password>") {
                return StoreError(
                    .badConfiguration,
                    "Redis wants a user and password; write redis://user:password@host, or redis://:password@host. \(said)"
                )
            }
            if has("MOVED ", "ASK ", "CROSSSLOT", "CLUSTERDOWN") {
                return StoreError(
                    .badConfiguration,
                    "Redis is a node of a cluster, and the store's keys are another one's; name that node. \(said)"
                )
            }
            if has("READONLY", "MASTERDOWN") {
                return StoreError(.readOnly, "Redis is a replica, which takes no writes; name its primary. \(said)")
            }
            if has("publish to the channel", "channels used") {
                return StoreError(
                    .badConfiguration,
                    "The ACL of this user lacks the store's channels; give it &holdfast:2:{PREFIX}:*. \(said)"
                )
            }
            if has("NOPERM", "No permissions", "user executing the script") {
                return StoreError(
                    .badConfiguration,
                    "The ACL of this user lacks commands or keys that docs/operating/redis.md lists. \(said)"
                )
            }
            if has("OOM ") {
                return StoreError(
                    .noSpace,
                    "Redis has no memory left; raise its maxmemory or lower the capacity. \(said)"
                )
            }
            if has("LOADING", "BUSY ", "TRYAGAIN", "MISCONF", "NOREPLICAS") {
                return StoreError(.resting, "Redis takes no commands for now; it is asked again soon. \(said)")
            }
            return StoreError(.corrupt, "Redis refuses a command; look into its configuration. \(said)")
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
