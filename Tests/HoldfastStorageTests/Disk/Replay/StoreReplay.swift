// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting

@testable import HoldfastSimulation
@testable import HoldfastStorage

/// Requests replayed through a real store over simulated files, and through the policy that has the store's rules.
struct StoreReplay {
    let trace: RequestTrace
    let capacity: Int
    /// Bytes that each request has for one of its trace's.
    var scale = 1.0
    /// Bytes of record around a body: header and keys.
    static let overhead = 104 + 2 * 4 + 2 + 4 + 4 + 8

    /// The bytes of a body.
    private func size(_ request: RequestTrace.Request) -> Int {
        max(1, Int(Double(request.size) * scale))
    }

    /// What a store of this capacity hits, how often it had no room for an entry, and which requests were hits.
    func store() async throws -> (result: HitRateResult, refused: Int, hits: [Bool]) {
        var refused = 0
        var hits: [Bool] = []
        var result = HitRateResult(policy: "store", capacity: capacity)
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(
            directory: "/store",
            capacity: capacity,
            maximumEntrySize: capacity,
            fileSystem: files,
            now: .at(0)
        )
        let body = ByteChunk([UInt8](repeating: 7, count: trace.requests.reduce(0) { max($0, size($1)) }))
        for request in trace.requests {
            let size = size(request)
            let key = StoreKey(withUnsafeBytes(of: UInt64(request.key).littleEndian) { Array($0) })
            result.requests += 1
            result.requestedBytes += size
            hits.append(try await !store.entries(for: key, now: .at(0)).isEmpty)
            if hits.last == true {
                result.hits += 1
                result.hitBytes += size
                continue
            }
            do throws(StoreError) {
                let description = EntryDescription("meta")
                let writer = try await store.write(
                    key,
                    variant: StoreKey([]),
                    description: description,
                    expectedLength: size,
                    now: .at(0)
                )
                try await writer.append(body[0..<size])
                try await writer.commit(nil, now: .at(0))
                result.writtenBytes += size
            } catch {
                guard error.code == .noSpace || error.code == .tooLarge else { throw error }
                refused += 1
            }
        }
        result.evictions = store.statistics.entriesEvicted
        await store.close()
        return (result, refused, hits)
    }

    /// What the policy of the same shape hits, and which requests were hits; records are counted with their heads.
    func policy() -> (result: HitRateResult, hits: [Bool]) {
        var hits: [Bool] = []
        var result = HitRateResult(policy: "disk", capacity: capacity)
        let room = capacity - 8 * 4_096
        var policy = SegmentedPolicy(
            capacity: room,
            shape: SegmentShape(Geometry(capacity: capacity))
        )
        var victims: [UInt32] = []
        for request in trace.requests {
            let size = size(request)
            result.requests += 1
            result.requestedBytes += size
            hits.append(policy.holds(request.key))
            if hits.last == true {
                result.hits += 1
                result.hitBytes += size
                policy.use(request.key)
                continue
            }
            victims.removeAll(keepingCapacity: true)
            // A blob takes whole blocks.
            let isBlob = size > Geometry(capacity: capacity).inlineLimit
            let weight = isBlob ? SpaceQuota.blocks(size + 16) : (size + Self.overhead + 15) / 16 * 16
            let key = SplitMix64.mixed(UInt64(request.key))
            policy.insert(request.key, key: key, size: weight, victims: &victims)
            if policy.holds(request.key) { result.writtenBytes += size }
            result.evictions += victims.count
        }
        result.movedBytes = policy.bytesMoved
        return (result, hits)
    }
}

extension SegmentShape {
    /// The shape of a store.
    fileprivate init(_ geometry: Geometry) {
        self.init(
            segmentSize: geometry.segmentSize,
            inlineLimit: geometry.inlineLimit,
            openSize: geometry.segmentSize,
            reserve: 2 * geometry.segmentSize
        )
    }
}
