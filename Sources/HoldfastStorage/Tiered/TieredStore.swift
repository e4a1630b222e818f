// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A fast store on top of a large one: frequent entries are answered from memory, and the lower store keeps everything.
///
/// **Choose.** On top of a ``DiskStore``, or of any other store with slower lookups or bodies than memory.
/// **Use.** Make all changes through this store. A change that is made directly in the lower store shows only after the entry has
/// left the upper tier.
///
/// The lower tier is authoritative: every write, removal, purge, pin and freshening goes there, and the capacity, the secret and
/// persistence are its own. The upper tier holds copies of entries that were found in the lower one, as a ``PromotionRule``
/// decides: all variants of a key or none. If the upper tier fails, calls are slower but do not fail. An entry from the upper tier
/// equals that of the lower tier: same version, time, pin and need for validation.
///
/// Copies are made in the background after the reader has its bytes, at most 16 at once and at most an eighth of the upper tier's
/// capacity. A change of the entry cancels its copy. Now and then, a lookup that the upper tier answers is also made in the lower
/// tier, so that the lower tier's eviction knows about the use.
public final class TieredStore: CacheStore {
    let upper: any CacheStore
    let lower: any CacheStore
    let rule: PromotionRule
    let capacity: Int
    let coherence: Mutex<TierCoherence>
    let sketch: Mutex<HitSketch>
    let idleWaiters = Mutex<[CheckedContinuation<Void, Never>]>([])
    /// Changes in progress; while there are none, no lookup takes the lock.
    private let changes = Atomic(0)
    /// The generation of the upper tier: raised when the upper tier failed to remove something.
    let generation = Atomic<UInt64>(0)
    let groups = Atomic<UInt64>(0)
    private let lookups = Atomic(0)
    private let lookupsFound = Atomic(0)
    private let lookupsAbove = Atomic(0)
    private let bytesReadAbove = Atomic(0)
    /// Body bytes that promotions read from the lower tier and that no reader asked for.
    let bytesReread = Atomic(0)
    private let latestNow = Atomic<Int64>(.min)
    let promotions = Atomic(0)
    let bytesPromoted = Atomic(0)
    let promotionsDropped = Atomic(0)

    /// One in this many lookups that the upper tier answered is also made in the lower tier.
    private static let confirmEvery = 16

    /// A store on top of `lower`.
    ///
    /// - Parameters:
    ///   - memory: the most bytes that the upper tier, a ``MemoryStore``, holds.
    ///   - lower: the store that keeps everything; this store closes it.
    ///   - rule: what is promoted, and when; by default at the second hit.
    public convenience init(memory: Int, over lower: any CacheStore, rule: PromotionRule = .secondHit) {
        self.init(upper: MemoryStore(capacity: memory), over: lower, rule: rule)
    }

    /// A store on top of `lower` with an upper tier of your own.
    ///
    /// - Parameters:
    ///   - upper: empty, and used by nothing else; its `statistics.capacity` limits the copies.
    ///   - lower: the store that keeps everything; this store closes it.
    ///   - rule: what is promoted, and when; by default at the second hit.
    public init(upper: any CacheStore, over lower: any CacheStore, rule: PromotionRule = .secondHit) {
        self.upper = upper
        self.lower = lower
        self.rule = rule
        capacity = max(0, upper.statistics.capacity)
        coherence = Mutex(TierCoherence(maximumBytes: max(capacity / 8, rule.maximumBody(capacity: capacity))))
        sketch = Mutex(HitSketch(window: rule.hits > 1 ? rule.window : 1))
    }

    /// The lower tier's secret.
    public var secret: [UInt8] { lower.secret }

