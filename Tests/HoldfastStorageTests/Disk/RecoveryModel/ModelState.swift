// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The whole store as the rules see it: files, memory, and what callers were told.
struct ModelState: Hashable {
    var segments: [ModelSegment] = []
    var blobs: [ModelBlob] = []
    var formatEpoch: UInt8 = 0

    var rows = [ModelRow?](repeating: nil, count: Int(ModelPromises.identities))
    var pendingWrites: [ModelPendingWrite] = []
    var marks: [ModelRecord] = []
    var reclaims: [ModelReclaim] = []
    var uncertain: [ModelUncertainWrite] = []
    /// Removals whose tombstone could not be written yet.
    var postponed: [ModelPendingWrite] = []
    /// The segments that are written to, small and main log; zero for none.
    var active: [UInt8] = [0, 0]
    var epoch: UInt8 = 0
    var nextOrder: UInt8 = 1
    var nextSegment: UInt8 = 1

    var promises = ModelPromises()
    var omits: ModelOmissions = []

    /// The first promise that is broken now.
    var complaint: String? {
        for identity in 0..<ModelPromises.identities {
            let row = rows[Int(identity)].flatMap { isMarked($0.record) ? nil : $0.record }
            if let complaint = promises.complaint(identity, sees: row?.order) { return complaint }
            guard let row, row.blob != 0 else { continue }
            guard let blob = blobs.first(where: { $0.number == row.blob }) else {
                return "identity \(identity): the blob of \(row.order) is missing"
            }
            if blob.body != row.body { return "identity \(identity): \(row.order) has the body of \(blob.body)" }
        }
        return nil
    }

    func isMarked(_ record: ModelRecord) -> Bool {
        marks.contains { mark in
            guard mark.order > record.order else { return false }
            if mark.kind == .tagMark { return record.isTagged }
            return ModelPromises.hasPrefix(ModelPromises.key(record.subject))
        }
    }

    /// The highest segment number that exists or existed.
    var horizon: UInt8 { nextSegment - 1 }

    mutating func takeOrder() -> UInt8 {
        nextOrder += 1
        return nextOrder - 1
    }

    mutating func reserve(inMain isMain: Bool) -> (segment: UInt8, place: UInt8) {
        let log = isMain ? 1 : 0
        if let index = segments.firstIndex(where: { $0.number == active[log] }),
            segments[index].records.count < ModelSegment.places
        {
            segments[index].records.append(nil)
            return (active[log], UInt8(segments[index].records.count - 1))
        }
        active[log] = nextSegment
        segments.append(ModelSegment(number: nextSegment, isMain: isMain, epoch: epoch, records: [nil]))
        nextSegment += 1
        return (active[log], 0)
    }

    /// Starts a flight; its place is reserved in the same step unless that rule is left out.
    mutating func start(_ pendingWrite: ModelPendingWrite, inMain: Bool, placed: Bool) {
        var pendingWrite = pendingWrite
        pendingWrite.record.horizon = max(pendingWrite.record.horizon, horizon)
        if placed {
            (pendingWrite.segment, pendingWrite.place) = reserve(inMain: inMain)
            // A tombstone that opens a segment stands for all that existed before it.
        }
        pendingWrites.append(pendingWrite)
    }

    mutating func write(_ pendingWrite: ModelPendingWrite) {
        guard let index = segments.firstIndex(where: { $0.number == pendingWrite.segment }) else { return }
        segments[index].records[Int(pendingWrite.place)] = pendingWrite.record
    }

    mutating func unlink(blob number: UInt8) {
        blobs.removeAll { $0.number == number }
    }

    /// Whether a row or a record in flight names this blob.
    func isNamed(blob number: UInt8) -> Bool {
        rows.contains { $0?.record.blob == number }
            || pendingWrites.contains { $0.kind != .carry && !$0.isSuperseded && $0.record.blob == number }
    }
}
