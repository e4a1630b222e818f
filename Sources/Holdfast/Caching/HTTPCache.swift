// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
public import HoldfastStorage

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

    let partitions = PartitionNames()
    /// Of the target list (``ResponseFacts``).
    let targetsHash: UInt64
    /// Whether fresh hits of plain requests are decided by facts alone; only tests that compare them with the full decision say no.
    let answersFreshHits: Bool
    /// Changes the store; nothing else does.
    let writer: CacheWriter
    let fetches = FetchCoalescer()
    /// Keys whose last response could not be shared.
    let unshared: RecentKeys
    /// Keys whose last background revalidation failed.
    let paused: RecentKeys
    /// Keys whose last response could not be used from the store.
    let unleased: RecentKeys
    /// Decides who fetches, if other processes share the store.
    let leasing: (any FillLeasing)?
    /// The principals whose responses were stored last, to explain why nothing is found.
    let storedElsewhere: StoredElsewhere
    let meter: CacheMeter
    let recording: Recording
    /// By which of the rules for keys it goes (``CacheWriter/keyEpoch``).
    private let keyEpoch: UInt64

    /// A cache over `store`; private mode by default.
    public convenience init(store: any CacheStore, options: CacheOptions = CacheOptions()) {
        self.init(store: store, options: options, answersFreshHits: true)
    }

    init(store: any CacheStore, options: CacheOptions, answersFreshHits: Bool) {
        self.store = store
        self.options = options
        self.answersFreshHits = answersFreshHits
        targetsHash = ResponseFacts.hash(options.targets)
        writer = CacheWriter(store)
        leasing = options.collapsesRequests && options.longestFillWait > .zero ? store.fillLeasing : nil
        unshared = RecentKeys()
        paused = RecentKeys()
        unleased = RecentKeys()
        storedElsewhere = StoredElsewhere()
        meter = CacheMeter()
        recording = Recording()
        keyEpoch = 0
    }

    /// A cache that takes the place of another one with other rules, over the same store: it goes on with its counters and with the
    /// order of exchanges, but joins none of its fetches, whose calls go by the former rules.
    private init(succeeding former: HTTPCache, options: CacheOptions, keyEpoch: UInt64) {
        store = former.store
        self.options = options
        writer = former.writer
        answersFreshHits = former.answersFreshHits
        targetsHash = ResponseFacts.hash(options.targets)
        leasing = former.leasing
        unshared = former.unshared
        paused = former.paused
        unleased = former.unleased
        storedElsewhere = former.storedElsewhere
        meter = former.meter
        recording = former.recording
        self.keyEpoch = keyEpoch
    }

    /// Closes the store and marks it as cleanly closed; later calls find nothing and store nothing. Idempotent.
    public func close() async {
        await store.close()
    }

    /// The digest that identifies the partition of a request with these fields; empty without credentials.
    ///
    /// - Parameters:
    ///   - fields: with or without ignored cookies.
    ///   - credentialFields: further fields that contain a credential.
    func principal(
        of fields: HeaderFields,
        to target: TargetURI,
        credentialFields: [FieldName],
        _ context: CallContext
    ) -> String {
        let explicit = context.options.principal
        func digest(secret: [UInt8]) -> String {
            CachePrincipal.digest(
                of: view(of: fields, to: target),
                userinfo: target.userinfo,
                explicit: explicit,
                credentialFields: credentialFields,
                secret: secret
            )
        }
        guard explicit != nil || credentialFields.isEmpty && target.userinfo?.isEmpty ?? true,
            let credentials = PlainRequestFields([:], implicit: fields)
        else { return digest(secret: store.secret) }
        return partitions.name(
            of: credentials,
            explicit: explicit,
            rule: options.keyRuleIndex(for: target),
            secret: store.secret,
            stripe: CacheMeter.stripe(),
            make: digest
        )
    }

    /// The response that an entry describes; it must be confirmed if its store is not sure of it. nil if the metadata is damaged.
    func response(of entry: StoredEntry) -> StoredResponse? {
        let response = StoredResponse(decoding: entry.description.metadata, targetedFields: options.targets)
        // A person's demand is in the metadata and takes precedence over the store's doubt.
        guard entry.needsValidation, let response, !response.needsConfirmation else { return response }
        return response.needingConfirmation(.storeLostPower)
    }

    /// The generation of a target now, for what will be stored for it.
    func generation(of target: TargetURI) -> CacheWriter.Generation {
        let generation = writer.generation(of: target)
        // Looked at after the mark: a mark from before the change of rules no longer holds by itself.
        return writer.keyEpoch == keyEpoch ? generation : CacheWriter.Generation(mark: .never)
    }
}