    /// What the upper tier has, or what the lower tier can say without suspending.
    public func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        latestNow.store(now.milliseconds, ordering: .relaxed)
        if trusts(key), let found = upper.peek(key, now: now), let entries = group(found), confirm(entries, now: now) {
            count(entries, above: true)
            return entries
        }
        guard let entries = lower.peek(key, now: now) else { return nil }
        count(entries, above: false)
        return entries
    }

    public func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        latestNow.store(now.milliseconds, ordering: .relaxed)
        if trusts(key) {
            if let found = await lookUpAbove(key, now: now), let entries = group(found), confirm(entries, now: now) {
                count(entries, above: true)
                return entries
            }
        }
        let entries = try await lower.entries(for: key, now: now)
        count(entries, above: false)
        return entries
    }

    public func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        if let body = await bodyAbove(of: entry) { return body }
        return promoting(try await lower.body(of: entry), of: entry)
    }

    public func peekBody(of entry: StoredEntry) -> ByteChunk? {
        guard trusts(entry.key), let held = copyAbove(of: entry, in: upper.peek(entry.key, now: now) ?? []),
            let bytes = upper.peekBody(of: held)
        else { return nil }
        bytesReadAbove.add(entry.bodyLength, ordering: .relaxed)
        return bytes
    }

    public func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        let writer = try await lower.write(
            key,
            variant: variant,
            description: description,
            expectedLength: expectedLength,
            now: now
        )
        return TieredWriter(writer, of: key, in: self)
    }

    /// The lower tier's leasing.
    public var fillLeasing: (any FillLeasing)? { lower.fillLeasing }

    /// The lower tier's list, with the same weak consistency.
    public func list(
        after cursor: StoreCursor?,
        limit: Int,
        now: StoreInstant
    ) async throws(StoreError) -> StorePage {
        try await lower.list(after: cursor, limit: limit, now: now)
    }

    /// The lower tier's, with lookups and bytes read of the whole store; see ``tierStatistics``.
    public var statistics: StoreStatistics {
        var whole = lower.statistics
        whole.lookups = lookups.load(ordering: .relaxed)
        whole.lookupsFound = lookupsFound.load(ordering: .relaxed)
        whole.bytesRead &+= bytesReadAbove.load(ordering: .relaxed) &- bytesReread.load(ordering: .relaxed)
        return whole
    }

    /// What each tier has counted.
    public var tierStatistics: TierStatistics {
        var above = upper.statistics
        above.lookups = lookups.load(ordering: .relaxed)
        above.lookupsFound = lookupsAbove.load(ordering: .relaxed)
        above.bytesRead = bytesReadAbove.load(ordering: .relaxed)
        return TierStatistics(
            upper: above,
            lower: lower.statistics,
            promotions: promotions.load(ordering: .relaxed),
            bytesPromoted: bytesPromoted.load(ordering: .relaxed),
            promotionsDropped: promotionsDropped.load(ordering: .relaxed)
        )
    }

    /// Closes both tiers.
    public func close() async {
        await lower.close()
        await upper.close()
        await awaitPromotions()
    }

    // MARK: Trust in the upper tier

    /// Whether the upper tier can be trusted for a key: no change is in progress that it may not know of.
    private func trusts(_ key: StoreKey) -> Bool {
        changes.load(ordering: .acquiring) == 0 || coherence.withLock { $0.trusts(key) }
    }

    func beginChange(of key: StoreKey?) {
        changes.add(1, ordering: .sequentiallyConsistent)
        coherence.withLock { $0.beginChange(of: key) }
    }

    func endChange(_ key: StoreKey?) {
        coherence.withLock { $0.endChange(of: key) }
        changes.subtract(1, ordering: .sequentiallyConsistent)
    }

    private func group(_ found: [StoredEntry]) -> [StoredEntry]? {
        if found.isEmpty { return nil }
        return PromotedEntry.group(found, generation: generation.load(ordering: .acquiring))?.map(\.entry)
    }

    /// Also makes some of the lookups in the lower tier; false if it shows something else.
    private func confirm(_ entries: [StoredEntry], now: StoreInstant) -> Bool {
        let isPassedOn =
            lookupsAbove.load(ordering: .relaxed) % TieredStore.confirmEvery == TieredStore.confirmEvery - 1
        guard isPassedOn, let key = entries.first?.key, let below = lower.peek(key, now: now) else { return true }
        if below == entries { return true }
        // The lower tier has evicted it since, so its lookup is right.
        startForgetting(key)
        return false
    }

    private func count(_ entries: [StoredEntry], above: Bool) {
        lookups.add(1, ordering: .relaxed)
        if !entries.isEmpty { lookupsFound.add(1, ordering: .relaxed) }
        if above { lookupsAbove.add(1, ordering: .relaxed) }
    }

    private func bodyAbove(of entry: StoredEntry) async -> (any StoredBody)? {
        guard trusts(entry.key), let body = await heldBody(of: entry) else { return nil }
        bytesReadAbove.add(entry.bodyLength, ordering: .relaxed)
        return body.bytesInMemory == nil ? FallbackBody(body, of: entry, below: lower) : body
    }

    /// The body of one version in the upper tier.
    func heldBody(of entry: StoredEntry) async -> (any StoredBody)? {
        let found = await lookUpAbove(entry.key, now: now) ?? []
        guard let held = copyAbove(of: entry, in: found) else { return nil }
        return try? await upper.body(of: held)
    }

    private func lookUpAbove(_ key: StoreKey, now: StoreInstant) async -> [StoredEntry]? {
        if let found = upper.peek(key, now: now) { return found }
        return try? await upper.entries(for: key, now: now)
    }

    /// The copy of one version, with its body, among what the upper tier has under its key.
    private func copyAbove(of entry: StoredEntry, in found: [StoredEntry]) -> StoredEntry? {
        let generation = generation.load(ordering: .acquiring)
        return found.first { held in
            guard held.variant == entry.variant, let promoted = PromotedEntry(held) else { return false }
            return promoted.hasBody && promoted.generation == generation && promoted.entry.version == entry.version
        }
    }

    /// The latest instant that a caller gave.
    var now: StoreInstant { StoreInstant(milliseconds: latestNow.load(ordering: .relaxed)) }
}

