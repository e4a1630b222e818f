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

    /// One connection, by hiredis; it blocks, so it lives and dies on one thread of its own.
    final class RedisConnection {
        private let context: UnsafeMutablePointer<redisContext>

        /// Connects, and says who asks and which database is meant.
        ///
        /// - Throws: `.io`, also where the server refuses; the message shows no password.
        init(_ address: RedisAddress, connectTimeout: Duration, commandTimeout: Duration) throws(StoreError) {
            let timeout = connectTimeout.timeValue
            let made =
                switch address.place {
                case .host(let host, let port): redisConnectWithTimeout(host, port, timeout)
                case .socket(let path): redisConnectUnixWithTimeout(path, timeout)
                }
            guard let made else { throw StoreError(.io, "There is no memory for a connection to Redis.") }
            context = made
            guard made.pointee.err == 0 else {
                throw StoreError(
                    .io,
                    "Redis at \(address) cannot be reached: \(failureText); start it or mend the address."
                )
            }
            redisSetTimeout(made, commandTimeout.timeValue)
            redisEnableKeepAlive(made)
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
                // A server may not know how to name clients; that it refuses the others ends it.
                if let text = reply.errorText, index < greetings.count - 1 {
                    throw StoreError(
                        .badConfiguration,
                        "Redis at \(address) refuses: \(text); mend user, password or database."
                    )
                }
            }
        }

        deinit {
            redisFree(context)
        }

        /// Whether the peer has closed the connection, or said something that nobody asked for.
        var isStale: Bool {
            var byte: UInt8 = 0
            let count = recv(context.pointee.fd, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
            return count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)
        }

        /// Sends commands in one go and takes their replies in order.
        ///
        /// - Throws: `.io`; the connection must then be dropped, since nobody knows what has been done.
        func exchange(_ commands: [RedisCommand]) throws(StoreError) -> [RedisReply] {
            for command in commands { try append(command) }
            var replies: [RedisReply] = []
            replies.reserveCapacity(commands.count)
            for _ in commands {
                var raw: UnsafeMutableRawPointer?
                guard redisGetReply(context, &raw) == REDIS_OK, let raw else { throw failure }
                defer { freeReplyObject(raw) }
                replies.append(RedisReply(raw.assumingMemoryBound(to: redisReply.self), depth: 0))
            }
            return replies
        }

        /// Sends a command whose replies come when they come.
        func post(_ command: RedisCommand) throws(StoreError) {
            try append(command)
            var isDone: Int32 = 0
            repeat {
                guard redisBufferWrite(context, &isDone) == REDIS_OK else { throw failure }
            } while isDone == 0
        }

        /// The next reply that comes within a time; nil where none does.
        func nextReply(within time: Duration) throws(StoreError) -> RedisReply? {
            var raw: UnsafeMutableRawPointer?
            guard redisGetReplyFromReader(context, &raw) == REDIS_OK else { throw failure }
            if raw == nil {
                var descriptor = pollfd(fd: context.pointee.fd, events: Int16(POLLIN), revents: 0)
                let count = poll(&descriptor, 1, Int32(clamping: time.wholeMilliseconds))
                guard count > 0 else { return nil }
                guard redisBufferRead(context) == REDIS_OK else { throw failure }
                guard redisGetReplyFromReader(context, &raw) == REDIS_OK else { throw failure }
            }
            guard let raw else { return nil }
            defer { freeReplyObject(raw) }
            return RedisReply(raw.assumingMemoryBound(to: redisReply.self), depth: 0)
        }

        private func append(_ command: RedisCommand) throws(StoreError) {
            // One block for all words, so that each pointer stays good until hiredis has copied what it points to.
            let lengths = command.words.map(\.count)
            let block = Array(command.words.joined()) + [0]
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
        /// Copies a reply; what lies deeper than scripts of ours answer counts as nothing.
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

        /// As the system's calls take it, at least a millisecond: 0 would mean for ever.
        fileprivate var timeValue: timeval {
            let milliseconds = max(1, wholeMilliseconds)
            return timeval(tv_sec: milliseconds / 1_000, tv_usec: numericCast(milliseconds % 1_000 * 1_000))
        }
    }
#endif
