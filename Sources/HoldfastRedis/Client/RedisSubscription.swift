// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import Foundation
    internal import HoldfastStorage
    internal import Synchronization

    /// Listens to channels of a server, on its own connection and thread, and reconnects after a loss.
    final class RedisSubscription: Sendable {
        /// What a subscription reports; closed.
        enum Event: Sendable, Hashable {
            /// From here on no message is missed, until ``lost``.
            case listening
            /// From here on messages may be missed.
            case lost
            /// A message on a channel.
            case message(channel: [UInt8], payload: [UInt8])
            /// The server cannot be reached or does not allow this user to listen.
            case failed(String)
        }

        private let isEnded = Atomic(false)

        /// Starts listening.
        ///
        /// - Parameters:
        ///   - channels: names of channels.
        ///   - client: has the address of the server and the timeouts, and learns when the server has become a replica.
        ///   - handler: is called with each event, in order, on the subscription's thread; must be quick.
        init(to channels: [String], of client: RedisClient, handler: @escaping @Sendable (Event) -> Void) {
            let (address, options) = (client.address, client.options)
            let thread = Thread { [weak self, weak client] in
                var rest = options.firstRest
                while let subscription = self, !subscription.isOver {
                    let end: @Sendable () -> Bool = { [weak subscription] in subscription?.isOver ?? true }
                    let wasUp = RedisSubscription.listen(
                        to: channels,
                        at: address,
                        options: options,
                        demotions: { client?.demotions ?? 0 },
                        isOver: end,
                        handler: handler
                    )
                    rest = wasUp ? options.firstRest : min(rest * 2, options.longestRest)
                    // In short steps, so that ending does not have to wait.
                    var left = rest * Double.random(in: 0.5...1)
                    while left > .zero, !end() {
                        Thread.sleep(forTimeInterval: 0.05)
                        left -= .milliseconds(50)
                    }
                }
            }
            thread.name = "holdfast.redis.messages"
            thread.start()
        }

        /// Ends it within a second; events until then are still reported.
        func end() {
            isEnded.store(true, ordering: .releasing)
        }

        deinit {
            end()
        }

        private var isOver: Bool { isEnded.load(ordering: .acquiring) }

        /// - Returns: whether it was ever listening.
        private static func listen(
            to channels: [String],
            at address: RedisAddress,
            options: RedisClient.Options,
            demotions: () -> Int,
            isOver: () -> Bool,
            handler: (Event) -> Void
        ) -> Bool {
            var isListening = false
            do throws(StoreError) {
                let known = demotions()
                let connection = try RedisConnection(
                    address,
                    connectTimeout: options.connectTimeout,
                    commandTimeout: options.commandTimeout
                )
                // Only a primary has all messages; a replica refuses even this, which changes nothing.
                let reply = try connection.exchange([RedisCommand("DEL", channels[0] + ":none")]).first
                if let refusal = reply?.refusal, refusal.code == .readOnly { throw refusal }
                try connection.post(RedisCommand([Array("SUBSCRIBE".utf8)] + channels.map { Array($0.utf8) }))
                var confirmed = 0
                var silence = 0
                while !isOver() {
                    guard demotions() == known else { throw StoreError(.io, "Redis has become a replica.") }
                    guard let reply = try connection.nextReply(within: .milliseconds(500)) else {
                        silence += 1
                        // A peer that vanished says nothing; a live one answers this.
                        if silence == 4 { try connection.post(RedisCommand("PING")) }
                        if silence > 4 + max(2, options.commandTimeout.wholeMilliseconds / 500) {
                            throw StoreError(.io, "Redis stopped answering.")
                        }
                        continue
                    }
                    silence = 0
                    if let refusal = reply.refusal { throw refusal }
                    guard let parts = reply.array, let kind = parts.first?.bytes else { continue }
                    switch String(decoding: kind, as: UTF8.self) {
                    case "subscribe":
                        confirmed += 1
                        if confirmed == channels.count {
                            isListening = true
                            handler(.listening)
                        }
                    case "message" where parts.count == 3:
                        handler(.message(channel: parts[1].bytes ?? [], payload: parts[2].bytes ?? []))
                    default: break
                    }
                }
            } catch {
                // It is tried again; the loss is reported below.
                handler(.failed(error.message))
            }
            if isListening { handler(.lost) }
            return isListening
        }
    }
#endif
