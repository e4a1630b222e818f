// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastStorage

/// Replays requests through eviction policies and counts what they would have hit.
///
/// One pass over the requests serves any number of policies and sizes:
///
///     var simulator = HitRateSimulator()
///     simulator.add(.lru, capacity: 64 << 20)
///     simulator.replay(trace)
///     print(simulator.results[0].objectHitRatio)
///
/// **The rules.** A request is a hit when the policy holds its key. Else it is a miss, and the answer is offered to the policy.
/// When the size is not that of the key's request before, another version was asked for: a copy that is held leaves, and the
/// request is a miss (unless ``init(warmUp:sizesTellVersions:)`` says otherwise). Where requests have lives, a copy that is held and past the life of the request that fetched it or
/// revalidated it last counts as a revalidation, never as a hit: the origin is asked, says that nothing changed, and the copy
/// lives as long as this request's answer does. Without lives and with one size a key these are the rules by which caches are
/// compared in the literature.
///
/// Memory: the policies' own tables, some 40 bytes a key, and 8 a key for each policy where there are lives. Several million
/// requests a second and policy. Not for two tasks at once: copy it, or make one for each.
public struct HitRateSimulator: Sendable {
    private var runs: [HitRateRun] = []
    private let warmUp: Int
    private let sizesTellVersions: Bool
    private var numbers = KeyNumbers()
    private var lastSizes: [UInt32?] = []

    /// A simulator of nothing yet.
    ///
    /// - Parameters:
    ///   - warmUp: so many requests at the start fill the caches and are not counted; none by default.
    ///   - sizesTellVersions: whether another size of a key means another version, as by default. False where sizes differ for
    ///     other reasons, such as bodies that were not read to their end: a held key is then a hit, whatever its size.
    public init(warmUp: Int = 0, sizesTellVersions: Bool = true) {
        self.warmUp = warmUp
        self.sizesTellVersions = sizesTellVersions
    }

    /// Adds a policy at a size in bytes, before the first request.
    ///
    /// - Parameters:
    ///   - strategy: the policy.
    ///   - capacity: in bytes.
    ///   - seed: what it draws its random numbers from, if it does.
    public mutating func add(_ strategy: EvictionStrategy, capacity: Int, seed: UInt64 = 0) {
        add(strategy.makePolicy(capacity: capacity, seed: seed), name: strategy.description)
    }

    /// Adds a policy of your own, before the first request; it holds nothing yet.
    public mutating func add(_ policy: any EvictionPolicy, name: String) {
        runs.append(HitRateRun(policy, name: name, warmUp: warmUp))
    }

    /// What was counted so far, in the order in which the policies were added.
    public var results: [HitRateResult] { runs.map(\.result) }

    /// Replays a whole trace, once; the next one of the same simulator must number the same keys the same way.
    public mutating func replay(_ trace: RequestTrace) {
        replay(trace, every: 1 << 16) { _ in }
    }

    /// Replays a whole trace and tells how far it is.
    ///
    /// - Parameters:
    ///   - trace: the requests.
    ///   - count: how many requests lie between two calls of `progress`.
    ///   - progress: told how many requests are done. What it throws ends the replay.
    public mutating func replay(
        _ trace: RequestTrace,
        every count: Int = 1 << 16,
        progress: (Int) throws -> Void
    ) rethrows {
        // Where no size has changed so far, none need be looked at.
        let isPlain = trace.changes == 0 && lastSizes.isEmpty
        var start = 0
        while start < trace.requests.count {
            let end = start + min(max(1, count), trace.requests.count - start)
            var batch = RequestBatch(trace.requests[start..<end])
            if !isPlain { batch.changed = changes(in: batch.requests) }
            batch.times = trace.times
            for index in runs.indices { runs[index].replay(batch) }
            start = end
            try progress(end)
        }
    }

    /// Replays the requests of a `.trace` file as they are read; only the keys are kept in memory.
    ///
    /// - Parameters:
    ///   - path: absolute, or relative to the process's directory.
    ///   - count: how many requests are read at once.
    ///   - progress: told how many requests are done.
    /// - Throws: ``TraceError``; requests before the damage were replayed.
    public mutating func replay(
        contentsOf path: String,
        every count: Int = 1 << 16,
        progress: (Int) -> Void = { _ in }
    ) throws(TraceError) {
        var reader = try TraceReader(path: path)
        var done = 0
        while true {
            let records = try reader.next(upTo: count)
            if records.isEmpty { return }
            var requests: [RequestTrace.Request] = []
            requests.reserveCapacity(records.count)
            for record in records {
                guard let number = numbers.number(of: record.key) else { throw .tooManyKeys }
                requests.append(RequestTrace.Request(key: number, size: record.size))
            }
            replay(requests[...])
            done += records.count
            progress(done)
        }
    }

    /// Replays one request of a numbered key.
    ///
    /// - Parameters:
    ///   - key: numbered from 0 without large gaps, as ``RequestTrace`` does. Do not mix with hashes.
    ///   - size: bytes.
    public mutating func replay(key: UInt32, size: UInt32) {
        replay([RequestTrace.Request(key: key, size: size)])
    }

    /// Replays one request of a key that may be any number, such as a hash of a URL.
    ///
    /// - Returns: false when it was left out because there are more than 2^32 - 1 keys.
    @discardableResult
    public mutating func replay(hash: UInt64, size: UInt32) -> Bool {
        guard let number = numbers.number(of: hash) else { return false }
        replay(key: number, size: size)
        return true
    }

    private mutating func replay(_ requests: ArraySlice<RequestTrace.Request>) {
        var batch = RequestBatch(requests)
        batch.changed = changes(in: requests)
        for index in runs.indices { runs[index].replay(batch) }
    }

    /// By offset, whether a request's size is another than the same key had before; empty when none is.
    private mutating func changes(in requests: ArraySlice<RequestTrace.Request>) -> [Bool] {
        var changed: [Bool] = []
        guard sizesTellVersions else { return changed }
        for (offset, request) in requests.enumerated() {
            let key = Int(request.key)
            if key >= lastSizes.count { lastSizes += Array(repeating: nil, count: key + 1 - lastSizes.count) }
            if let last = lastSizes[key], last != request.size {
                if changed.isEmpty { changed = Array(repeating: false, count: requests.count) }
                changed[offset] = true
            }
            lastSizes[key] = request.size
        }
        return changed
    }
}
