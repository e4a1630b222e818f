// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
public import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Purging: removing stored responses, or requiring validation before they are used again.
extension HTTPCache {
    /// Removes the selected responses, including pinned ones; ``markStale(_:now:)`` keeps what a 304 can confirm.
    ///
    /// A response whose request is sent before this call has returned is not stored, whatever its URL unless `selection` is one URL,
    /// and exchanges in progress are not joined by further calls. Cancelling the task does not end a purge half-way.
    ///
    /// - Parameters:
    ///   - selection: which responses.
    ///   - now: the time used to compute ages; the system's by default.
    /// - Returns: how many stored responses were removed, not counting those still being stored; nil if the store marks them as
    ///   gone in constant time and so does not count them.
    /// - Throws: `StoreError`. What the store guarantees is then removed.
    @discardableResult
    public func remove(
        _ selection: CacheSelection,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> Int? {
        guard let scope = scope(of: selection) else { return 0 }
        writer.invalidations.begin(scope)
        defer { writer.invalidations.end(scope) }
        storedElsewhere.forgetAll()
        if case .tag(let tag) = selection.form { return try await writer.purge(.tag(tag), now: now) }
        var count: Int?
        var failure: StoreError?
        do throws(StoreError) {
            count = try await writer.purge(.matching(responses(of: selection, now: now)), now: now)
        } catch {
            failure = error
        }
        switch selection.form {
        case .all:
            // Also what no predicate is shown: entries whose key is not known now would be back with it.
            do throws(StoreError) {
                try await writer.purge(.all, now: now)
                // Whatever kept the first pass from some of it, all is gone.
                failure = nil
            } catch {
                failure = failure ?? error
            }
        case .principal, .credentials, .path, .prefix:
            // Entries that lead to equivalent queries are not responses and not counted, but they contain URIs and are removed too.
            do throws(StoreError) {
                try await writer.purge(.matching(predicate(of: selection, now: now)), now: now)
            } catch {
                failure = failure ?? error
            }
        case .uri, .tag, .olderThan, .matching: break
        }
        if let failure { throw failure }
        return count
    }

    /// Marks the selected responses, so that they are not used again until the origin has confirmed them: a soft purge.
    ///
    /// Their bodies and validators stay: the next request becomes conditional, and a 304 removes the mark and saves the transfer
    /// (RFC 9111 §4.4). Until then the response is not used at all, not even if the origin fails or the caller accepts whatever
    /// is stored. A response whose request was sent before this call is not stored after it.
    ///
    /// - Parameters:
    ///   - selection: which responses.
    ///   - now: the time used to compute ages; the system's by default.
    /// - Returns: how many stored responses were marked, not counting those still being stored.
    /// - Throws: `StoreError`, after every selected entry was tried. What could not be marked is removed, by a store that cannot be
    ///   reached as soon as it can.
    @discardableResult
    public func markStale(
        _ selection: CacheSelection,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> Int {
        guard let scope = scope(of: selection) else { return 0 }
        writer.invalidations.note(scope)
        let isSelected = responses(of: selection, now: now)
        var count = 0
        let selected = await entries(of: selection, endingWrites: true, now: now)
        var failure = selected.failure
        for entry in selected.found {
            do throws(StoreError) {
                if try await mark(entry, where: isSelected, now: now) { count += 1 }
            } catch {
                failure = failure ?? error
            }
        }
        if selected.failure != nil {
            // What it did not show is removed, if need be later, by a store that makes up for what it could not do.
            let unmarked = PurgeSelection.matching { [self] entry in
                isSelected(entry) && response(of: entry)?.needsConfirmation != true
            }
            _ = try? await writer.purge(unmarked, now: now)
        }
        if let failure { throw failure }
        return count
    }

    /// The targets whose exchanges store nothing if they have begun before.
    ///
    /// - Returns: nil if nothing can be selected, because it is no URI of HTTP.
    private func scope(of selection: CacheSelection) -> InvalidationLog.Scope? {
        guard case .uri(let uri) = selection.form else { return .all }
        // It is not known yet under which other URIs a response in progress may be stored that answers this one.
        return uri.map(options.keyTarget).map { writer.mayHoldSearchVariance ? .all : .target($0) }
    }

    /// The current selected entries, and why the store did not show all of them.
    ///
    /// - Parameter endingWrites: whether entries that are being written are prevented from appearing.
    private func entries(
        of selection: CacheSelection,
        endingWrites: Bool = false,
        now: Timestamp
    ) async -> (found: [StoredEntry], failure: StoreError?) {
        let found = FoundEntries()
        let isSelected = responses(of: selection, now: now)
        let look = PurgeSelection.matching { entry in
            guard isSelected(entry) else { return false }
            if entry.version == .beingWritten { return endingWrites }
            found.add(entry)
            return false
        }
        do throws(StoreError) {
            try await writer.purge(look, now: now)
            return (found.all, nil)
        } catch {
            return (found.all, error)
        }
    }

    /// The entry that has replaced another one; nil if there is none.
    func successor(of entry: StoredEntry, now: Timestamp) async throws(StoreError) -> StoredEntry? {
        try await store.entries(for: entry.key, now: StoreInstant(now)).first { $0.variant == entry.variant }
    }

    /// Marks one entry; false if it is gone by now.
    private func mark(
        _ selected: StoredEntry,
        where isSelected: (StoredEntry) -> Bool,
        now: Timestamp
    ) async throws(StoreError) -> Bool {
        var entry = selected
        for _ in 0..<8 {
            // Also an entry that is marked already: a 304 that is being written for it must find it changed.
            guard let marked = response(of: entry)?.needingConfirmation else { return false }
            var description = entry.description
            description.metadata = marked.encoded
            description.uselessAfter = StoreInstant(marked.uselessAfter(options))
            do throws(StoreError) {
                if try await writer.freshen(entry, with: description, now: now) != nil { return true }
            } catch {
                // What cannot be marked must not be used either.
                try? await writer.remove(entry)
                throw error
            }
            // Freshened meanwhile: by a 304 to a request that may have been sent before the purge.
            guard let newer = try await successor(of: entry, now: now), isSelected(newer) else { return false }
            entry = newer
        }
        // An entry that changes faster than it can be marked is removed, which is safer than using it.
        try await writer.remove(entry)
        return true
    }
}

/// Collects what a store shows to a predicate.
private final class FoundEntries: Sendable {
    private let entries = Mutex<[StoredEntry.Version: StoredEntry]>([:])

    var all: [StoredEntry] { entries.withLock { $0.values.sorted { $0.version < $1.version } } }

    func add(_ entry: StoredEntry) {
        entries.withLock { $0[entry.version] = entry }
    }
}

/// A selection of stored responses, for an ``HTTPCache`` to remove, mark, pin or unpin.
///
/// A selection covers all partitions and all variants, except for those that name one principal. Every form but ``tag(_:)`` looks
/// at each entry of the store, once or twice.
public struct CacheSelection: Sendable {
    enum Form: Sendable {
        case all
        case uri(TargetURI?)
        case path(TargetURI?)
        case prefix(TargetPrefix)
        case tag(String)
        case principal(String)
        case credentials(HeaderFields, userinfo: String?, credentialFields: [FieldName])
        case olderThan(Duration)
        case matching(@Sendable (CacheEntryInfo) -> Bool)
    }

    let form: Form

    /// Every stored response.
    public static let all = CacheSelection(form: .all)

    /// The stored responses of one URL, compared in canonical form (RFC 9110 §4.2.3), and those that match it because of their
    /// No-Vary-Search.
    ///
    /// - Parameter url: its fragment and userinfo are ignored; a URL that is not an http or https URI selects nothing.
    public static func url(_ url: URL) -> CacheSelection {
        CacheSelection(form: .uri(target(url)))
    }

    /// The stored responses of a URL and of everything below its path, compared in canonical form.
    ///
    /// Only whole parts of a URI match: `https://a.example/img` selects `/img`, `/img/1` and `/img?w=2`, but not `/imgs`;
    /// `https://a.example/img/` selects only what is below it; `https://a.example` selects the whole origin. With a query,
    /// `/img?w=2` selects `/img?w=2` and `/img?w=2&h=3`, but not `/img?w=20`.
    ///
    /// - Parameter url: as in ``url(_:)``.
    public static func path(_ url: URL) -> CacheSelection {
        CacheSelection(form: .path(target(url)))
    }

    /// The stored responses whose URL begins with a text: `/max/pre` selects `/max/pre0`.
    ///
    /// - Parameter text: the beginning of a URL, such as `https://a.example/max/pre`, or of path and query at any origin, such
    ///   as `/max/pre`. It is compared in canonical form, as far as it is the beginning of one: a space is `%20`, and `é` is
    ///   `%C3%A9`. The empty text selects everything.
    public static func prefix(_ text: String) -> CacheSelection {
        CacheSelection(form: .prefix(TargetPrefix(text)))
    }

    /// The stored responses of calls that had this tag (``CallOptions/tags``).
    public static func tag(_ tag: String) -> CacheSelection {
        CacheSelection(form: .tag(tag))
    }

    /// The stored responses of one principal's own partition, for a logout.
    ///
    /// - Parameter name: the ``CallOptions/principal`` of the calls.
    public static func principal(_ name: String) -> CacheSelection {
        CacheSelection(form: .principal(name))
    }

    /// The stored responses of the partition that a request's credentials determine: Authorization, Cookie, userinfo and the
    /// fields named here. Cookies that the cache ignores (`CacheOptions.ignoredCookies`) do not count.
    ///
    /// - Parameters:
    ///   - request: a request as it reaches the cache, with the credentials that the hooks above it add. A request without
    ///     credentials selects nothing, and never what belongs to everyone.
    ///   - implicit: what the transport adds, as returned by `pipeline.implicitFields(for: request)`; none by default.
    ///   - credentialFields: the ``CallOptions/credentialFields`` of the calls; none by default.
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

    /// The stored responses for which `predicate` returns true.
    ///
    /// - Parameter predicate: must be quick and must not call the cache. It is also called for responses that are still being
    ///   stored, whose body length is not known yet and given as 0.
    public static func matching(_ predicate: @escaping @Sendable (CacheEntryInfo) -> Bool) -> CacheSelection {
        CacheSelection(form: .matching(predicate))
    }

    private static func target(_ url: URL) -> TargetURI? {
        try? TargetURI(url.absoluteString)
    }
}

/// The beginning of a canonical URL, or of its path and query.
package struct TargetPrefix: Sendable {
    private let text: String
    private let isPath: Bool

    package init(_ beginning: String) {
        // A fragment is no part of a stored URL; a text that is nothing else is not the empty one, which selects everything.
        let text = beginning.hasPrefix("#") ? beginning[...] : beginning.prefix { $0 != "#" }
        isPath = text.hasPrefix("/")
        let origin = "http://a.example"
        let namesPath = isPath || text.drop { $0 != ":" }.dropFirst(3).contains { $0 == "/" || $0 == "?" }
        // An escape may be cut off, and more may follow "." or "..": neither is read as if the URL ended there.
        let cut = text.suffix(2).lastIndex(of: "%").map { text[$0...] } ?? ""
        let whole = (isPath ? origin : "") + text.dropLast(cut.count) + (namesPath ? "x" : "")
        guard let target = try? TargetURI(tolerating: whole) else {
            // Not the beginning of a URL: a canonical form begins with it unchanged, or not at all.
            self.text = String(text)
            return
        }
        var canonical = target.canonical
        // Removes the mark, or the slash of an empty path, which was not written.
        if namesPath || canonical.hasSuffix("/") { canonical.removeLast() }
        canonical += cut.uppercased()
        self.text = isPath ? String(canonical.dropFirst(origin.count)) : canonical
    }

    package func matches(_ target: String) -> Bool {
        guard isPath else { return target.hasPrefix(text) }
        let rest = target.utf8.drop { $0 != UInt8(ascii: ":") }.dropFirst(3).drop { $0 != UInt8(ascii: "/") }
        return Substring(rest).hasPrefix(text)
    }
}

extension HTTPCache {
    /// The selection as a predicate for stored responses only, not for entries that lead to equivalent queries.
    private func responses(of selection: CacheSelection, now: Timestamp) -> @Sendable (StoredEntry) -> Bool {
        let isSelected = predicate(of: selection, now: now)
        return { isSelected($0) && !SearchVarianceKeys.isOne($0.key.bytes) }
    }

    /// The selection as a predicate for one entry.
    func predicate(of selection: CacheSelection, now: Timestamp) -> @Sendable (StoredEntry) -> Bool {
        switch selection.form {
        case .all:
            return { _ in true }
        case .uri(let target):
            guard let target = target.map(options.keyTarget) else { return { _ in false } }
            return isOf(target)
        case .path(let path):
            guard let path else { return { _ in false } }
            return { CacheKey.Parts(framed: $0.key.bytes).map { path.isPrefix(of: $0.target) } ?? false }
        case .prefix(let prefix):
            return { CacheKey.Parts(framed: $0.key.bytes).map { prefix.matches($0.target) } ?? false }
        case .tag(let tag):
            return { $0.description.hasTag(tag) }
        case .principal(let name):
            return isOf([
                CachePrincipal.digest(of: HeaderFields(), userinfo: nil, explicit: name, secret: store.secret)
            ])
        case .credentials(let fields, let userinfo, let credentialFields):
            // Rules may ignore other cookies for other routes, and all of these partitions are the requester's.
            return isOf(
                options.allIgnoredCookies.map {
                    CachePrincipal.digest(
                        of: $0.view(of: fields),
                        userinfo: userinfo,
                        credentialFields: credentialFields,
                        secret: store.secret
                    )
                }
            )
        case .olderThan(let age):
            let seconds = age.wholeSeconds
            return { [self] entry in
                response(of: entry).map { $0.currentAge(now: now) > seconds } ?? false
            }
        case .matching(let predicate):
            return { [self] entry in
                response(of: entry).map {
                    predicate(CacheEntryInfo(entry, stored: $0, options: options, now: now))
                } ?? false
            }
        }
    }

    private func isOf(_ partitions: [String]) -> @Sendable (StoredEntry) -> Bool {
        // The anonymous partition belongs to nobody.
        let partitions = Set(partitions).subtracting([""])
        guard !partitions.isEmpty else { return { _ in false } }
        return { CacheKey.Parts(framed: $0.key.bytes).map { partitions.contains($0.partition) } ?? false }
    }

    private func isOf(_ target: TargetURI) -> @Sendable (StoredEntry) -> Bool {
        guard writer.mayHoldSearchVariance else {
            return { CacheKey.Parts(framed: $0.key.bytes)?.target == target.canonical }
        }
        return { [self] entry in
            guard let text = CacheKey.Parts(framed: entry.key.bytes)?.target else { return false }
            if text == target.canonical { return true }
            // A response that also answers this URI may be stored under another one.
            guard let stored = try? TargetURI(text), stored.isSameOrigin(as: target), stored.path == target.path,
                let response = response(of: entry)
            else { return false }
            return NoVarySearch(response.head.fields).isEquivalent(stored, to: target)
        }
    }
}

/// Keeping responses for times without a network.
extension HTTPCache {
    /// Pins the selected responses, so that the store evicts others instead.
    ///
    /// A pin belongs to the stored variant: it survives freshening, and passes to the response that replaces this one. It does
    /// not prolong a lifetime: offline, a stale response still answers only if RFC 9111 §4.2.4, the options or the call allow
    /// it. Purging and invalidation remove pinned responses too.
    ///
    /// Pinned responses never take more than half of the store's capacity; those that no longer fit are refused and stay
    /// unpinned. A pinned response that grows past that limit loses its pin.
    ///
    /// - Parameters:
    ///   - selection: which responses, not including those still being stored.
    ///   - now: the time used to compute ages; the system's by default.
    /// - Returns: how many are pinned now, and how many did not fit.
    /// - Throws: `StoreError`, after everything was pinned that the store could show; or in the middle, if it could not pin.
    @discardableResult
    public func pin(
        _ selection: CacheSelection,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> PinReport {
        var report = PinReport()
        let selected = await entries(of: selection, now: now)
        for entry in selected.found {
            switch try await setPinned(true, selected: entry, now: now) {
            case .done: report.pinned += 1
            case .refused: report.refused += 1
            case .gone: break
            }
        }
        if let failure = selected.failure { throw failure }
        return report
    }

    /// Removes the pins of the selected responses, which may then be evicted like any other.
    ///
    /// - Parameters:
    ///   - selection: which responses.
    ///   - now: as in ``pin(_:now:)``.
    /// - Returns: how many pins were removed.
    /// - Throws: as in ``pin(_:now:)``.
    @discardableResult
    public func unpin(
        _ selection: CacheSelection,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> Int {
        var released = 0
        let selected = await entries(of: selection, now: now)
        for entry in selected.found where entry.isPinned {
            if case .done = try await setPinned(false, selected: entry, now: now) { released += 1 }
        }
        if let failure = selected.failure { throw failure }
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
            // Either there is no room, or the entry was freshened or replaced meanwhile.
            guard let newer = try await successor(of: entry, now: now) else { return .gone }
            if newer.version == entry.version { return .refused }
            entry = newer
        }
        return .refused
    }
}

/// The result of pinning.
public struct PinReport: Sendable, Hashable {
    /// How many of the selected responses are pinned now, including those that were pinned before.
    public internal(set) var pinned: Int
    /// How many did not fit, so that they may be evicted.
    public internal(set) var refused: Int

    /// A report of these numbers.
    public init(pinned: Int = 0, refused: Int = 0) {
        self.pinned = pinned
        self.refused = refused
    }
}