/// Changes go to the lower tier; the upper one drops what they affect before it is trusted again.
extension TieredStore {
    @discardableResult
    public func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        let bytes = await heldBody(of: entry)?.bytesInMemory
        let changed = try await change(entry.key) { () async throws(StoreError) in
            try await lower.replaceDescription(of: entry, with: description, now: now)
        }
        // The body is the same, so the entry need not earn its promotion again.
        if let changed, let bytes { startPromotion(of: changed, bytes) }
        return changed
    }

    public func remove(_ entry: StoredEntry) async throws(StoreError) {
        try await change(entry.key) { () async throws(StoreError) in try await lower.remove(entry) }
    }

    public func invalidate(_ key: StoreKey) async throws(StoreError) {
        try await change(key) { () async throws(StoreError) in try await lower.invalidate(key) }
    }

    @discardableResult
    public func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        let bytes = await heldBody(of: entry)?.bytesInMemory
        let isDone = try await change(entry.key) { () async throws(StoreError) in
            try await lower.setPinned(pinned, entry)
        }
        if let bytes { startPromotion(of: entry, bytes) }
        return isDone
    }

    /// Purges the lower tier and then the upper one; the count is the lower tier's.
    ///
    /// A predicate also sees entries that only the upper tier still has, because the lower tier evicted them.
    @discardableResult
    public func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        beginChange(of: nil)
        let outcome: Result<Int?, StoreError>
        if case .matching(let predicate) = selection.form {
            let results = PurgeResults(predicate)
            await purgeAbove(results.noting, now: now)
            outcome = await result { () async throws(StoreError) in
                try await lower.purge(results.recording, now: now)
            }
            await purgeAbove(results.applying, now: now)
        } else {
            outcome = await result { () async throws(StoreError) in try await lower.purge(selection, now: now) }
            await purgeAbove(selection, now: now)
        }
        endChange(nil)
        return try outcome.get()
    }

    /// Changes one key in the lower tier, and has the upper tier drop the key whatever the result.
    @discardableResult
    func change<Outcome>(
        _ key: StoreKey,
        _ step: () async throws(StoreError) -> Outcome
    ) async throws(StoreError) -> Outcome {
        beginChange(of: key)
        let outcome = await result(of: step)
        await forget(key)
        endChange(key)
        return try outcome.get()
    }

    /// Removes a key from the upper tier, including a copy in progress.
    func forget(_ key: StoreKey) async {
        do throws(StoreError) {
            try await upper.invalidate(key)
        } catch {
            await forgetAll()
        }
    }

    /// The outcome of a change in the lower tier, which the upper one must follow whatever it is.
    private func result<Value>(of step: () async throws(StoreError) -> Value) async -> Result<Value, StoreError> {
        do throws(StoreError) { return .success(try await step()) } catch { return .failure(error) }
    }

    private func purgeAbove(_ selection: PurgeSelection, now: StoreInstant) async {
        do throws(StoreError) {
            try await upper.purge(selection, now: now)
        } catch {
            await forgetAll()
        }
    }

    /// The upper tier failed to remove something, so nothing that it holds is trusted any more.
    func forgetAll() async {
        generation.add(1, ordering: .sequentiallyConsistent)
        _ = try? await upper.purge(.all, now: now)
    }
}

/// The results of a purge's predicate for entries that are in both tiers, so that it is called once for each.
private final class PurgeResults: Sendable {
    private let predicate: @Sendable (StoredEntry) -> Bool
    /// For each version in the upper tier: the predicate's result, or nil if it was not called.
    private let results = Mutex<[StoredEntry.Version: Bool?]>([:])

