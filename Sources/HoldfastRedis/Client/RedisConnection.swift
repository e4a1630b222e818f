// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    private import CHiredis
    internal import HoldfastStorage

    #if canImport(Darwin)
        private import Darwin
    #elseif canImport(Musl)
        private import Musl
    #else
        private import Glibc
    #endif

    /// One connection, using hiredis. It blocks, so it is used on one thread only.
    final class RedisConnection {
        private let context: UnsafeMutablePointer<redisContext>
        private let commandTimeout: Duration
        /// The timeout starts again each time this many bytes were moved: large replies may take longer, but a very slow
        /// connection may not.
        private static let bytesOfTimeout = 1 << 20

        /// Connects, logs in and selects the database.
        ///
        /// - Throws: `.io` if the server cannot be reached, and the error of ``RedisReply/refusal`` if it refuses; shows no
        ///   password.
        init(_ address: RedisAddress, connectTimeout: Duration, commandTimeout: Duration) throws(StoreError) {
            let timeout = connectTimeout.timeValue
            let made =
                switch address.place {
                case .host(let host, let port): redisConnectWithTimeout(host, port, timeout)
                case .socket(let path): redisConnectUnixWithTimeout(path, timeout)
                }
            guard let made else { throw StoreError(.io, "There is not enough memory for a connection to Redis.") }
            context = made
            self.commandTimeout = commandTimeout
            guard made.pointee.err == 0 else {
                throw StoreError(
                    .io,
                    "Redis at \(address) cannot be reached: \(failureText); start it or correct the address."
                )
            }
            if case .host = address.place { redisEnableKeepAlive(made) }
            // From here on only `poll` blocks, so that one deadline limits a whole exchange.
            made.pointee.flags &= ~Int32(REDIS_BLOCK)
            _ = fcntl(made.pointee.fd, F_SETFL, fcntl(made.pointee.fd, F_GETFL) | O_NONBLOCK)
            var greetings: [RedisCommand] = []
            if let password = address.password {
                greetings.append(
                    RedisCommand(
                        [Array("AUTH".utf8)] + [address.user, password].compactMap { $0.map { Array($0.utf8) } }
                    )
                )
            }
            if address.database != 0 { greetings.append(RedisCommand("SELECT", "\(address.database)")) }
            greetings.append(RedisCommand("CLIENT", "SETNAME", "holdfast"))
            for (index, reply) in try exchange(greetings).enumerated() {
                guard let text = reply.errorText, let refusal = reply.refusal else { continue }
                // A server may not support naming clients, or may not allow it for this user.
                if index == greetings.count - 1, !text.hasPrefix("NOAUTH") { continue }
                if refusal.code != .corrupt { throw refusal }
                // A server that does not know a command repeats its arguments, the password among them.
                let isLogin = index == 0 && address.password != nil
                let said = isLogin ? text.prefix { $0 != "," && $0 != "'" && $0 != "`" } : text.prefix(200)
                throw StoreError(
                    .badConfiguration,
                    "Redis at \(address) refused the login: \(said.prefix(200)); correct user, password or database."
                )
            }
        }

        deinit {
            redisFree(context)
        }

        /// Whether the peer has closed the connection, or sent something unrequested.
        var isStale: Bool {
            var byte: UInt8 = 0
            let count = recv(context.pointee.fd, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
            return count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)
        }

        /// Sends commands together and receives their replies in order.
        ///
        /// - Throws: `.io`; the connection must then be closed, because it is unknown what was executed.
        func exchange(_ commands: [RedisCommand]) throws(StoreError) -> [RedisReply] {
            for command in commands { try append(command) }
            var replies: [RedisReply] = []
            replies.reserveCapacity(commands.count)
            let clock = ContinuousClock()
            var (deadline, moved, isSent) = (clock.now.advanced(by: commandTimeout), 0, false)
            var unsent = commands.reduce(0) { $0 + $1.words.reduce(0) { $0 + $1.count } }
            while replies.count < commands.count {
                if let reply = try nextReply() {
                    replies.append(reply)
                    continue
                }
                let left = deadline - clock.now
                guard left > .zero, let events = wait(for: left, toWrite: !isSent) else {
                    throw StoreError(.io, "Redis did not answer within \(commandTimeout).")
                }
                if events.isWritable {
                    var isDone: Int32 = 0
                    guard redisBufferWrite(context, &isDone) == REDIS_OK else { throw failure }
                    isSent = isDone != 0
                    // hiredis does not report how much it wrote, so each write counts as one socket buffer.
                    let step = min(unsent, 128 << 10)
                    (unsent, moved) = (unsent - step, moved + step)
                }
                if events.isReadable {
                    let held = Int(context.pointee.reader.pointee.len)
                    guard redisBufferRead(context) == REDIS_OK else { throw failure }
                    moved += max(0, Int(context.pointee.reader.pointee.len) - held)
                }
                if moved >= RedisConnection.bytesOfTimeout {
                    (moved, deadline) = (0, clock.now.advanced(by: commandTimeout))
                }
            }
            return replies
        }

        /// Sends a command without waiting for its replies.
        func post(_ command: RedisCommand) throws(StoreError) {
            try append(command)
            var isDone: Int32 = 0
            while true {
                guard redisBufferWrite(context, &isDone) == REDIS_OK else { throw failure }
                if isDone != 0 { return }
                guard wait(for: commandTimeout, toWrite: true) != nil else {
                    throw StoreError(.io, "Redis did not accept a command within \(commandTimeout).")
                }
            }
        }

        /// The next reply that arrives within a time; nil if none does.
        func nextReply(within time: Duration) throws(StoreError) -> RedisReply? {
            if let reply = try nextReply() { return reply }
            guard wait(for: time, toWrite: false) != nil else { return nil }
            guard redisBufferRead(context) == REDIS_OK else { throw failure }
            return try nextReply()
        }

        /// The next reply in what was read; nil if it is incomplete.
        private func nextReply() throws(StoreError) -> RedisReply? {
            var raw: UnsafeMutableRawPointer?
            guard redisGetReplyFromReader(context, &raw) == REDIS_OK else { throw failure }
            guard let raw else { return nil }
            defer { freeReplyObject(raw) }
            return RedisReply(raw.assumingMemoryBound(to: redisReply.self), depth: 0)
        }

        /// Waits until the connection can be read or written; nil when the time is up.
        private func wait(for time: Duration, toWrite: Bool) -> (isReadable: Bool, isWritable: Bool)? {
            let events = Int16(POLLIN) | (toWrite ? Int16(POLLOUT) : 0)
            var descriptor = pollfd(fd: context.pointee.fd, events: events, revents: 0)
            guard poll(&descriptor, 1, Int32(clamping: time.wholeMilliseconds + 1)) > 0 else { return nil }
            return (descriptor.revents & ~Int16(POLLOUT) != 0, descriptor.revents & Int16(POLLOUT) != 0)
        }

        private func append(_ command: RedisCommand) throws(StoreError) {
            // One block for all words, so that each pointer stays valid until hiredis has copied the data.
            let lengths = command.words.map(\.count)
            var block: [UInt8] = []
            block.reserveCapacity(lengths.reduce(1, +))
            for word in command.words { block += word }
            block.append(0)
            let status = block.withUnsafeBytes { bytes in
                var start = 0
                var pointers: [UnsafePointer<CChar>?] = lengths.map { length in
                    defer { start += length }
                    return bytes.baseAddress?.advanced(by: start).assumingMemoryBound(to: CChar.self)
                }
                return redisAppendCommandArgv(context, Int32(pointers.count), &pointers, lengths)
            }
            guard status == REDIS_OK else { throw failure }
        }

        private var failure: StoreError {
            StoreError(.io, "The exchange with Redis failed: \(failureText).")
        }

        private var failureText: String {
            withUnsafeBytes(of: context.pointee.errstr) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
        }
    }

    extension RedisReply {
        /// Copies a reply; arrays deeper than our scripts return become null.
        fileprivate init(_ reply: UnsafePointer<redisReply>, depth: Int) {
            let content = reply.pointee
            switch content.type {
            case REDIS_REPLY_STRING: self = .bytes(RedisReply.bytes(content))
            case REDIS_REPLY_STATUS: self = .status(String(decoding: RedisReply.bytes(content), as: UTF8.self))
            case REDIS_REPLY_ERROR: self = .error(String(decoding: RedisReply.bytes(content), as: UTF8.self))
            case REDIS_REPLY_INTEGER: self = .integer(Int(content.integer))
            case REDIS_REPLY_ARRAY where depth < 8:
                self = .array(
                    (0..<Int(content.elements)).map { index in
                        content.element[index].map { RedisReply($0, depth: depth + 1) } ?? .null
                    }
                )
            default: self = .null
            }
        }

        private static func bytes(_ reply: redisReply) -> [UInt8] {
            guard let text = reply.str else { return [] }
            return Array(UnsafeRawBufferPointer(start: text, count: Int(reply.len)))
        }
    }

    extension Duration {
        /// Whole milliseconds, at least 0.
        var wholeMilliseconds: Int {
            let (seconds, attoseconds) = components
            guard seconds >= 0, attoseconds >= 0 else { return 0 }
            guard seconds < 1_000_000_000 else { return 1_000_000_000_000 }
            return Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
        }

        /// For system calls, at least one millisecond: 0 would mean forever.
        fileprivate var timeValue: timeval {
            let milliseconds = max(1, wholeMilliseconds)
            return timeval(tv_sec: milliseconds / 1_000, tv_usec: numericCast(milliseconds % 1_000 * 1_000))
        }
    }

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
            if has("WRONGPASS", "invalid password", "AUTH <password>") {
                return StoreError(
                    .badConfiguration,
                    "Redis rejected the user or password in the address. Correct them. \(said)"
                )
            }
            if has("NOAUTH") {
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
            if has("NOPERM", "No permissions", "user executing the script", "ACL failure") {
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
            // Also what Lua says of content that is not the scripts' own.
            if has("WRONGTYPE", "not an integer", "not a valid float", "Expected ", "attempt to ") {
                return StoreError(
                    .corrupt,
                    "A key under the prefix is not Holdfast's or was changed. Use another prefix, or delete it. \(said)"
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