extension HTTPCache {
    /// Puts other rules in force while the cache is in use: `publish` is given the cache that calls from then on must use.
    ///
    /// That one has the same store, counters and order of exchanges. Calls under way go on with this one, and what they bring is
    /// stored, unless the new rules make the keys of some routes otherwise. Then a stored response could answer what it must not:
    /// those routes are neither answered from the store nor stored until all that is stored for them has been removed, whereupon
    /// `publish` is called once more; and calls under way store nothing any more.
    ///
    /// Call it on the cache that was published last, and not while another call of it is under way.
    ///
    /// - Parameters:
    ///   - rules: in the place of those in force.
    ///   - now: the time of the removal.
    ///   - publish: called once or twice, each time with the cache to use from then on.
    /// - Returns: how many responses were removed; nil where the keys of all routes are made as before.
    /// - Throws: `StoreError` where the store could not remove them. The rules are in force all the same, and the routes whose keys
    ///   have changed stay away from the store.
    @discardableResult
    package func replaceRules(
        with rules: CacheRules,
        now: Timestamp = SystemClock().timestamp,
        publish: (HTTPCache) -> Void
    ) async throws(StoreError) -> Int? {
        let final = options.replacing(rules: rules)
        guard let hasOtherKeys = options.targetsWithOtherKeys(by: rules) else {
            publish(HTTPCache(succeeding: self, options: final, keyEpoch: keyEpoch))
            return nil
        }
        let keptAway = options.replacing(rules: rules, keptAway: true)
        let interim = HTTPCache(succeeding: self, options: keptAway, keyEpoch: keyEpoch + 1)
        publish(interim)
        writer.beginKeyEpoch(keyEpoch + 1)
        storedElsewhere.forgetAll()
        let removed = try await writer.purge(
            .matching { entry in
                guard let text = CacheKey.Parts(framed: entry.key.bytes)?.target else { return false }
                // A key that cannot be read again is better gone than used.
                guard let target = try? TargetURI(text) else { return true }
                return hasOtherKeys(target)
            },
            now: now
        )
        publish(HTTPCache(succeeding: interim, options: final, keyEpoch: interim.keyEpoch))
        return removed ?? 0
    }
}

extension StoreInstant {
    /// The instant of a timestamp.
    init(_ timestamp: Timestamp) { self.init(milliseconds: timestamp.millisecondsSinceEpoch) }
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
    /// - Throws: `StoreError`: `.locked` if another process has it open, `.badConfiguration` if it is not a file URL,
    ///   `.unsafeDirectory`, `.io`, `.noSpace`.
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
    ///   `.temporarilyUnavailable` if it changes faster than it can be read.
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
    ///     In memory, one response takes at most the share of `memory` that `rule` allows.
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
        // A URL without a scheme is a path.
        guard directory.isFileURL || directory.scheme == nil else {
            throw StoreError(
                .badConfiguration,
                "\(RedactedURL(directory)) is not a file URL. Make the URL of a cache's directory with URL(filePath:)."
            )
        }
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

extension CacheRules {
    /// Reads rules from a JSON file, as `CacheRules(json:)` reads its contents.
    ///
    /// - Parameter file: the URL of a regular file; 1 MiB at most.
    /// - Throws: `CacheRulesError`: with line and column, or with the path of a file that cannot be read.
    public init(contentsOf file: URL) throws {
        let json: Data?
        // Reading a pipe could wait forever.
        let type = try? FileManager.default.attributesOfItem(atPath: file.resolvingSymlinksInPath().path)[.type]
        if let type = type as? FileAttributeType, type != .typeRegular {
            throw CacheRulesError("The rules in \(file.path) cannot be read. It is not a regular file.")
        }
        do {
            let handle = try FileHandle(forReadingFrom: file)
            defer { try? handle.close() }
            // One byte more than is allowed shows that there is more.
            json = try handle.read(upToCount: CacheRules.longestText + 1)
        } catch {
            throw CacheRulesError("The rules in \(file.path) cannot be read. \(error.localizedDescription)")
        }
        try self.init(json: json ?? Data())
    }
}