    init(_ predicate: @escaping @Sendable (StoredEntry) -> Bool) { self.predicate = predicate }

    /// Records what the upper tier has, and removes nothing.
    var noting: PurgeSelection {
        .matching { [self] upper in
            if let promoted = PromotedEntry(upper) {
                results.withLock { _ = $0.updateValue(nil, forKey: promoted.entry.version) }
            }
            return false
        }
    }

    /// Calls the predicate in the lower tier, and records the results for entries of the upper tier.
    var recording: PurgeSelection {
        .matching { [self] entry in
            let takes = predicate(entry)
            results.withLock { results in
                if results[entry.version] != nil { results[entry.version] = .some(takes) }
            }
            return takes
        }
    }

    /// Removes from the upper tier what was removed from the lower one, and calls the predicate for the rest.
    var applying: PurgeSelection {
        .matching { [self] upper in
            guard let entry = PromotedEntry(upper)?.entry else { return true }
            if case .some(.some(let takes)) = results.withLock({ $0[entry.version] }) { return takes }
            return predicate(entry)
        }
    }
}

/// Copying entries from the lower tier into the upper one.
///
/// The order ensures that changed entries do not return: the promotion is registered, the lower tier is read, the upper tier's
/// writers begin, it is checked whether a change has begun since, and only then do the writers commit. A later change finds
/// the writers there, and its invalidation of the upper tier stops or undoes them.
extension TieredStore {
    /// With more variants than every store keeps, they would evict each other from the upper tier.
    private static let maximumVariants = 8
    private static let pieceLength = 256 << 10

    /// The body for the reader, which may cause a promotion.
    func promoting(_ body: any StoredBody, of entry: StoredEntry) -> any StoredBody {
        guard entry.bodyLength <= rule.maximumBody(capacity: capacity), isDue(entry) else { return body }
        if let bytes = body.bytesInMemory {
            startPromotion(of: entry, bytes)
            return body
        }
        return PromotingBody(body, length: entry.bodyLength) { [weak self] bytes in
            self?.startPromotion(of: entry, bytes, or: body)
        }
    }

    /// Copies an entry into the upper tier in a task of its own, unless too many promotions are in progress.
    ///
    /// - Parameters:
    ///   - bytes: its body; nil to read it from `body`.
    func startPromotion(of entry: StoredEntry, _ bytes: ByteChunk?, or body: (any StoredBody)? = nil) {
        guard coherence.withLock({ $0.beginPromotion(of: entry.key, bytes: entry.bodyLength) }) else {
            promotionsDropped.add(1, ordering: .relaxed)
            return
        }
        Task {
            let isDone = (try? await promote(entry, captured: bytes, or: body)) ?? false
            if isDone {
                promotions.add(1, ordering: .relaxed)
                bytesPromoted.add(entry.bodyLength, ordering: .relaxed)
            } else {
                promotionsDropped.add(1, ordering: .relaxed)
            }
            endPromotion(of: entry.key)
        }
    }

    /// Removes a key from the upper tier in a task of its own, unless too many promotions are in progress.
    func startForgetting(_ key: StoreKey) {
        guard coherence.withLock({ $0.beginPromotion(of: key, bytes: 0) }) else { return }
        Task {
            await forget(key)
            endPromotion(of: key)
        }
    }

