// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import Foundation
    internal import HoldfastStorage

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
            let marks = kept(description.tags).reduce(0) { $0 + 2 * $1.utf8.count + 192 }
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
            bounded.tags = kept(description.tags)
            if instant(description.uselessAfter) == never { bounded.uselessAfter = .distantFuture }
            return bounded
        }

        private static func kept(_ tags: Set<String>) -> Set<String> {
            Set(tags.filter { $0.utf8.count <= 1_024 }.sorted().prefix(64))
        }

        private static func tags(_ tags: Set<String>) -> [UInt8] {
            let kept = kept(tags).sorted()
            if kept.isEmpty { return Array("[]".utf8) }
            return (try? JSONEncoder().encode(kept)).map { Array($0) } ?? Array("[]".utf8)
        }
    }

    extension Int64 {
        /// A number whose magnitude can also be represented.
        fileprivate var clamped: Int64 { Swift.max(self, -.max) }
    }
#endif
