// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Puts, freshenings and removals, each split where a crash or another step can come between.
extension ModelState {
    mutating func beginPut(_ identity: UInt8, tagged: Bool, blob: Bool, inMain: Bool) {
        let order = takeOrder()
        var record = ModelRecord(kind: .entry, subject: identity, order: order, isTagged: tagged, body: order)
        if blob {
            record.blob = omits.contains(.blobNumbers) ? (blobs.map(\.number).max() ?? 0) + 1 : order
            blobs.append(ModelBlob(number: record.blob, body: order))
        }
        if tagged { noteTagged(record) }
        let isPlaced = !omits.contains(.placeWithOrder)
        start(ModelPendingWrite(kind: .put, record: record), inMain: inMain, placed: isPlaced)
    }

    /// Writes an entry again under a new order, pinned or not.
    ///
    /// - Returns: false when there is nothing to freshen.
    mutating func beginFreshening(_ identity: UInt8, pinned: Bool = false) -> Bool {
        guard let row = rows[Int(identity)], !isMarked(row.record) else { return false }
        let isAlone = !pendingWrites.contains {
            ($0.kind == .put || $0.kind == .freshen) && $0.record.subject == identity
        }
        guard isAlone || omits.contains(.freshenAlone) else { return false }
        var record = row.record
        record.order = takeOrder()
        record.isPinned = pinned
        if record.isTagged { noteTagged(record) }
        start(ModelPendingWrite(kind: .freshen, record: record), inMain: false, placed: true)
        return true
    }

    private mutating func noteTagged(_ record: ModelRecord) {
        promises.tagged |= 1 << UInt64(record.order)
        promises.of[Int(record.subject)].taggedBegun |= 1 << UInt64(record.order)
    }

    /// Publishes a put or freshening that is written.
    mutating func publish(_ pendingWrite: ModelPendingWrite) {
        let record = pendingWrite.record
        let identity = record.subject
        let index = Int(identity)
        promises.of[index].acknowledged = max(promises.of[index].acknowledged, record.order)
        let old = rows[index]
        if (pendingWrite.isSuperseded && !omits.contains(.supersededWrites)) || (old?.record.order ?? 0) > record.order
        {
            if pendingWrite.kind == .put, record.blob != 0 { unlink(blob: record.blob) }
            return
        }
        rows[index] = ModelRow(
            segment: pendingWrite.segment,
            place: pendingWrite.place,
            record: record,
            shadows: old != nil || (!omits.contains(.flightShadows) && mayShadow(identity, below: record.order))
        )
        supersede(below: record.order) { $0 == identity }
        if let blob = old?.record.blob, blob != 0, blob != record.blob { unlink(blob: blob) }
    }

    /// Whether a record of an order below may come to lie on the disk without its row having been seen.
    private func mayShadow(_ identity: UInt8, below order: UInt8) -> Bool {
        pendingWrites.contains { other in
            guard other.record.order < order else { return false }
            switch other.kind {
            case .put, .freshen: return other.record.subject == identity
            case .removal: return other.record.subject == ModelPromises.key(identity)
            default: return false
            }
        } || uncertain.contains { $0.identity == identity && $0.order < order }
    }

    private mutating func supersede(below order: UInt8, where matches: (UInt8) -> Bool) {
        for index in pendingWrites.indices
        where (pendingWrites[index].kind == .put || pendingWrites[index].kind == .freshen)
            && pendingWrites[index].record.order < order && matches(pendingWrites[index].record.subject)
        {
            pendingWrites[index].isSuperseded = true
        }
    }

