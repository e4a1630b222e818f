// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Copying entries from the lower tier into the upper one.
///
/// In this order, so that nothing comes back that was changed meanwhile: the promotion is registered, the lower tier is
/// read, the upper tier's writers begin, the register is asked whether a change began since, and only then the writers commit. A
/// change that begins later finds the writers there, and its invalidation of the upper tier stops or undoes them.
extension TieredStore {
    /// More variants than every store keeps would push each other out of the upper tier.
    private static let maximumVariants = 8
    private static let pieceLength = 256 << 10

    /// The body as the reader gets it, which may bring about a promotion.
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

    /// Copies an entry into the upper tier in a task of its own, unless too much is under way.
    ///
    /// - Parameters:
    ///   - bytes: its body; nil to read it from `body`.
    func startPromotion(of entry: StoredEntry, _ bytes: ByteChunk?, or body: (any StoredBody)? = nil) {
        guard ledger.withLock({ $0.beginPromotion(of: entry.key, bytes: entry.bodyLength) }) else {
            promotionsDropped.add(1, ordering: .relaxed)
            return
        }
        Task {
            let isDone = (try? await promote(entry, bytes, or: body)) ?? false
            if isDone {
                promotions.add(1, ordering: .relaxed)
                bytesPromoted.add(entry.bodyLength, ordering: .relaxed)
            } else {
                promotionsDropped.add(1, ordering: .relaxed)
            }
            endPromotion(of: entry.key)
        }
    }

    /// Has the upper tier forget a key in a task of its own, unless too much is under way.
    func startForgetting(_ key: StoreKey) {
        guard ledger.withLock({ $0.beginPromotion(of: key, bytes: 0) }) else { return }
        Task {
            await forget(key)
            endPromotion(of: key)
        }
    }

    /// Waits until no promotion is under way.
    func settle() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isSettled = settling.withLock { settling in
                if ledger.withLock({ $0.isIdle }) { return true }
                settling.append(continuation)
                return false
            }
            if isSettled { continuation.resume() }
        }
    }

    private func endPromotion(of key: StoreKey) {
        ledger.withLock { $0.endPromotion(of: key) }
        let settled = settling.withLock { settling in
            guard ledger.withLock({ $0.isIdle }) else { return [CheckedContinuation<Void, Never>]() }
            defer { settling = [] }
            return settling
        }
        for continuation in settled { continuation.resume() }
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
        _ captured: ByteChunk?,
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
            below.contains(where: { $0.version == entry.version && $0.variant == entry.variant }),
            let bytes = try await whole(entry, captured, body)
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
                variant,
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
        guard ledger.withLock({ $0.isCurrent(entry.key) }), generation.load(ordering: .acquiring) == life else {
            return false
        }
        for writer in writers { try await writer.commit(nil, now: now) }
        return true
    }

    private func whole(
        _ entry: StoredEntry,
        _ captured: ByteChunk?,
        _ body: (any StoredBody)?
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
