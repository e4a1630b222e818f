// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// Looks at everything that lies in a store, bodies included.
enum CrashSurvey {
    /// What lies under each name, and what is wrong with it.
    static func lines(of store: any CacheStore, now: StoreInstant) async -> [CrashLine] {
        var lines: [CrashLine] = []
        for key in Set(CrashIdentity.all.map(\.key)).sorted() {
            lines += await self.lines(of: store, key: key, now: now)
        }
        return lines + [.surveyed]
    }

    private static func lines(of store: any CacheStore, key: String, now: StoreInstant) async -> [CrashLine] {
        var lines: [CrashLine] = []
        let entries: [StoredEntry]
        do {
            entries = try await store.entries(for: StoreKey(Array(key.utf8)), now: now)
        } catch {
            return [.wrong("look-up of \(key): \(error.code)")]
        }
        for variant in CrashIdentity.variants {
            let identity = CrashIdentity(key: key, variant: variant)
            let found = entries.filter { $0.key == identity.storeKey && $0.variant == identity.storeVariant }
            if found.count > 1 { lines.append(.wrong("\(identity) is there \(found.count) times")) }
            guard let entry = found.first else {
                lines.append(.saw(identity, nil))
                continue
            }
            guard let stamp = CrashStamp(entry.description) else {
                lines.append(.wrong("\(identity) has foreign metadata"))
                continue
            }
            if let fault = await fault(in: entry, stamp, identity, store) {
                lines.append(.wrong("\(identity) \(stamp): \(fault)"))
            }
            lines.append(.saw(identity, CrashSight(stamp: stamp, isPinned: entry.isPinned)))
        }
        if entries.count > CrashIdentity.variants.count { lines.append(.wrong("\(key) has foreign variants")) }
        return lines
    }

    /// What is wrong with an entry; nil: nothing.
    ///
    /// - Parameters:
    ///   - entry: what the store gave.
    ///   - stamp: what its metadata says of it.
    ///   - identity: what it was asked for as.
    ///   - store: what its body is read from.
    ///   - mayBeGone: whether others work on the store, so that the body may be gone by now.
    static func fault(
        in entry: StoredEntry,
        _ stamp: CrashStamp,
        _ identity: CrashIdentity,
        _ store: any CacheStore,
        mayBeGone: Bool = false
    ) async -> String? {
        if entry.description.tags != stamp.tags { return "tags \(entry.description.tags.sorted())" }
        if entry.bodyLength != stamp.length { return "length \(entry.bodyLength)" }
        do throws(StoreError) {
            let body = try await store.body(of: entry)
            var bytes: [UInt8] = []
            while true {
                let chunk = try await body.read(from: bytes.count, upTo: 100_000)
                if chunk.isEmpty { break }
                chunk.append(to: &bytes)
            }
            return areSame(bytes, stamp.body(of: identity)) ? nil : "wrong bytes"
        } catch {
            return mayBeGone && error.code == .superseded ? nil : "body: \(error.code)"
        }
    }
}
