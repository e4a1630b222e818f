// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
public import HoldfastStorage
private import Synchronization

/// A cache for HTTP responses by RFC 9111, over any ``CacheStore``.
///
/// Hand one to `Pipeline(cache:)`; several pipelines may share one. Responses to requests with credentials (Authorization,
/// Cookie, userinfo, or the principal a call names) live in a partition of their own, named by a keyed digest: each partition
/// is a cache by itself, and no response crosses from one to another.
///
/// A store failure is an event and a miss, never an error of a request.
public final class HTTPCache: Sendable {
    /// Where responses are kept.
    public let store: any CacheStore
    /// How the rules are applied.
    public let options: CacheOptions

    let decoded: DecodedResponses
    let invalidations = InvalidationLog()
    let flights = FlightTable()
    /// Keys whose last response could not be shared.
    let unshared = RecentKeys()
    /// Keys whose last revalidation in the background failed.
    let paused = RecentKeys()
    /// Whether entries may be there whose keys have content in them: they are found by a scan, which is spared while none are.
    private let contentKeys: Atomic<Bool>
    /// Whether entries may be there that answer for several queries.
    private let searchVariance: Atomic<Bool>
    private let counts = Mutex(CacheStatistics())

    /// A cache over `store`; private mode by default.
    public init(store: any CacheStore, options: CacheOptions = CacheOptions()) {
        self.store = store
        self.options = options
        contentKeys = Atomic(store.statistics.entryCount > 0)
        searchVariance = Atomic(store.statistics.entryCount > 0)
        decoded = DecodedResponses(targetedFields: options.targets)
    }

    /// What was counted so far.
    public var statistics: CacheStatistics {
        counts.withLock { $0 }
    }

    /// Removes every stored response for a URL, of all partitions and variants.
    ///
    /// - Returns: how many entries were removed; 0 as well where the URL is no http or https URI.
    @discardableResult
    public func remove(_ url: URL) async throws -> Int {
        guard let asked = try? TargetURI(url.absoluteString) else { return 0 }
        let target = options.keyTarget(of: asked)
        invalidations.note(target)
        return try await store.purge(
            .matching {
                HTTPCache.canonicalURI(ofKey: $0.key.bytes) == target.canonical
                    && !SearchVarianceKeys.isOne($0.key.bytes)
            },
            now: HTTPCache.systemNow()
        )
    }

    /// Removes every stored response.
    public func removeAll() async throws {
        invalidations.noteAll()
        try await store.purge(.all, now: HTTPCache.systemNow())
    }

    /// Removes the stored responses of calls that named `tag`.
    ///
    /// - Returns: how many entries were removed.
    @discardableResult
    public func removeAll(tag: String) async throws -> Int {
        invalidations.noteAll()
        return try await store.purge(.tag(tag), now: HTTPCache.systemNow())
    }

    /// Closes the store, cleanly marked; later calls find nothing and store nothing. Idempotent.
    public func close() async {
        await store.close()
    }

    /// The digest that names the partition of a request with these fields; empty without credentials.
    func principal(of fields: HeaderFields, to target: TargetURI, _ context: CallContext) -> String {
        CachePrincipal.digest(
            of: fields,
            userinfo: target.userinfo,
            explicit: context.options.principal,
            secret: store.secret
        )
    }

    var holdsContentKeys: Bool { contentKeys.load(ordering: .acquiring) }

    /// An entry is about to be stored whose key has content in it.
    func noteContentKey() {
        contentKeys.store(true, ordering: .releasing)
    }

    var holdsSearchVariance: Bool { searchVariance.load(ordering: .acquiring) }

    /// An entry is about to be stored that answers for several queries.
    func noteSearchVariance() {
        searchVariance.store(true, ordering: .releasing)
    }

    func count(_ change: (inout CacheStatistics) -> Void) {
        counts.withLock { change(&$0) }
    }

    /// Counts a decision by its reason, together with what else it changes.
    func count(_ decision: CacheDecision, _ change: (inout CacheStatistics) -> Void) {
        counts.withLock { counts in
            counts.reasons[decision.reason, default: 0] += 1
            change(&counts)
        }
    }

    /// Counts a response that is not stored.
    func count(_ reason: CacheReason) {
        counts.withLock { $0.notStored[reason, default: 0] += 1 }
    }

    /// The URI in a framed key: the fourth frame, after the format's name, the partition and the method group.
    private static func canonicalURI(ofKey framed: [UInt8]) -> String? {
        var reader = FramedBytes.Reader(framed)
        for _ in 0..<3 { guard reader.next() != nil else { return nil } }
        return reader.nextString()
    }

    private static func systemNow() -> StoreInstant {
        StoreInstant(SystemClock().timestamp)
    }
}

extension StoreInstant {
    /// The instant of a timestamp.
    init(_ timestamp: Timestamp) {
        self.init(milliseconds: timestamp.millisecondsSinceEpoch)
    }
}

/// Counts invalidations, so that a response whose request went out before one is not stored after it.
///
/// Once the head is there the store itself keeps watch (see ``CacheStore``); this covers the time before. Targets share a
/// fixed number of counters: two that fall together cost a response that could have been stored, and never the opposite.
final class InvalidationLog: Sendable {
    /// The counts at one moment.
    struct Mark: Sendable, Hashable {
        fileprivate let ofTarget: UInt64
        fileprivate let ofAll: UInt64
    }

    private struct Counts {
        var ofTargets = [UInt64](repeating: 0, count: 1_024)
        var ofAll: UInt64 = 0
    }

    private let counts = Mutex(Counts())

    /// The counts for a target now.
    func mark(of target: TargetURI) -> Mark {
        let place = InvalidationLog.place(of: target)
        return counts.withLock { Mark(ofTarget: $0.ofTargets[place], ofAll: $0.ofAll) }
    }

    /// A mark of `target` as it must be found if nothing but `own` was invalidated since: what a request makes invalid was
    /// stored before its response.
    func mark(_ mark: Mark, of target: TargetURI, after own: [TargetURI]) -> Mark {
        let place = InvalidationLog.place(of: target)
        let count = own.count { InvalidationLog.place(of: $0) == place }
        return Mark(ofTarget: mark.ofTarget &+ UInt64(count), ofAll: mark.ofAll)
    }

    /// A target is being invalidated.
    func note(_ target: TargetURI) {
        let place = InvalidationLog.place(of: target)
        counts.withLock { $0.ofTargets[place] &+= 1 }
    }

    /// More than one target is being invalidated.
    func noteAll() {
        counts.withLock { $0.ofAll &+= 1 }
    }

    private static func place(of target: TargetURI) -> Int {
        Int(UInt(bitPattern: target.canonical.hashValue) % 1_024)
    }
}
