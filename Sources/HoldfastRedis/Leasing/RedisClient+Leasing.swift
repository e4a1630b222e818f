// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import Foundation
    internal import HoldfastStorage
    internal import Synchronization

    extension RedisClient: LeaseServer {
        package func evaluate(_ script: String, keys: [String], arguments: [String]) async -> String? {
            let words = ["\(keys.count)"] + keys + arguments
            func command(_ name: String, script: String) -> RedisCommand {
                RedisCommand(([name, script] + words).map { Array($0.utf8) })
            }
            let digest = ScriptDigest(of: Array(script.utf8)).hex
            guard var reply = try? await send(command("EVALSHA", script: digest)) else { return nil }
            if let text = reply.errorText, text.hasPrefix("NOSCRIPT") {
                guard let again = try? await send(command("EVAL", script: script)) else { return nil }
                reply = again
            }
            return reply.bytes.map { String(decoding: $0, as: UTF8.self) }
        }

        package func subscribe(_ channel: String, receive: @escaping @Sendable (String) -> Void) async {
            let (losses, loss) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            let subscription = RedisSubscription(to: [channel], of: self) { event in
                switch event {
                case .listening, .failed: break
                case .lost: loss.finish()
                case .message(_, let payload): receive(String(decoding: payload, as: UTF8.self))
                }
            }
            for await _ in losses {}
            subscription.end()
        }
    }
#endif
