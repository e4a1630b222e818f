// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
public import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

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

/// Which stored responses are meant: to be removed, marked, pinned or released by an ``HTTPCache``.
///
/// A selection reaches all partitions and all variants, but for those that name one principal. Every form looks at each entry
/// of the store once.
public struct CacheSelection: Sendable {
    enum Form: Sendable {
        case all
        case uri(TargetURI?)
        case prefix(TargetURI?)
        case tag(String)
        case principal(String)
        case credentials(HeaderFields, userinfo: String?, credentialFields: [FieldName])
        case olderThan(Duration)
        case matching(@Sendable (CacheEntryInfo) -> Bool)
    }

    let form: Form

    /// Every stored response.
    public static let all = CacheSelection(form: .all)

    /// The stored responses of one URL, compared in canonical form (RFC 9110 §4.2.3), and those that answer for it by their
    /// No-Vary-Search.
    ///
    /// - Parameter url: its fragment and userinfo count for nothing; no http or https URI selects nothing.
    public static func url(_ url: URL) -> CacheSelection {
        CacheSelection(form: .uri(target(url)))
    }

    /// The stored responses of a URL and of everything below it, compared in canonical form.
    ///
    /// The prefix ends where a part of a URI ends: `https://a.example/img` takes `/img`, `/img/1` and `/img?w=2`, and not
    /// `/imgs`; `https://a.example/img/` takes what is below alone; `https://a.example` takes the origin. With a query,
    /// `/img?w=2` takes `/img?w=2` and `/img?w=2&h=3`, and not `/img?w=20`.
    ///
    /// - Parameter url: as in ``url(_:)``.
    public static func prefix(_ url: URL) -> CacheSelection {
        CacheSelection(form: .prefix(target(url)))
    }

    /// The stored responses of calls that named this tag (``CallOptions/tags``).
    public static func tag(_ tag: String) -> CacheSelection {
        CacheSelection(form: .tag(tag))
    }

    /// The stored responses of one principal's own partition, for a logout.
    ///
    /// - Parameter name: what the calls gave as ``CallOptions/principal``.
    public static func principal(_ name: String) -> CacheSelection {
        CacheSelection(form: .principal(name))
    }

    /// The stored responses of the partition that a request's credentials name: Authorization, Cookie, userinfo and the fields
    /// named here. Cookies that the cache ignores (`CacheOptions.ignoredCookies`) name none.
    ///
    /// - Parameters:
    ///   - request: a request as it reaches the cache, with the credentials that the hooks above it add. One without any selects
    ///     nothing, and never what belongs to everyone.
    ///   - implicit: what the transport adds, as `pipeline.implicitFields(for: request)` tells; none by default.
    ///   - credentialFields: what the calls gave as ``CallOptions/credentialFields``; none by default.
    public static func principal(
        of request: URLRequest,
        adding implicit: HeaderFields = [:],
        credentialFields: [FieldName] = []
    ) -> CacheSelection {
        let fields = implicit.merging(HeaderFields(request.allHTTPHeaderFields ?? [:]))
        let userinfo = request.url.flatMap(target)?.userinfo
        return CacheSelection(
            form: .credentials(fields, userinfo: userinfo, credentialFields: credentialFields)
        )
    }

    /// The stored responses whose age (RFC 9111 §4.2.3) is greater than `age`, fresh or not.
    public static func olderThan(_ age: Duration) -> CacheSelection {
        CacheSelection(form: .olderThan(age))
    }

    /// The stored responses for which `predicate` holds.
    ///
    /// - Parameter predicate: must be quick and must not call the cache. It is asked about responses that are still being
    ///   stored as well, whose body length is not known yet and shown as 0.
    public static func matching(_ predicate: @escaping @Sendable (CacheEntryInfo) -> Bool) -> CacheSelection {
        CacheSelection(form: .matching(predicate))
    }

    private static func target(_ url: URL) -> TargetURI? {
        try? TargetURI(url.absoluteString)
    }
}