    mutating func beginRemoval(_ key: UInt8) {
        let order = takeOrder()
        let identities = (0..<ModelPromises.identities).filter { ModelPromises.key($0) == key }
        let evictions = identities.compactMap { rows[Int($0)] }
        let isPending =
            !reclaims.isEmpty || uncertain.contains { identities.contains($0.identity) }
            || pendingWrites.contains { pendingWrite in
                switch pendingWrite.kind {
                case .put, .freshen: identities.contains(pendingWrite.record.subject)
                case .removal: pendingWrite.record.subject == key
                default: false
                }
            }
        for identity in identities {
            rows[Int(identity)] = nil
            promises.of[Int(identity)].killBegun = order
        }
        supersede(below: order) { ModelPromises.key($0) == key }
        let record = ModelRecord(kind: .keyTombstone, subject: key, order: order)
        if evictions.isEmpty, !isPending || omits.contains(.removalWithoutRow) { return acknowledgeKill(record) }
        var pendingWrite = ModelPendingWrite(kind: .removal, record: record)
        pendingWrite.blobs = evictions.map(\.record.blob).filter { $0 != 0 }
        start(pendingWrite, inMain: false, placed: true)
    }

    mutating func acknowledgeKill(_ record: ModelRecord) {
        if record.kind == .tagMark {
            promises.tagKilled = max(promises.tagKilled, record.order)
            return
        }
        for identity in 0..<ModelPromises.identities where kills(record, identity) {
            promises.of[Int(identity)].killed = max(promises.of[Int(identity)].killed, record.order)
        }
    }

    private func kills(_ record: ModelRecord, _ identity: UInt8) -> Bool {
        switch record.kind {
        case .keyTombstone: record.subject == ModelPromises.key(identity)
        case .prefixMark: ModelPromises.hasPrefix(ModelPromises.key(identity))
        case .entry, .variantTombstone, .tagMark: false
        }
    }

    mutating func beginMark(_ kind: ModelRecord.Kind) {
        var record = ModelRecord(kind: kind, subject: 0, order: takeOrder())
        if kind == .tagMark { promises.tagKillBegun = record.order }
        for identity in 0..<ModelPromises.identities where kills(record, identity) {
            promises.of[Int(identity)].killBegun = record.order
        }
        record.horizon = horizon
        marks.append(record)
        start(ModelPendingWrite(kind: .mark, record: record), inMain: false, placed: true)
    }

    /// The write of a flight came to its end.
    mutating func finish(_ index: Int) {
        let pendingWrite = pendingWrites.remove(at: index)
        write(pendingWrite)
        switch pendingWrite.kind {
        case .put, .freshen: publish(pendingWrite)
        case .carry: publishCarried(pendingWrite)
        case .removal:
            acknowledgeKill(pendingWrite.record)
            uncertain.removeAll {
                ModelPromises.key($0.identity) == pendingWrite.record.subject && $0.order < pendingWrite.record.order
            }
            for blob in pendingWrite.blobs where !isNamed(blob: blob) { unlink(blob: blob) }
        case .mark: acknowledgeKill(pendingWrite.record)
        case .evictionTombstone: break
        case .purgeAll: finishPurgeAll(pendingWrite)
        }
    }

    /// The write of a flight failed; `landed` says whether its record is on the disk all the same.
    mutating func fail(_ index: Int, landed: Bool) {
        let pendingWrite = pendingWrites.remove(at: index)
        if landed { write(pendingWrite) }
        switch pendingWrite.kind {
        case .put, .freshen:
            uncertain.append(
                ModelUncertainWrite(identity: pendingWrite.record.subject, order: pendingWrite.record.order)
            )
            if pendingWrite.kind == .put, pendingWrite.record.blob != 0,
                pendingWrite.isSuperseded || omits.contains(.uncertainBlob)
            {
                unlink(blob: pendingWrite.record.blob)
            }
        case .removal:
            for identity in 0..<ModelPromises.identities
            where ModelPromises.key(identity) == pendingWrite.record.subject {
                uncertain.append(ModelUncertainWrite(identity: identity, order: pendingWrite.record.order))
            }
            if landed { acknowledgeKill(pendingWrite.record) }
            if !omits.contains(.postponedTombstones) { postponed.append(pendingWrite) }
        case .mark: if landed { acknowledgeKill(pendingWrite.record) }
        case .carry, .evictionTombstone, .purgeAll: break
        }
    }

    /// Writes the tombstone of a failed removal again, under its order.
    mutating func retryRemoval() {
        start(postponed.removeFirst(), inMain: false, placed: true)
    }
}
