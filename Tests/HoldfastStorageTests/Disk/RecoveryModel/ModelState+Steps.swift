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
        launch(ModelFlight(kind: .put, record: record), inMain: inMain, placed: isPlaced)
    }

    /// Writes an entry again under a new order, pinned or not.
    ///
    /// - Returns: false when there is nothing to freshen.
    mutating func beginFreshening(_ identity: UInt8, pinned: Bool = false) -> Bool {
        guard let row = rows[Int(identity)], !isMarked(row.record) else { return false }
        let isAlone = !flights.contains {
            ($0.kind == .put || $0.kind == .freshen) && $0.record.subject == identity
        }
        guard isAlone || omits.contains(.freshenAlone) else { return false }
        var record = row.record
        record.order = takeOrder()
        record.isPinned = pinned
        if record.isTagged { noteTagged(record) }
        launch(ModelFlight(kind: .freshen, record: record), inMain: false, placed: true)
        return true
    }

    private mutating func noteTagged(_ record: ModelRecord) {
        promises.tagged |= 1 << UInt64(record.order)
        promises.of[Int(record.subject)].taggedBegun |= 1 << UInt64(record.order)
    }

    /// Publishes a put or freshening that is written.
    mutating func publish(_ flight: ModelFlight) {
        let record = flight.record
        let identity = record.subject
        let index = Int(identity)
        promises.of[index].acknowledged = max(promises.of[index].acknowledged, record.order)
        let old = rows[index]
        if (flight.isSuperseded && !omits.contains(.supersededFlights)) || (old?.record.order ?? 0) > record.order {
            if flight.kind == .put, record.blob != 0 { unlink(blob: record.blob) }
            return
        }
        rows[index] = ModelRow(
            segment: flight.segment,
            place: flight.place,
            record: record,
            shadows: old != nil || (!omits.contains(.flightShadows) && mayShadow(identity, below: record.order))
        )
        supersede(below: record.order) { $0 == identity }
        if let blob = old?.record.blob, blob != 0, blob != record.blob { unlink(blob: blob) }
    }

    /// Whether a record of an order below may come to lie on the disk without its row having been seen.
    private func mayShadow(_ identity: UInt8, below order: UInt8) -> Bool {
        flights.contains { other in
            guard other.record.order < order else { return false }
            switch other.kind {
            case .put, .freshen: return other.record.subject == identity
            case .removal: return other.record.subject == ModelPromises.key(identity)
            default: return false
            }
        } || uncertain.contains { $0.identity == identity && $0.order < order }
    }

    private mutating func supersede(below order: UInt8, where matches: (UInt8) -> Bool) {
        for index in flights.indices
        where (flights[index].kind == .put || flights[index].kind == .freshen)
            && flights[index].record.order < order && matches(flights[index].record.subject)
        {
            flights[index].isSuperseded = true
        }
    }

    mutating func beginRemoval(_ key: UInt8) {
        let order = takeOrder()
        let identities = (0..<ModelPromises.identities).filter { ModelPromises.key($0) == key }
        let evictions = identities.compactMap { rows[Int($0)] }
        let isPending =
            !reclaims.isEmpty || uncertain.contains { identities.contains($0.identity) }
            || flights.contains { flight in
                switch flight.kind {
                case .put, .freshen: identities.contains(flight.record.subject)
                case .removal: flight.record.subject == key
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
        var flight = ModelFlight(kind: .removal, record: record)
        flight.blobs = evictions.map(\.record.blob).filter { $0 != 0 }
        launch(flight, inMain: false, placed: true)
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
        launch(ModelFlight(kind: .mark, record: record), inMain: false, placed: true)
    }

    /// The write of a flight came to its end.
    mutating func finish(_ index: Int) {
        let flight = flights.remove(at: index)
        write(flight)
        switch flight.kind {
        case .put, .freshen: publish(flight)
        case .carry: publishCarried(flight)
        case .removal:
            acknowledgeKill(flight.record)
            uncertain.removeAll {
                ModelPromises.key($0.identity) == flight.record.subject && $0.order < flight.record.order
            }
            for blob in flight.blobs where !isNamed(blob: blob) { unlink(blob: blob) }
        case .mark: acknowledgeKill(flight.record)
        case .evictionTombstone: break
        case .purgeAll: finishPurgeAll(flight)
        }
    }

    /// The write of a flight failed; `landed` says whether its record is on the disk all the same.
    mutating func fail(_ index: Int, landed: Bool) {
        let flight = flights.remove(at: index)
        if landed { write(flight) }
        switch flight.kind {
        case .put, .freshen:
            uncertain.append(ModelLingering(identity: flight.record.subject, order: flight.record.order))
            if flight.kind == .put, flight.record.blob != 0, flight.isSuperseded || omits.contains(.lingeringBlob) {
                unlink(blob: flight.record.blob)
            }
        case .removal:
            for identity in 0..<ModelPromises.identities where ModelPromises.key(identity) == flight.record.subject {
                uncertain.append(ModelLingering(identity: identity, order: flight.record.order))
            }
            if landed { acknowledgeKill(flight.record) }
            if !omits.contains(.owedTombstones) { owed.append(flight) }
        case .mark: if landed { acknowledgeKill(flight.record) }
        case .carry, .evictionTombstone, .purgeAll: break
        }
    }

    /// Writes the tombstone of a failed removal again, under its order.
    mutating func retryRemoval() {
        launch(owed.removeFirst(), inMain: false, placed: true)
    }
}
