// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import Foundation
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import Synchronization

    /// The part of a server that belongs to one store: all keys with its prefix, which only scripts change.
    final class SharedSpace: Sendable {
        /// A script's answer, and the totals after it.
        struct Answer: Sendable {
            let value: RedisReply
            let bytesUsed: Int
            let entryCount: Int
            let evicted: Int
            /// The server's error when it should publish a change; nil if it was published.
            let untold: String?

            /// The single word that some scripts return.
            var word: String? { value.bytes.map { String(decoding: $0, as: UTF8.self) } }
        }

        let client: RedisClient
        /// The beginning of all keys; because of the braces, all are in one slot of a cluster.
        let root: String
        /// The channel on which changes are published.
        let channel: String
        /// The name of this process on the channel: 16 characters.
        let origin: String
        private let latest = Mutex((used: 0, count: 0, evicted: 0))
        /// What the processes of a store agree on, as last received.
        private struct Agreement {
            var isKnown = false
            var secret: [UInt8]
            var epoch: [UInt8] = []
            var number = 0
        }
        private let agreement: Mutex<Agreement>
        /// How often the server refused something, and the last error.
        private let troubles = Mutex<(refusals: Int, last: String?)>((0, nil))
        // A mutex that held the closure itself would wrap it once more at each look.
        private struct Renewal {
            let action: @Sendable () -> Void
        }
        private let onRenewal = Mutex<Renewal?>(nil)

        init(_ client: RedisClient, prefix: String) {
            self.client = client
            root = "holdfast:2:{\(prefix)}:"
            channel = root + "changes"
            origin = SharedSpace.name()
            var random = SystemRandomNumberGenerator()
            agreement = Mutex(Agreement(secret: (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }))
        }

        /// How often the server refused something, and the last error of the server or the connection.
        var trouble: (refusals: Int, last: String?) { troubles.withLock { $0 } }

        func note(_ error: StoreError) {
            troubles.withLock { troubles in
                if error.code != .io, error.code != .temporarilyUnavailable { troubles.refusals += 1 }
                // That the server is not asked for a while explains nothing.
                if error.code != .temporarilyUnavailable || troubles.last == nil { troubles.last = error.message }
            }
        }

        func whenRenewed(_ handler: @escaping @Sendable () -> Void) {
            onRenewal.withLock { $0 = Renewal(action: handler) }
        }

        /// The store's secret, made by the first process that needs one; this process's own until it is known.
        var secret: [UInt8] { agreement.withLock { $0.secret } }
        var knowsSecret: Bool { agreement.withLock { $0.isKnown } }

        /// What is stored as far as this process knows, and what it has evicted.
        var totals: (used: Int, count: Int, evicted: Int) { latest.withLock { $0 } }

        /// Runs a script.
        ///
        /// In a full server, the oldest entries make room for what a script must add.
        ///
        /// - Throws: the client's errors, and those of ``RedisReply/refusal`` if the server refuses the script.
        func run(_ script: SharedScript, with arguments: [[UInt8]]) async throws(StoreError) -> Answer {
            var bytes = arguments.reduce(64 << 10) { $0 + 2 * $1.count }
            while true {
                do throws(StoreError) {
                    return try await send(script, with: arguments)
                } catch {
                    guard error.code == .noSpace, bytes < 64 << 20,
                        try await send(.shrink, with: [Array("\(bytes)".utf8), Array("0".utf8)]).evicted > 0
                    else { throw error }
                    bytes *= 4
                }
            }
        }

        private func send(_ script: SharedScript, with arguments: [[UInt8]]) async throws(StoreError) -> Answer {
            let known = agreement.withLock { $0 }
            let words =
                [Array("1".utf8), Array(root.utf8)] + arguments
                + [known.secret, Array(origin.utf8), Array("\(known.number)".utf8)]
            return try answer(try await client.run(script.script, with: words))
        }

        func run(_ script: SharedScript, with arguments: String...) async throws(StoreError) -> Answer {
            try await run(script, with: arguments.map { Array($0.utf8) })
        }

        private func answer(_ reply: RedisReply) throws(StoreError) -> Answer {
            if let refusal = reply.refusal { throw refusal }
            guard let parts = reply.array, parts.count == 8, let used = parts[1].integer, let count = parts[2].integer,
                let evicted = parts[3].integer, let epoch = parts[4].bytes, let number = parts[5].integer,
                let secret = parts[6].bytes, let untold = parts[7].bytes
            else { throw SharedSpace.unreadable }
            let isRenewed = agreement.withLock { agreement in
                if secret.count >= 16 { (agreement.secret, agreement.isKnown) = (secret, true) }
                // A lower one is of a reply that was overtaken, or of a server that has lost something, which the next call tells it.
                agreement.number = max(agreement.number, number)
                if agreement.epoch == epoch { return false }
                defer { agreement.epoch = epoch }
                return !agreement.epoch.isEmpty
            }
            if !untold.isEmpty { note(RedisReply.refusal(for: String(decoding: untold, as: UTF8.self))) }
            if isRenewed { dropCopies() }
            latest.withLock { latest in
                latest.used = max(0, used)
                latest.count = max(0, count)
                latest.evicted += evicted
            }
            return Answer(
                value: parts[0],
                bytesUsed: used,
                entryCount: count,
                evicted: evicted,
                untold: untold.isEmpty ? nil : String(decoding: untold, as: UTF8.self)
            )
        }

        /// Has the handler of ``whenRenewed(_:)`` drop all copies.
        func dropCopies() { onRenewal.withLock { $0 }?.action() }

        static let unreadable = StoreError(
            .corrupt,
            "Redis has other data under the store's prefix; choose another prefix."
        )

        /// Sixteen unique characters.
        static func name() -> String {
            var random = SystemRandomNumberGenerator()
            let digits = String(UInt64.random(in: 0...UInt64.max, using: &random), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }

        /// The name of a primary key: that of its group, and a part of its SHA-256; the whole key is compared on every hit.
        static func digest(of key: StoreKey) -> String {
            let own = SHA256Digest(hashing: key.bytes).hex
            let group = CacheKey.targetPrefixLength(of: key.bytes).map { groupName(Array(key.bytes.prefix($0))) }
            return (group ?? String(own.suffix(8))) + own.prefix(24)
        }

        /// The name of all keys of one URI and method, whatever the content; nil for another prefix. Names of keys begin with it, so
        /// that the index has them in one place.
        static func group(ofPrefix prefix: [UInt8]) -> String? {
            CacheKey.targetPrefixLength(of: prefix) == prefix.count ? groupName(prefix) : nil
        }

        private static func groupName(_ prefix: [UInt8]) -> String {
            String(SHA256Digest(hashing: prefix).hex.prefix(8))
        }

        /// The name of an entry.
        static func name(of key: StoreKey, _ variant: StoreKey) -> String {
            digest(of: key) + "." + digest(of: variant)
        }
    }

    /// Descriptions and entries as the scripts receive and return them.
    enum EntryWords {
        /// What an entry costs besides its bytes, as measured: the keys, its hash and its places in the index.
        static let overhead = 3_072
        private static let never = "never"

        /// Metadata, the instant from which the entry is useless, tags.
        static func words(of description: EntryDescription) -> [[UInt8]] {
            [
                description.metadata.array,
                Array(instant(description.uselessAfter).utf8),
                tags(description.tags),
            ]
        }

        /// The bytes that an entry counts against the capacity; nil if the number would overflow.
        static func size(_ key: StoreKey, variant: StoreKey, description: EntryDescription, body: Int) -> Int? {
            let marks = EntryDescription.kept(description.tags).reduce(0) { $0 + 3 * $1.utf8.count + 192 }
            let (sum, overflow) =
                (overhead + key.bytes.count + variant.bytes.count + description.metadata.count + marks)
                .addingReportingOverflow(max(0, body))
            if overflow { return nil }
            // Allocators round up: strings of some kilobytes by an eighth at most, the chunks of a body by little.
            let (whole, isTooMuch) = sum.addingReportingOverflow(min(sum / 8, 2_048 + max(0, body) / 32))
            return isTooMuch ? nil : whole
        }

        /// The entry that a script returned; nil if it is invalid.
        ///
        /// - Parameter key: the primary key, if the script omits it.
        static func entry(_ shown: [RedisReply], of key: StoreKey?) -> (entry: StoredEntry, bytes: Int)? {
            guard shown.count == 10, let bytes = shown[0].bytes, let variant = shown[1].bytes,
                let metadata = shown[2].bytes,
                let useless = shown[3].bytes, let tags = shown[4].bytes, let version = shown[5].integer,
                let length = shown[6].integer, let storedAt = shown[7].integer, let pinned = shown[8].integer,
                let size = shown[9].integer, version > 0, length >= 0
            else { return nil }
            let entry = StoredEntry(
                key: key ?? StoreKey(bytes),
                variant: StoreKey(variant),
                version: StoredEntry.Version(number: UInt64(version)),
                description: description(metadata, uselessAfter: useless, tags: tags),
                bodyLength: length,
                storedAt: StoreInstant(milliseconds: Int64(storedAt)),
                isPinned: pinned == 1
            )
            return (entry, max(0, size))
        }

        static func description(_ metadata: [UInt8], uselessAfter useless: [UInt8], tags: [UInt8]) -> EntryDescription {
            EntryDescription(
                metadata: ByteChunk(metadata),
                uselessAfter: Int64(String(decoding: useless, as: UTF8.self)).map { StoreInstant(milliseconds: $0) }
                    ?? .distantFuture,
                tags: (try? JSONDecoder().decode(Set<String>.self, from: Data(tags))) ?? []
            )
        }

        /// Instants that a server's numbers can represent exactly; later ones are never.
        static func instant(_ instant: StoreInstant) -> String {
            abs(instant.milliseconds.clamped) < 1 << 52 ? "\(instant.milliseconds)" : never
        }

        /// The description as it is stored.
        static func bounded(_ description: EntryDescription) -> EntryDescription {
            var bounded = description
            bounded.tags = EntryDescription.kept(description.tags)
            if instant(description.uselessAfter) == never { bounded.uselessAfter = .distantFuture }
            return bounded
        }

        private static func tags(_ tags: Set<String>) -> [UInt8] {
            let kept = EntryDescription.kept(tags).sorted()
            if kept.isEmpty { return Array("[]".utf8) }
            return (try? JSONEncoder().encode(kept)).map { Array($0) } ?? Array("[]".utf8)
        }
    }

    extension Int64 {
        /// A number whose magnitude can also be represented.
        fileprivate var clamped: Int64 { Swift.max(self, -.max) }
    }
#endif
