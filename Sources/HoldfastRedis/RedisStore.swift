// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    public import HoldfastStorage
    internal import Synchronization

    /// A store that many processes and machines share, in a Redis or Valkey server.
    ///
    /// **Choose.** For a fleet that should ask its origin only once. On one machine, a `TieredStore` over a disk is faster and
    /// limited only by the disk. **Use.** `HTTPCache(store: try await RedisStore.connect("redis://127.0.0.1"))`; call `close()`
    /// at the end.
    ///
    /// Related changes happen in one step for all processes. This process keeps copies of frequent entries in memory. Other
    /// processes publish their changes on a channel, and while the channel is down no copy is used. A copy is therefore stale
    /// only for as long as a message takes, or until the loss of the channel is noticed.
    ///
    /// A lost or slow server fails no call: after one timeout, everything continues with this process's own memory until the
    /// server is back. What was invalidated or purged in the meantime is then done there first. The store's own threads wait
    /// for the server, never those of tasks. With ``fillLeasing``, one process of a fleet fetches a missing response for all.
    public final class RedisStore: CacheStore {
        private let front: any CacheStore
        private let standIn: FallbackStore
        private let changes: OutsideChanges?
        private let subscription: RedisSubscription?
        private let leases: RedisLeases

        /// Connects a store to a server.
        ///
        /// - Parameters:
        ///   - address: `redis://[user:password@]host[:port][/database]`, or `unix:///path?db=0`. TLS is not supported.
        ///   - options: prefix, capacity, memory, timeouts.
        /// - Throws: `StoreError` `.badConfiguration` for an invalid address or prefix, and if the server refuses user,
        ///   password, database or something that a store needs: it is a replica, a cluster node with other keys, or
        ///   permissions are missing. A server that cannot be reached is not an error; it is tried again.
        public static func connect(
            _ address: String,
            options: RedisOptions = RedisOptions()
        ) async throws(StoreError) -> RedisStore {
            let place = try RedisAddress(address)
            let isFit: (Character) -> Bool = { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }
            guard !options.prefix.isEmpty, options.prefix.allSatisfy(isFit) else {
                throw StoreError(
                    .badConfiguration,
                    "The prefix may contain only letters, digits, - _ and . characters. Choose another one."
                )
            }
            guard min(options.connectTimeout, options.commandTimeout) > .zero else {
                throw StoreError(
                    .badConfiguration,
                    "No server answers in no time. Give connectTimeout and commandTimeout more than zero."
                )
            }
            var client = RedisClient.Options()
            client.connections = max(1, options.connections)
            client.connectTimeout = options.connectTimeout
            client.commandTimeout = options.commandTimeout
            let store = RedisStore(RedisClient(place, options: client), options: options)
            do throws(StoreError) {
                try await store.standIn.shared.open()
            } catch {
                guard error.code == .io || error.code == .temporarilyUnavailable else {
                    await store.close()
                    throw error.code == .readOnly ? StoreError(.badConfiguration, error.message) : error
                }
                store.standIn.noteLost(error)
            }
            return store
        }

        init(_ client: RedisClient, options: RedisOptions) {
            let space = SharedSpace(client, prefix: options.prefix)
            let standIn = FallbackStore(
                SharedEntries(space, capacity: options.capacity),
                memory: max(0, options.memory)
            )
            self.standIn = standIn
            leases = RedisLeases(client, prefix: space.root)
            guard options.memory > 0 else {
                (front, changes, subscription) = (standIn, nil, nil)
                return
            }
            let tier = TieredStore(memory: options.memory, over: standIn)
            let changes = OutsideChanges(tier, origin: space.origin)
            front = tier
            space.whenRenewed { [weak changes] in changes?.forgetAll() }
            self.changes = changes
            subscription = RedisSubscription(to: [space.channel], of: client) { changes.receive($0) }
        }

        /// The state of this process and the server.
        public var status: RedisStatus {
            let trouble = standIn.shared.space.trouble
            return RedisStatus(
                isReachable: !standIn.isAway,
                hearsChanges: changes?.isListening ?? false,
                losses: standIn.losses,
                changesHeard: changes?.heard ?? 0,
                refusals: trouble.refusals,
                lastError: trouble.last ?? changes?.lastError
            )
        }

        /// Counts of the tiers; nil without copies in memory.
        public var tierStatistics: TierStatistics? { (front as? TieredStore)?.tierStatistics }

        /// Decides which process fetches a missing response.
        public var fillLeasing: (any FillLeasing)? { leases }

        /// The same for all processes of a store; a different one until the server was reached for the first time.
        public var secret: [UInt8] { front.secret }

        public func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
            front.peek(key, now: now)
        }

        public func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
            try await front.entries(for: key, now: now)
        }

        public func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
            try await front.body(of: entry)
        }

        public func write(
            _ key: StoreKey,
            variant: StoreKey,
            description: EntryDescription,
            expectedLength: Int?,
            now: StoreInstant
        ) async throws(StoreError) -> any EntryWriter {
            try await front.write(
                key,
                variant: variant,
                description: description,
                expectedLength: expectedLength,
                now: now
            )
        }

        @discardableResult
        public func replaceDescription(
            of entry: StoredEntry,
            with description: EntryDescription,
            now: StoreInstant
        ) async throws(StoreError) -> StoredEntry? {
            try await front.replaceDescription(of: entry, with: description, now: now)
        }

        public func remove(_ entry: StoredEntry) async throws(StoreError) {
            try await front.remove(entry)
        }

        public func invalidate(_ key: StoreKey) async throws(StoreError) {
            try await front.invalidate(key)
        }

        /// Also purges for all other processes.
        ///
        /// - Throws: `.temporarilyUnavailable` if the server cannot be reached: the purge then applies to this process, and is
        /// done on the
        ///   server when it is back.
        @discardableResult
        public func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
            try await front.purge(selection, now: now)
        }

        public func list(
            after cursor: StoreCursor?,
            limit: Int,
            now: StoreInstant
        ) async throws(StoreError) -> StorePage {
            try await front.list(after: cursor, limit: limit, now: now)
        }

        @discardableResult
        public func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
            try await front.setPinned(pinned, entry)
        }

        /// What this process counted; entries and bytes are as last reported by the server.
        public var statistics: StoreStatistics { front.statistics }

        /// Closes the connections; the entries stay on the server.
        public func close() async {
            subscription?.end()
            await front.close()
        }
    }

    /// How a ``RedisStore`` uses its server; everything has a default.
    public struct RedisOptions: Sendable {
        /// Separates this store from others on the same server; letters, digits, `-`, `_`, `.`; `default` by default.
        ///
        /// All keys and channels are `holdfast:2:{prefix}:…`, so that they are in one slot of a cluster.
        public var prefix = "default"
        /// The most bytes of entries on the server, for all processes together, which must all have the same value; 1 GiB by
        /// default.
        public var capacity = 1 << 30
        /// The most bytes in this process for copies of frequent entries, and as much again while the server cannot be reached;
        /// 64 MiB by default, 0 for no copies.
        public var memory = 64 << 20
        /// Connections to the server, each with its own thread; 4 by default, at least 1.
        public var connections = 4
        /// How long connecting may take; half a second by default.
        public var connectTimeout = Duration.milliseconds(500)
        /// How long a reply may take; half a second by default. A later one counts as lost.
        public var commandTimeout = Duration.milliseconds(500)

        /// Creates the default options.
        public init() {}
    }

    /// The state of a ``RedisStore`` and its server.
    public struct RedisStatus: Sendable, Hashable {
        /// Whether the server answers; while it does not, this process uses its own memory.
        public var isReachable: Bool
        /// Whether changes of other processes are received; while they are not, no copies in memory are used.
        public var hearsChanges: Bool
        /// How often the server was lost.
        public var losses: Int
        /// Changes of other processes that were received.
        public var changesHeard: Int
        /// How many commands the server refused: a key of the wrong type, a missing permission, no memory left.
        public var refusals: Int
        /// The last error of the server or the connection; nil if there was none. Shows no password.
        public var lastError: String?
    }
#endif
