// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
public import HoldfastStorage
private import Synchronization

/// A cache for HTTP responses by RFC 9111, over any `CacheStore`.
///
/// Hand one to `Pipeline(cache:)`; several pipelines may share one, and should where they share a store: two caches over one store
/// know nothing of each other's exchanges under way. Responses to requests with credentials (Authorization,
/// Cookie, userinfo, the fields that a call names as credentials, or the principal it names) live in a partition of their own,
/// named by a keyed digest: each partition is a cache by itself, and no response crosses from one to another.
///
/// A store failure is an event and a miss, never an error of a request.
public final class HTTPCache: Sendable {
    /// Where responses are kept.
    public let store: any CacheStore
    /// How the rules are applied.
    public let options: CacheOptions

    let decoded: DecodedResponses
    /// What answers plain requests at once.
    let ready: ReadyAnswers
    /// Changes the store; nothing else does.
    let writer: CacheWriter
    let flights = FlightTable()
    /// Keys whose last response could not be shared.
    let unshared = RecentKeys()
    /// Keys whose last revalidation in the background failed.
    let paused = RecentKeys()
    /// Keys whose last response could not be used from the store.
    let unleased = RecentKeys()
    /// Settles who fetches, where other processes share the store.
    let leasing: (any FillLeasing)?
    /// Whether entries may be there whose keys have content in them: they are found by a scan, which is spared while none are.
    private let contentKeys: Atomic<Bool>
    /// How often something was stored that answers for several queries; 0 while nothing of the kind can be there.
    private let searchVariance: Atomic<UInt64>
    /// Under which principals responses were stored last, to tell why nothing is found.
    let storedElsewhere = StoredElsewhere()
    let meter = CacheMeter()
    let recording = Recording()

    /// A cache over `store`; private mode by default.
    public convenience init(store: any CacheStore, options: CacheOptions = CacheOptions()) {
        self.init(store: store, options: options, answersReady: true)
    }

    /// - Parameter answersReady: whether plain requests are answered the short way; false is for tests that compare both.
    init(store: any CacheStore, options: CacheOptions, answersReady: Bool) {
        self.store = store
        self.options = options
        writer = CacheWriter(store)
        let found = store.statistics
        contentKeys = Atomic(found.entryCount > 0)
        searchVariance = Atomic(found.entryCount > 0 ? 1 : 0)
        ready = ReadyAnswers(capacity: answersReady ? found.capacity : nil)
        decoded = DecodedResponses(capacity: found.capacity, targetedFields: options.targets)
        leasing = options.collapsesRequests && options.longestFillWait > .zero ? store.fillLeasing : nil
    }

    /// Closes the store, cleanly marked; later calls find nothing and store nothing. Idempotent.
    public func close() async {
        await store.close()
    }

    /// The digest that names the partition of a request with these fields; empty without credentials.
    ///
    /// - Parameter credentialFields: further fields that hold a credential.
    func principal(
        of fields: HeaderFields,
        to target: TargetURI,
        credentialFields: [FieldName],
        _ context: CallContext
    ) -> String {
        CachePrincipal.digest(
            of: view(of: fields),
            userinfo: target.userinfo,
            explicit: context.options.principal,
            credentialFields: credentialFields,
            secret: store.secret
        )
    }

    var holdsContentKeys: Bool { contentKeys.load(ordering: .acquiring) }

    /// An entry is about to be stored whose key has content in it.
    func noteContentKey() {
        contentKeys.store(true, ordering: .releasing)
    }

    /// Whether entries may be there that answer for several queries.
    var holdsSearchVariance: Bool { searchVarianceCount > 0 }

    /// How often something was stored that answers for several queries: while the count stands, no query has got such an answer
    /// that it did not have before.
    var searchVarianceCount: UInt64 { searchVariance.load(ordering: .acquiring) }

    /// An entry that answers for several queries is about to be stored, or is there.
    func noteSearchVariance() {
        searchVariance.add(1, ordering: .releasing)
    }
}

extension StoreInstant {
    /// The instant of a timestamp.
    init(_ timestamp: Timestamp) {
        self.init(milliseconds: timestamp.millisecondsSinceEpoch)
    }
}
