// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import Synchronization

    /// The part of a server that one store has: all keys with its prefix, changed by scripts alone.
    final class SharedSpace: Sendable {
        /// What a script answered, and what the space holds since.
        struct Answer: Sendable {
            let value: RedisReply
            let bytesUsed: Int
            let entryCount: Int
            let evicted: Int

            /// The one word that some scripts answer with.
            var word: String? { value.bytes.map { String(decoding: $0, as: UTF8.self) } }
        }

        let client: RedisClient
        /// What all keys begin with; the braces make all of it lie in one slot of a cluster.
        let root: String
        /// The channel on which changes are told.
        let channel: String
        /// Who tells them: 16 characters, another one in each process.
        let origin: String
        private let latest = Mutex((used: 0, count: 0, evicted: 0))

        init(_ client: RedisClient, prefix: String) {
            self.client = client
            root = "holdfast:1:{\(prefix)}:"
            channel = root + "changes"
            origin = SharedSpace.name()
        }

        /// What is held now as far as this process was told, and what it has evicted.
        var totals: (used: Int, count: Int, evicted: Int) { latest.withLock { $0 } }

        /// Runs a script.
        ///
        /// - Throws: what the client throws; `.io` where the server refuses the script.
        func run(_ script: SharedScript, _ arguments: [[UInt8]]) async throws(StoreError) -> Answer {
            let words = [Array("1".utf8), Array(root.utf8)] + arguments
            var reply = try await client.send(RedisCommand([Array("EVALSHA".utf8), Array(script.digest.utf8)] + words))
            if let text = reply.errorText, text.hasPrefix("NOSCRIPT") {
                reply = try await client.send(RedisCommand([Array("EVAL".utf8), Array(script.text.utf8)] + words))
            }
            return try answer(reply)
        }

        func run(_ script: SharedScript, _ arguments: String...) async throws(StoreError) -> Answer {
            try await run(script, arguments.map { Array($0.utf8) })
        }

        private func answer(_ reply: RedisReply) throws(StoreError) -> Answer {
            if let text = reply.errorText {
                throw StoreError(
                    .io,
                    "Redis refuses what the store needs: \(text.prefix(200)); look into its configuration."
                )
            }
            guard let parts = reply.array, parts.count == 4, let used = parts[1].integer, let count = parts[2].integer,
                let evicted = parts[3].integer
            else { throw SharedSpace.unreadable }
            latest.withLock { latest in
                latest.used = used
                latest.count = count
                latest.evicted += evicted
            }
            return Answer(value: parts[0], bytesUsed: used, entryCount: count, evicted: evicted)
        }

        static let unreadable = StoreError(
            .corrupt,
            "Redis holds something else under the store's prefix; choose another prefix."
        )

        /// Sixteen characters that nobody else has.
        static func name() -> String {
            var random = SystemRandomNumberGenerator()
            let digits = String(UInt64.random(in: 0...UInt64.max, using: &random), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }

        /// What a primary key is called: half of its SHA-256, whose whole key is compared on every hit.
        static func digest(of key: StoreKey) -> String {
            String(SHA256Digest(hashing: key.bytes).hex.prefix(32))
        }

        /// What an entry is called.
        static func name(of key: StoreKey, _ variant: StoreKey) -> String {
            digest(of: key) + "." + digest(of: variant)
        }
    }
#endif
