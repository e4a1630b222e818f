// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastStorage

/// A store that four readers and a writer use together.
protocol ReclaimTarget: Sendable {
    /// Writes an entry; the oldest entries are evicted if necessary.
    func write(_ entry: Int) async throws

    /// Reads a complete entry.
    ///
    /// - Returns: false if it no longer exists.
    func read(_ entry: Int) async throws -> Bool
}

/// The bodies of the reclaim case: mostly small, with some of half a megabyte.
struct ReclaimBodies: Sendable {
    private let workloads = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 512 << 10].map(Workload.init)

    /// The workload of an entry: of every 64 entries, one is large, four have 64 KiB, the others less.
    func workload(_ entry: Int) -> Workload {
        switch entry % 64 {
        case 0: workloads[4]
        case 1...4: workloads[3]
        case 5...20: workloads[2]
        case 21...40: workloads[1]
        default: workloads[0]
        }
    }
}

/// The disk store.
struct StoreTarget: ReclaimTarget {
    let store: DiskStore
    let bodies: ReclaimBodies
    private let now = StoreInstant(milliseconds: 1_700_000_000_000)

    init(store: DiskStore, bodies: ReclaimBodies) {
        (self.store, self.bodies) = (store, bodies)
    }

    func write(_ entry: Int) async throws {
        let workload = bodies.workload(entry)
        do throws(StoreError) {
            let writer = try await store.write(
                StoreKey(workload.key(entry)),
                variant: StoreKey([]),
                description: EntryDescription(metadata: workload.metadata(entry)),
                expectedLength: workload.size,
                now: now
            )
            try await writer.append(workload.body(entry))
            try await writer.commit(nil, now: now)
        } catch {
            // A store may refuse an entry if readers hold everything that could be evicted; a cache then continues without
            // storing.
            if error.code != .noSpace { throw error }
        }
    }

    func read(_ number: Int) async throws -> Bool {
        let workload = bodies.workload(number)
        do throws(StoreError) {
            let key = StoreKey(workload.key(number))
            var found = store.peek(key, now: now)
            if found == nil { found = try await store.entries(for: key, now: now) }
            guard let entry = found?.first else { return false }
            let body = try await store.body(of: entry)
            var bytes = body.bytesInMemory ?? ByteChunk()
            if bytes.isEmpty {
                bytes = try await body.read(from: 0, upTo: entry.bodyLength)
                var count = bytes.count
                while count < entry.bodyLength {
                    let piece = try await body.read(from: count, upTo: entry.bodyLength - count)
                    if piece.isEmpty { break }
                    count += piece.count
                }
                guard count == entry.bodyLength else { throw StoreError(.corrupt, "A body ended early.") }
            }
            return true
        } catch {
            if error.code == .superseded { return false }
            throw error
        }
    }
}

/// The lower limit: a ring in one file, written and read in place. The waiting time of its readers is noise of the machine.
struct RingTarget: ReclaimTarget {
    private static let slot = (512 << 10) + Workload.metadataLength
    let bodies: ReclaimBodies
    let file: Int32
    let slots: Int

    init(path: String, bytes: Int, bodies: ReclaimBodies) throws {
        self.bodies = bodies
        slots = max(1, bytes / Self.slot)
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if file < 0 { throw CallFailure("raw", "open", errno) }
        let empty = [UInt8](repeating: 0, count: Self.slot)
        for slot in 0..<slots {
            let count = empty.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(slot * Self.slot)) }
            guard count == empty.count else { throw CallFailure("raw", "pwrite", errno) }
        }
    }

    func write(_ entry: Int) async throws {
        let place = off_t(entry % slots * Self.slot)
        let value = bodies.workload(entry).value(entry)
        let count = value.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, place) }
        guard count == value.count else { throw CallFailure("raw", "pwrite", errno) }
    }

    func read(_ entry: Int) async throws -> Bool {
        let place = off_t(entry % slots * Self.slot)
        let length = bodies.workload(entry).valueLength
        let bytes = [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
            initialized = max(0, pread(file, buffer.baseAddress, buffer.count, place))
        }
        return bytes.count == length
    }
}
