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

/// What one policy at one size would have hit.
///
/// Requests of the warm-up are in none of the counts. Each other one is exactly one of: a hit, a revalidation, or a miss.
public struct HitRateResult: Sendable, Hashable {
    /// The policy's name.
    public let policy: String
    /// Bytes of the cache.
    public let capacity: Int
    /// Requests replayed, and those that were hits.
    public internal(set) var requests = 0
    public internal(set) var hits = 0
    /// Requests whose copy was there but past its life; none where the requests say nothing of lives.
    public internal(set) var revalidations = 0
    /// Bytes of all requests, of those that were hits, and of those that were revalidations.
    public internal(set) var requestedBytes = 0
    public internal(set) var hitBytes = 0
    public internal(set) var revalidatedBytes = 0
    /// Entries that left because space was needed; one that was never admitted is none, nor is one that a newer version replaced.
    public internal(set) var evictions = 0
    /// Bytes of the entries admitted.
    public internal(set) var writtenBytes = 0
    /// Bytes copied within the cache in order to keep them.
    public internal(set) var movedBytes = 0

    /// Nothing counted yet.
    public init(policy: String, capacity: Int) {
        self.policy = policy
        self.capacity = capacity
    }

    /// Requests that were neither hits nor revalidations.
    public var misses: Int { requests - hits - revalidations }

    /// Hits of all requests; 0 when there were none.
    public var objectHitRatio: Double { ratio(hits, of: requests) }

    /// Bytes hit of all bytes requested; 0 when there were none.
    public var byteHitRatio: Double { ratio(hitBytes, of: requestedBytes) }

    /// Bytes written, those copied within the cache included, for each byte requested; 0 when there were none.
    public var writesPerByte: Double { ratio(writtenBytes + movedBytes, of: requestedBytes) }

    /// Bytes written, those copied within the cache included, for each byte admitted; 0 when there were none.
    public var writeAmplification: Double { ratio(writtenBytes + movedBytes, of: writtenBytes) }

    private func ratio(_ part: Int, of whole: Int) -> Double {
        whole > 0 ? Double(part) / Double(whole) : 0
    }
}

/// Some requests of a trace that follow one another, with what is needed to judge them.
struct RequestBatch: Sendable {
    var requests: ArraySlice<RequestTrace.Request>
    /// By offset from the first, whether the size differs from that of the key's request before; empty: none does.
    var changed: [Bool] = []
    /// Of the whole trace, by the index of the request; empty: no request has a life.
    var times = RequestTrace.Times()

    /// A batch of requests without lives.
    init(_ requests: ArraySlice<RequestTrace.Request>) {
        self.requests = requests
    }

    /// The first requests, and the others.
    func split(after count: Int) -> (first: RequestBatch, rest: RequestBatch) {
        var (first, rest) = (self, self)
        first.requests = requests.prefix(count)
        rest.requests = requests.dropFirst(count)
        if !changed.isEmpty { rest.changed = Array(changed.dropFirst(count)) }
        return (first, rest)
    }
}

/// One policy at one size, and what it did with the requests so far.
struct HitRateRun: Sendable {
    private(set) var result: HitRateResult
    private var policy: any EvictionPolicy
    private var victims: [UInt32] = []
    /// By key: when the copy held is past its life.
    private var freshUntil: [StoreInstant] = []
    /// Requests still to come that are not counted, and the bytes that had been moved when counting began.
    private var warmUp: Int
    private var movedBefore = 0

    init(_ policy: any EvictionPolicy, name: String, warmUp: Int) {
        self.policy = policy
        self.warmUp = max(0, warmUp)
        result = HitRateResult(policy: name, capacity: policy.capacity)
    }

    mutating func replay(_ batch: RequestBatch) {
        guard warmUp > 0 else { return count(batch) }
        let (first, rest) = batch.split(after: warmUp)
        warmUp -= first.requests.count
        count(first)
        result = HitRateResult(policy: result.policy, capacity: result.capacity)
        movedBefore = policy.bytesMoved
        count(rest)
    }

    private mutating func count(_ batch: RequestBatch) {
        if batch.changed.isEmpty && batch.times.instants.isEmpty {
            policy.replay(batch.requests, result: &result, victims: &victims)
        } else {
            policy.replay(versions: batch, freshUntil: &freshUntil, result: &result, victims: &victims)
        }
        result.movedBytes = policy.bytesMoved - movedBefore
    }
}

// The loops are generic, so that the policy is unwrapped once a batch and not once a call.
extension EvictionPolicy {
    /// Requests of one version each, none of which is ever past its life.
    fileprivate mutating func replay(
        _ requests: ArraySlice<RequestTrace.Request>,
        result: inout HitRateResult,
        victims: inout [UInt32]
    ) {
        var (hits, hitBytes, bytes) = (0, 0, 0)
        for request in requests {
            bytes += Int(request.size)
            if holds(request.key) {
                hits += 1
                hitBytes += Int(request.size)
                use(request.key)
            } else {
                offer(request, result: &result, victims: &victims)
            }
        }
        result.requests += requests.count
        result.requestedBytes += bytes
        result.hits += hits
        result.hitBytes += hitBytes
    }

    /// Requests that may ask for new versions, or find a copy past its life.
    fileprivate mutating func replay(
        versions batch: RequestBatch,
        freshUntil: inout [StoreInstant],
        result: inout HitRateResult,
        victims: inout [UInt32]
    ) {
        let first = batch.requests.startIndex
        let hasLives = !batch.times.instants.isEmpty
        for index in batch.requests.indices {
            let request = batch.requests[index]
            let (key, size) = (Int(request.key), Int(request.size))
            result.requests += 1
            result.requestedBytes += size
            if hasLives, key >= freshUntil.count {
                freshUntil += Array(repeating: .distantFuture, count: key + 1 - freshUntil.count)
            }
            if holds(request.key) {
                // What is held has the size that was asked for last.
                let isChanged = !batch.changed.isEmpty && batch.changed[index - first]
                if !isChanged {
                    if !hasLives || batch.times.instants[index] < freshUntil[key] {
                        result.hits += 1
                        result.hitBytes += size
                    } else {
                        result.revalidations += 1
                        result.revalidatedBytes += size
                        freshUntil[key] = batch.times.freshUntil[index]
                    }
                    use(request.key)
                    continue
                }
                remove(request.key)
            }
            if hasLives { freshUntil[key] = batch.times.freshUntil[index] }
            offer(request, result: &result, victims: &victims)
        }
    }

    /// What follows a miss.
    private mutating func offer(
        _ request: RequestTrace.Request,
        result: inout HitRateResult,
        victims: inout [UInt32]
    ) {
        victims.removeAll(keepingCapacity: true)
        let hash = SplitMix64.mixed(UInt64(request.key))
        insert(request.key, key: hash, size: Int(request.size), victims: &victims)
        let isAdmitted = holds(request.key)
        if isAdmitted { result.writtenBytes += Int(request.size) }
        result.evictions += victims.count - (isAdmitted ? 0 : 1)
    }
}
