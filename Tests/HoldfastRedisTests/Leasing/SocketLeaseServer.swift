// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    import Foundation
    import HoldfastTesting
    import Synchronization

    @testable import HoldfastRedis

    /// Leases' view of a redis-server over plain sockets, each on a queue of its own.
    final class SocketLeaseServer: LeaseServer {
        /// Counts the subscriptions that stand.
        let subscribed = CountWatch()
        private let port: Int
        private let commands = DispatchQueue(label: "commands")
        private let socket = Mutex<RESPSocket?>(nil)
        private let hearsMessages: Bool

        /// - Parameter hearsMessages: whether published ends arrive; else those who wait must look.
        init(_ redis: RedisServer, hearsMessages: Bool = true) {
            port = redis.port
            self.hearsMessages = hearsMessages
        }

        func evaluate(_ script: RedisScript, keys: [String], arguments: [String]) async -> String? {
            await withCheckedContinuation { continuation in
                commands.async { [self] in
                    let connection = socket.withLock { socket in
                        if socket == nil { socket = RESPSocket(port: port) }
                        return socket
                    }
                    connection?.send(["EVAL", script.text, "\(keys.count)"] + keys + arguments)
                    let reply = connection?.receive()
                    if reply == nil { socket.withLock { $0 = nil } }
                    if case .text(let text)? = reply {
                        continuation.resume(returning: text)
                    } else {
                        continuation.resume(returning: nil)
                    }
                }
            }
        }

        func subscribe(_ channel: String, receive: @escaping @Sendable (String) -> Void) async {
            guard hearsMessages, let socket = RESPSocket(port: port) else { return await Self.forever() }
            await withTaskCancellationHandler {
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                    DispatchQueue(label: "messages").async { [subscribed] in
                        socket.send(["SUBSCRIBE", channel])
                        while let reply = socket.receive() {
                            guard case .list(let parts) = reply, parts.count == 3 else { continue }
                            if parts[0] == .text("subscribe") { subscribed.increment() }
                            if parts[0] == .text("message"), case .text(let text) = parts[2] { receive(text) }
                        }
                        continuation.resume()
                    }
                }
            } onCancel: {
                socket.hangUp()
            }
        }

        private static func forever() async {
            try? await CountWatch().wait(for: 1)
        }
    }
#endif
