// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Look-ups and pages of a list; both take a new snapshot where a record has moved on.
extension ReaderEngine {
    /// How often one step takes a new snapshot before it takes what has moved for gone.
    private static let tries = 16

    /// The variants of a key, newest first.
    ///
    /// - Throws: `.corrupt` when nothing but damage was found; `.io`, `.closed`.
    func look(_ key: StoreKey) throws(StoreError) -> [StoredEntry] {
        for attempt in 1...Self.tries {
            let snapshot = snapshot
            let handles = SegmentHandles(layout, files)
            var entries: [StoredEntry] = []
            var (isDamaged, hasMoved) = (false, false)
            for row in snapshot.index.rows(of: snapshot.hashing.primary(key)).all {
                switch try read(row, in: snapshot, handles) {
                case .record(let source):
                    if let entry = try snapshot.entry(source, key, seal: seal) { entries.append(entry) }
                case .damaged: isDamaged = true
                case .moved: hasMoved = true
                }
            }
            if hasMoved, attempt < Self.tries {
                try refresh(snapshot)
                continue
            }
            if isDamaged, entries.isEmpty { throw damaged() }
            return entries.sorted { $0.version > $1.version }
        }
        return []
    }

    /// Where a list stands within a shard.
    struct Place: Sendable {
        var fragment: UInt64 = 0
        var variant: UInt32 = 0
    }

    /// A few of the rows of a shard, each with what `work` made of it, and where the next ones begin.
    struct Page<Value: Sendable>: Sendable {
        var values: [Value] = []
        var next: Place?
    }

    /// Hands the next rows of a shard to `work`; one for which it returns nil has moved, and is looked at again in a new snapshot.
    ///
    /// - Parameters:
    ///   - giveUp: what becomes of a row that moves on again and again.
    func page<Value: Sendable>(
        shard number: Int,
        from start: Place,
        limit: Int,
        giveUp: Value? = nil,
        _ work: (IndexRow, StoreSnapshot, SegmentHandles) throws(StoreError) -> Value?
    ) throws(StoreError) -> Page<Value> {
        var page = Page<Value>()
        var place = start
        var tries = Self.tries
        again: while true {
            let snapshot = snapshot
            let handles = SegmentHandles(layout, files)
            let wanted = limit - page.values.count
            let rows = snapshot.rows(shard: number, from: place.fragment, variant: place.variant, limit: wanted)
            for row in rows {
                let value = try work(row, snapshot, handles)
                if value == nil, tries > 0 {
                    tries -= 1
                    try refresh(snapshot)
                    continue again
                }
                tries = Self.tries
                if let value = value ?? giveUp { page.values.append(value) }
                guard let next = row.next else { return page }
                place = Place(fragment: next.fragment, variant: next.variant)
            }
            page.next = rows.count < wanted ? nil : place
            return page
        }
    }
}