extension HTTPCache {
    /// The selection as a question about one entry.
    func predicate(of selection: CacheSelection, now: Timestamp) -> @Sendable (StoredEntry) -> Bool {
        switch selection.form {
        case .all:
            return { _ in true }
        case .uri(let target):
            guard let target = target.map(options.keyTarget) else { return { _ in false } }
            return isOf(target)
        case .prefix(let prefix):
            guard let prefix else { return { _ in false } }
            return { CacheKey.Parts(framed: $0.key.bytes).map { prefix.isPrefix(of: $0.target) } ?? false }
        case .tag(let tag):
            return { $0.description.tags.contains(tag) }
        case .principal(let name):
            return isOf(
                CachePrincipal.digest(of: HeaderFields(), userinfo: nil, explicit: name, secret: store.secret)
            )
        case .credentials(let fields, let userinfo, let credentialFields):
            return isOf(
                CachePrincipal.digest(
                    of: view(of: fields),
                    userinfo: userinfo,
                    credentialFields: credentialFields,
                    secret: store.secret
                )
            )
        case .olderThan(let age):
            let seconds = age.wholeSeconds
            return { [decoded] entry in
                decoded.response(of: entry).map { $0.currentAge(now: now) > seconds } ?? false
            }
        case .matching(let predicate):
            return { [decoded, options] entry in
                decoded.response(of: entry).map {
                    predicate(CacheEntryInfo(entry, stored: $0, options: options, now: now))
                } ?? false
            }
        }
    }

    private func isOf(_ partition: String) -> @Sendable (StoredEntry) -> Bool {
        // The anonymous partition is nobody's own.
        guard !partition.isEmpty else { return { _ in false } }
        return { CacheKey.Parts(framed: $0.key.bytes)?.partition == partition }
    }

    private func isOf(_ target: TargetURI) -> @Sendable (StoredEntry) -> Bool {
        guard holdsSearchVariance else { return { CacheKey.Parts(framed: $0.key.bytes)?.target == target.canonical } }
        return { [decoded] entry in
            guard let text = CacheKey.Parts(framed: entry.key.bytes)?.target else { return false }
            if text == target.canonical { return true }
            // A response that answers for this URI too is stored under another one.
            guard let stored = try? TargetURI(text), stored.isSameOrigin(as: target), stored.path == target.path,
                let response = decoded.response(of: entry)
            else { return false }
            return NoVarySearch(response.head.fields).isEquivalent(stored, to: target)
        }
    }
}

/// Keeping responses for times without a network.
extension HTTPCache {
    /// Pins the selected responses, so that the store evicts others in their stead.
    ///
    /// A pin belongs to the stored variant: it survives freshening, and goes over to the response that replaces this one. It
    /// prolongs no lifetime: offline, a stale response still answers only where RFC 9111 §4.2.4, the options or the call
    /// allow it. Purging and invalidation take pinned responses too.
    ///
    /// What is pinned never exceeds half of the store's capacity; what no longer fits is refused and stays as it is. A pinned
    /// response that grows past that room loses its pin.
    ///
    /// - Parameters:
    ///   - selection: which responses; those still being stored are not among them.
    ///   - now: the time by which ages are judged; the system's by default.
    /// - Returns: how many are pinned now, and how many found no room.
    /// - Throws: `StoreError`; pins set before the failure stay.
    @discardableResult
    public func pin(
        _ selection: CacheSelection,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> PinReport {
        var report = PinReport()
        for entry in try await entries(of: selection, now: now) {
            switch try await setPinned(true, selected: entry, now: now) {
            case .done: report.pinned += 1
            case .refused: report.refused += 1
            case .gone: break
            }
        }
        return report
    }

    /// Releases the pins of the selected responses, which may then be evicted like any other.
    ///
    /// - Parameters:
    ///   - selection: which responses.
    ///   - now: as in ``pin(_:now:)``.
    /// - Returns: how many pins were released.
    /// - Throws: `StoreError`; pins released before the failure stay released.
    @discardableResult
    public func unpin(
        _ selection: CacheSelection,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> Int {
        var released = 0
        for entry in try await entries(of: selection, now: now) where entry.isPinned {
            if case .done = try await setPinned(false, selected: entry, now: now) { released += 1 }
        }
        return released
    }

    private enum PinStep {
        case done
        case refused
        case gone
    }

    private func setPinned(
        _ pinned: Bool,
        selected: StoredEntry,
        now: Timestamp
    ) async throws(StoreError) -> PinStep {
        var entry = selected
        for _ in 0..<8 {
            if try await writer.setPinned(pinned, entry: entry) { return .done }
            // Either there is no room, or the entry was freshened or replaced since the look.
            guard let newer = try await successor(of: entry, now: now) else { return .gone }
            if newer.version == entry.version { return .refused }
            entry = newer
        }
        return .refused
    }
}

/// What came of pinning.
public struct PinReport: Sendable, Hashable {
    /// How many of the selected responses are pinned now, those included that were before.
    public internal(set) var pinned: Int
    /// How many found no room among the pins, so that they may be evicted.
    public internal(set) var refused: Int

    /// A report of these numbers.
    public init(pinned: Int = 0, refused: Int = 0) {
        self.pinned = pinned
        self.refused = refused
    }
}
