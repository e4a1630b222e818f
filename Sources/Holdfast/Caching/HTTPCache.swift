// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
public import HoldfastStorage
private import Synchronization

/// A cache for HTTP responses that follows RFC 9111 and works with any `CacheStore`.
///
/// Pass it to `Pipeline(cache:)`. Several pipelines may share a cache, and should if they share a store: two caches over one
/// store do not know about each other's exchanges in progress. Responses to requests with credentials (Authorization, Cookie,
/// userinfo, the fields that a call names as credentials, or the principal it names) are kept in a partition of their own,
/// named by a keyed digest. Each partition is a separate cache, and responses never cross from one to another.
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
    let fetches = FetchCoalescer()
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

    /// Closes the store and marks it as cleanly closed; later calls find nothing and store nothing. Idempotent.
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
            of: view(of: fields, to: target),
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

extension HTTPCache {
    /// The program's shared cache: 32 MiB in memory, in private mode.
    ///
    /// ``inMemory(capacity:entryLimit:options:)`` makes a separate one.
    public static let `default`: HTTPCache = .inMemory()

    /// A cache in memory, which ends with the process.
    ///
    /// - Parameters:
    ///   - capacity: the most bytes of bodies, fields and keys to hold; 32 MiB by default.
    ///   - entryLimit: the most bytes of one response, larger ones are not stored; nil, the default: a quarter of the capacity.
    ///   - options: how the rules are applied; private mode by default.
    public static func inMemory(
        capacity: Int = 32 << 20,
        entryLimit: Int? = nil,
        options: CacheOptions = CacheOptions()
    ) -> HTTPCache {
        HTTPCache(store: MemoryStore(capacity: capacity, maximumEntrySize: entryLimit), options: options)
    }

    /// A cache on disk, which survives a restart.
    ///
    /// - Parameters:
    ///   - directory: a file URL; the directory is created if it does not exist, with access only for its owner. Only one
    ///     process at a time may have it open.
    ///   - capacity: the most bytes on disk; 256 MiB by default, at least 1 MiB.
    ///   - entryLimit: the most bytes of one response, larger ones are not stored; nil, the default: a quarter of the capacity.
    ///   - seal: encrypts keys, fields and bodies before they are written, such as `AEADSeal` of HoldfastCrypto; nil, the
    ///     default, writes them as they are.
    ///   - options: how the rules are applied; private mode by default.
    /// - Throws: `StoreError`: `.locked` if another process has it open, `.unsafeDirectory`, `.io`, `.noSpace`.
    public static func onDisk(
        at directory: URL,
        capacity: Int = 256 << 20,
        entryLimit: Int? = nil,
        seal: (any StoreSeal)? = nil,
        options: CacheOptions = CacheOptions()
    ) async throws -> HTTPCache {
        let store = try await openDisk(at: directory, capacity: capacity, entryLimit: entryLimit, seal: seal)
        return HTTPCache(store: store, options: options)
    }

    /// A cache on disk that is only read, whether or not another process has it open.
    ///
    /// For tools: ``entries(_:pageSize:now:)``, ``export(_:now:)``, ``verify(progress:)`` and the store's statistics work with
    /// it. It shows the directory as it was at one instant (see `DiskStoreReader`). A pipeline with it answers from what is
    /// stored and stores nothing: each attempt to store causes a `storeFailed` event, and responses that a request invalidates
    /// stay.
    ///
    /// - Parameters:
    ///   - directory: a file URL of a directory that holds a cache; nothing is created.
    ///   - seal: decrypts what was encrypted; nil, the default, if nothing was or the key is not available.
    ///   - options: how the rules are applied; private mode by default.
    /// - Throws: `StoreError`: `.badConfiguration` if the directory does not hold a cache, `.unsafeDirectory`, `.io`,
    ///   `.resting` if it changes faster than it can be read.
    public static func onDiskReadOnly(
        at directory: URL,
        seal: (any StoreSeal)? = nil,
        options: CacheOptions = CacheOptions()
    ) async throws(StoreError) -> HTTPCache {
        let path = directory.standardizedFileURL.path
        return HTTPCache(store: try await DiskStoreReader.open(directory: path, seal: seal), options: options)
    }

    /// A cache on disk that also keeps frequently used responses in memory.
    ///
    /// Everything is kept on disk. Memory holds copies of some of it, and is filled again by hits after a restart.
    ///
    /// - Parameters:
    ///   - directory: as in ``onDisk(at:capacity:entryLimit:seal:options:)``.
    ///   - memory: the most bytes to hold in memory; 32 MiB by default.
    ///   - capacity: the most bytes on disk; 256 MiB by default.
    ///   - entryLimit: the most bytes of one response, larger ones are not stored; nil, the default: a quarter of `capacity`.
    ///     In memory, one response takes at most a quarter of `memory`.
    ///   - seal: encrypts what is written to the disk, not what is in memory; nil by default.
    ///   - rule: which responses are copied into memory, and when; at the second hit by default.
    ///   - options: how the rules are applied; private mode by default.
    /// - Throws: as ``onDisk(at:capacity:entryLimit:seal:options:)``.
    public static func tiered(
        at directory: URL,
        memory: Int = 32 << 20,
        capacity: Int = 256 << 20,
        entryLimit: Int? = nil,
        seal: (any StoreSeal)? = nil,
        rule: PromotionRule = .secondHit,
        options: CacheOptions = CacheOptions()
    ) async throws -> HTTPCache {
        let disk = try await openDisk(at: directory, capacity: capacity, entryLimit: entryLimit, seal: seal)
        return HTTPCache(store: TieredStore(memory: memory, over: disk, rule: rule), options: options)
    }

    private static func openDisk(
        at directory: URL,
        capacity: Int,
        entryLimit: Int?,
        seal: (any StoreSeal)?
    ) async throws -> DiskStore {
        let parent = directory.standardizedFileURL.deletingLastPathComponent()
        do {
            try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
        } catch {
            throw StoreError(
                .io,
                "The directory \(parent.path) could not be created. Choose another one.",
                cause: error
            )
        }
        return try await DiskStore.open(
            directory: directory.standardizedFileURL.path,
            capacity: capacity,
            maximumEntrySize: entryLimit,
            seal: seal,
            now: StoreInstant(SystemClock().timestamp)
        )
    }
}