    /// Waits until no promotion is in progress.
    func awaitPromotions() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isSettled = idleWaiters.withLock { idleWaiters in
                if coherence.withLock({ $0.isIdle }) { return true }
                idleWaiters.append(continuation)
                return false
            }
            if isSettled { continuation.resume() }
        }
    }

    private func endPromotion(of key: StoreKey) {
        coherence.withLock { $0.endPromotion(of: key) }
        let waiting = idleWaiters.withLock { idleWaiters in
            guard coherence.withLock({ $0.isIdle }) else { return [CheckedContinuation<Void, Never>]() }
            defer { idleWaiters = [] }
            return idleWaiters
        }
        for continuation in waiting { continuation.resume() }
    }

    private func isDue(_ entry: StoredEntry) -> Bool {
        var earlier = 0
        if rule.hits > 1 {
            let hash = UInt64(truncatingIfNeeded: entry.key.hashValue)
            earlier = sketch.withLock { $0.note(hash) }
        }
        return rule.promotes(bodyLength: entry.bodyLength, earlierHits: earlier, capacity: capacity)
    }

    private func promote(
        _ entry: StoredEntry,
        captured: ByteChunk?,
        or body: (any StoredBody)?
    ) async throws(StoreError) -> Bool {
        let now = now
        let life = generation.load(ordering: .acquiring)
        let below: [StoredEntry]
        if let known = lower.peek(entry.key, now: now) {
            below = known
        } else {
            below = try await lower.entries(for: entry.key, now: now)
        }
        guard below.count <= TieredStore.maximumVariants,
            below.contains(where: { $0.isVersion(of: entry) }),
            let bytes = try await whole(entry, captured: captured, body: body)
        else { return false }
        let held = PromotedEntry.group(upper.peek(entry.key, now: now) ?? [], generation: life)
        let isHeld = held?.map(\.entry) == below
        let number =
            isHeld
            ? held?.first?.group ?? 0 : groups.add(1, ordering: .relaxed).newValue
        var writers: [any EntryWriter] = []
        for (index, variant) in below.enumerated() where !isHeld || variant.version == entry.version {
            let hasBody = variant.version == entry.version
            let promoted = PromotedEntry(
                entry: variant,
                group: number,
                generation: life,
                index: index,
                count: below.count,
                hasBody: hasBody
            )
            let writer = try await upper.write(
                variant.key,
                variant: variant.variant,
                description: promoted.description,
                expectedLength: hasBody ? bytes.count : 0,
                now: now
            )
            if hasBody, !bytes.isEmpty { try await writer.append(bytes) }
            writers.append(writer)
        }
        guard coherence.withLock({ $0.isCurrent(entry.key) }), generation.load(ordering: .acquiring) == life else {
            return false
        }
        for writer in writers { try await writer.commit(nil, now: now) }
        return true
    }

    private func whole(
        _ entry: StoredEntry,
        captured: ByteChunk?,
        body: (any StoredBody)?
    ) async throws(StoreError) -> ByteChunk? {
        if let captured { return captured.count == entry.bodyLength ? captured : nil }
        guard let body else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(entry.bodyLength)
        while bytes.count < entry.bodyLength {
            let count = min(TieredStore.pieceLength, entry.bodyLength - bytes.count)
            let piece = try await body.read(from: bytes.count, upTo: count)
            if piece.isEmpty { return nil }
            bytesReread.add(piece.count, ordering: .relaxed)
            piece.append(to: &bytes)
        }
        return ByteChunk(bytes)
    }
}

/// Verification and compaction apply to the lower tier: the upper one holds copies.
extension TieredStore: InspectableStore {
    public func verify(
        _ progress: @escaping @Sendable (VerificationProgress) -> Void
    ) async throws(StoreError) -> VerificationReport {
        try await inspectable.verify(progress)
    }

    @discardableResult
    public func compact() async throws(StoreError) -> CompactionReport {
        try await inspectable.compact()
    }

    private var inspectable: any InspectableStore {
        get throws(StoreError) {
            if let lower = lower as? any InspectableStore { return lower }
            throw StoreError(
                .badConfiguration,
                "The lower tier can be neither verified nor compacted; make it conform to InspectableStore."
            )
        }
    }
}

/// Changes of the lower tier by others, as a store shared by several processes learns of them.
extension TieredStore {
    /// Another process is changing, or has changed, a key; the upper tier is not asked for it until ``endExternalChange(of:)``.
    package func beginExternalChange(of key: StoreKey) {
        beginChange(of: key)
    }

    /// Removes what the upper tier holds of a key that ``beginExternalChange(of:)`` named.
    package func endExternalChange(of key: StoreKey) async {
        await forget(key)
        endChange(key)
    }

    /// Changes below may be missed from now on: the upper tier is not used until ``resumeUpperTier(_:forgetting:)``.
    package func suspendUpperTier() {
        beginChange(of: nil)
    }

    /// Ends suspensions, after one pass over the upper tier that removes what it cannot be trusted with.
    ///
    /// - Parameters:
    ///   - suspensions: how many calls of ``suspendUpperTier()`` it ends.
    ///   - prefixes: what the removed keys begin with; an empty one removes everything.
    package func resumeUpperTier(_ suspensions: Int, forgetting prefixes: Set<[UInt8]>) async {
        if prefixes.contains([]) {
            await forgetAll()
        } else if prefixes.count == 1, let prefix = prefixes.first {
            await purgeAbove(.keyPrefix(prefix), now: now)
        } else {
            await purgeAbove(.matching { entry in prefixes.contains { entry.key.hasPrefix($0) } }, now: now)
        }
        for _ in 0..<suspensions { endChange(nil) }
    }
}
