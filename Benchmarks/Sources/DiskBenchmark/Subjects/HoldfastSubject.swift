// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import HoldfastStorage

/// The disk store, used through the protocol that a cache uses.
final class HoldfastSubject: Subject {
    private let store: DiskStore
    private let workload: Workload
    private let now = StoreInstant(milliseconds: 1_700_000_000_000)
    private static let noVariant = StoreKey([])

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - capacity: nil: four times the size of all entries, so that nothing is evicted.
    ///   - fillsUp: Whether to put entries until the store is full, so that each later put must evict first.
    init(_ setting: SubjectKind.Setting, capacity: Int?, fillsUp: Bool) async throws {
        workload = setting.workload
        let capacity = capacity ?? max(64 << 20, 4 * setting.volume)
        store = try await DiskStore.open(directory: setting.directory, capacity: capacity, now: now)
        guard fillsUp else { return }
        let watch = Stopwatch()
        var entry = 1 << 40
        var written = 0
        while written < capacity + capacity / 4, watch.seconds < setting.plan.warmUpSeconds {
            try await put(Step(workload, entry, isPut: true))
            entry += 1
            written += workload.valueLength
        }
    }

    func run(_ steps: ArraySlice<Step>) async throws {
        for step in steps {
            if step.isPut { try await put(step) } else { try await get(step) }
        }
    }

    private func put(_ step: Step) async throws {
        try await store.put(
            step.key,
            variant: Self.noVariant,
            description: EntryDescription(metadata: workload.metadata(step.entry)),
            body: workload.body(step.entry),
            now: now
        )
    }

    private func get(_ step: Step) async throws {
        var found = store.peek(step.key, now: now)
        if found == nil { found = try await store.entries(for: step.key, now: now) }
        guard let entry = found?.first, entry.description.metadata.count == Workload.metadataLength else {
            throw WrongAnswer(subject: "holdfast", entry: step.entry)
        }
        let body = try await store.body(of: entry)
        var bytes = ByteChunk()
        if let all = body.bytesInMemory {
            bytes = all
        } else {
            bytes = try await body.read(from: 0, upTo: entry.bodyLength)
            if bytes.count < entry.bodyLength { bytes = try await rest(of: body, after: bytes, entry.bodyLength) }
        }
        guard bytes.withUnsafeBytes({ workload.holds($0, step.entry) }) else {
            throw WrongAnswer(subject: "holdfast", entry: step.entry)
        }
    }

    /// Joins a body that arrives in pieces, because every other subject returns one piece.
    private func rest(of body: any StoredBody, after first: ByteChunk, _ length: Int) async throws -> ByteChunk {
        var all = [UInt8]()
        all.reserveCapacity(length)
        first.append(to: &all)
        while all.count < length {
            let piece = try await body.read(from: all.count, upTo: length - all.count)
            if piece.isEmpty { break }
            piece.append(to: &all)
        }
        return ByteChunk(all)
    }

    func close() async {
        await store.close()
    }
}
