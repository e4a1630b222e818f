// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
public import HoldfastStorage
private import Synchronization

/// Purging: a person takes stored responses away, or has them confirmed before they are used again.
extension HTTPCache {
    /// Removes the selected responses, or marks them so that none is used again before the origin has confirmed it.
    ///
    /// *Hard* (the default) entries are gone, pinned ones included. *Softly* their bodies and validators stay: the next request
    /// makes a conditional one of it, and a 304 lifts the mark and spares the transfer (RFC 9111 §4.4). Until then such a
    /// response stands in for nothing, neither for a failing origin nor for a caller that takes whatever is stored.
    ///
    /// Either way a response whose request was sent before this call is not stored after it, and exchanges under way take no
    /// further calls in. Cancelling the task does not end a purge half-way.
    ///
    /// - Parameters:
    ///   - selection: which responses.
    ///   - softly: whether they are marked rather than removed.
    ///   - now: the time by which ages are judged; the system's by default.
    /// - Returns: how many stored responses were removed or marked, those still being stored not among them; nil where the
    ///   store marks them as gone in constant time and so has not counted them.
    /// - Throws: `StoreError`. A hard purge has then removed what the store's promises allow; a soft one has gone through all
    ///   entries and marked every one it could.
    @discardableResult
    public func remove(
        _ selection: CacheSelection,
        softly: Bool = false,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> Int? {
        if case .uri(let target) = selection.form {
            guard let target = target.map(options.keyTarget) else { return 0 }
            // Under which other URIs a response under way may be stored that answers for this one, is not known yet.
            if holdsSearchVariance { writer.invalidations.noteAll() } else { writer.invalidations.note(target) }
        } else {
            writer.invalidations.noteAll()
        }
        if softly { return try await mark(selection, now: now) }
        storedElsewhere.forgetAll()
        if case .tag(let tag) = selection.form { return try await writer.purge(.tag(tag), now: now) }
        let isSelected = predicate(of: selection, now: now)
        let count = try await writer.purge(
            .matching { isSelected($0) && !SearchVarianceKeys.isOne($0.key.bytes) },
            now: now
        )
        switch selection.form {
        case .all, .principal, .credentials, .prefix:
            // What leads to equivalent queries is no response and not counted, but names URIs and goes with them.
            try await writer.purge(.matching(isSelected), now: now)
        case .uri, .tag, .olderThan, .matching: break
        }
        return count
    }

    /// Removes every stored response for a URL, of all partitions and variants.
    ///
    /// - Returns: how many entries were removed; 0 as well where the URL is no http or https URI, nil where the store has not
    ///   counted them.
    @discardableResult
    public func remove(_ url: URL) async throws(StoreError) -> Int? {
        try await remove(.url(url))
    }

    /// Removes every stored response.
    public func removeAll() async throws(StoreError) {
        try await remove(.all)
    }

    /// Removes the stored responses of calls that named `tag`.
    ///
    /// - Returns: how many entries were removed; nil where the store has not counted them.
    @discardableResult
    public func removeAll(tag: String) async throws(StoreError) -> Int? {
        try await remove(.tag(tag))
    }

    /// Removes what one principal's own partition holds; call it at logout.
    ///
    /// - Parameter principal: what the calls gave as ``CallOptions/principal``; for credentials in the request see
    ///   ``CacheSelection/principal(of:adding:credentialFields:)``.
    /// - Returns: how many entries were removed; nil where the store has not counted them.
    @discardableResult
    public func removeAll(principal: String) async throws(StoreError) -> Int? {
        try await remove(.principal(principal))
    }

    /// The selected entries as they are now.
    ///
    /// - Parameter endingWrites: whether those that are being written are kept from appearing.
    func entries(
        of selection: CacheSelection,
        endingWrites: Bool = false,
        now: Timestamp
    ) async throws(StoreError) -> [StoredEntry] {
        let found = FoundEntries()
        let isSelected = predicate(of: selection, now: now)
        let look = PurgeSelection.matching { entry in
            guard isSelected(entry), !SearchVarianceKeys.isOne(entry.key.bytes) else { return false }
            if entry.version == .beingWritten { return endingWrites }
            found.add(entry)
            return false
        }
        try await writer.purge(look, now: now)
        return found.all
    }

    /// The entry that stands in the place of one that was replaced; nil where none does.
    func successor(of entry: StoredEntry, now: Timestamp) async throws(StoreError) -> StoredEntry? {
        try await store.entries(for: entry.key, now: StoreInstant(now)).first { $0.variant == entry.variant }
    }

    private func mark(_ selection: CacheSelection, now: Timestamp) async throws(StoreError) -> Int {
        let isSelected = predicate(of: selection, now: now)
        var count = 0
        var failure: StoreError?
        for entry in try await entries(of: selection, endingWrites: true, now: now) {
            do throws(StoreError) {
                if try await mark(entry, where: isSelected, now: now) { count += 1 }
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return count
    }

    /// Marks one entry; false where it is gone meanwhile.
    private func mark(
        _ selected: StoredEntry,
        where isSelected: (StoredEntry) -> Bool,
        now: Timestamp
    ) async throws(StoreError) -> Bool {
        var entry = selected
        for _ in 0..<8 {
            guard let stored = decoded.response(of: entry) else { return false }
            if stored.confirmationReason == .softPurged { return true }
            let marked = stored.needingConfirmation
            var description = entry.description
            description.metadata = marked.encoded
            description.uselessAfter = StoreInstant(marked.uselessAfter(options))
            if try await writer.freshen(entry, with: description, claim: nil, for: nil, now: now) != nil { return true }
            // Freshened since the look: by a 304 to a request that may have been sent before the purge.
            guard let newer = try await successor(of: entry, now: now), isSelected(newer) else { return false }
            entry = newer
        }
        // One that changes faster than it can be marked is better gone than used.
        try await writer.remove(entry)
        return true
    }
}

/// Gathers what a store shows to a predicate.
private final class FoundEntries: Sendable {
    private let entries = Mutex<[StoredEntry.Version: StoredEntry]>([:])

    var all: [StoredEntry] { entries.withLock { $0.values.sorted { $0.version < $1.version } } }

    func add(_ entry: StoredEntry) {
        entries.withLock { $0[entry.version] = entry }
    }
}
