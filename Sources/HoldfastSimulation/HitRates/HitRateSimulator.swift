// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
public import HoldfastStorage

/// Replays requests through eviction policies and counts the hits.
///
/// One pass over the requests serves any number of policies and sizes:
///
///     var simulator = HitRateSimulator()
///     simulator.add(.lru, capacity: 64 << 20)
///     simulator.replay(trace)
///     print(simulator.results[0].objectHitRatio)
///
/// **The rules.** A request is a hit if the policy holds its key. Otherwise it is a miss, and the response is offered to the
/// policy. If the size differs from that of the key's previous request, another version was requested: a held copy is removed, and
/// the request is a miss (unless ``init(warmUp:sizesTellVersions:)`` says otherwise). If requests have lives, a held copy counts as
/// a revalidation, never as a hit, once it is past the life of the request that fetched or last revalidated it: the origin is
/// asked, says that nothing changed, and the copy gets the life of this request's response. Without lives and with one size for
/// each key, these are the rules by which the literature compares caches.
///
/// Memory: the policies' own tables, some 40 bytes for each key, and 8 for each key and policy if there are lives. Several million
/// requests per second and policy. Do not use it from two tasks at once: copy it, or make one for each.
public struct HitRateSimulator: Sendable {
    private var runs: [HitRateRun] = []
    private let warmUp: Int
    private let sizesTellVersions: Bool
    private var numbers = KeyNumbers()
    private var lastSizes: [UInt32?] = []
    /// Requests whose sizes are not in `lastSizes` yet: those of a first trace without changes, needed only if others follow.
    private var unrecorded: ArraySlice<RequestTrace.Request> = []

    /// A simulator without policies.
    ///
    /// - Parameters:
    ///   - warmUp: this many requests at the start fill the caches and are not counted; none by default.
    ///   - sizesTellVersions: whether another size of a key means another version; true by default. Set false if sizes differ for
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
    ///   - seed: the source of its random numbers, if it uses any.
    public mutating func add(_ strategy: EvictionStrategy, capacity: Int, seed: UInt64 = 0) {
        add(strategy.makePolicy(capacity: capacity, seed: seed), name: strategy.description)
    }

    /// Adds a policy of your own, before the first request; it must be empty.
    public mutating func add(_ policy: any EvictionPolicy, name: String) {
        runs.append(HitRateRun(policy, name: name, warmUp: warmUp))
    }

    /// The counts so far, in the order in which the policies were added.
    public var results: [HitRateResult] { runs.map(\.result) }

    /// Replays a whole trace, once; the next one of the same simulator must use the same numbers for the same keys.
    public mutating func replay(_ trace: RequestTrace) {
        replay(trace, every: 1 << 16) { _ in }
    }

    /// Replays a whole trace and reports its progress.
    ///
    /// - Parameters:
    ///   - trace: the requests.
    ///   - count: how many requests there are between two calls of `progress`.
    ///   - progress: called with the number of requests done. If it throws, the replay ends.
    public mutating func replay(
        _ trace: RequestTrace,
        every count: Int = 1 << 16,
        progress: (Int) throws -> Void
    ) rethrows {
        // If no size has changed so far, sizes need not be compared.
        let isPlain = trace.changes == 0 && lastSizes.isEmpty && unrecorded.isEmpty
        var start = 0
        while start < trace.requests.count {
            let end = start + min(max(1, count), trace.requests.count - start)
            var batch = RequestBatch(trace.requests[start..<end])
            if isPlain { unrecorded = trace.requests[..<end] } else { batch.changed = changes(in: batch.requests) }
            batch.times = trace.times
            for index in runs.indices { runs[index].replay(batch) }
            start = end
            try progress(end)
        }
    }

    /// Replays the requests of a `.trace` file as they are read; only the keys stay in memory.
    ///
    /// - Parameters:
    ///   - path: absolute, or relative to the process's directory.
    ///   - count: how many requests are read at once.
    ///   - progress: called with the number of requests done.
    /// - Throws: ``TraceError``; the requests before the damage were replayed.
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
    ///   - key: numbered from 0 without large gaps, as in ``RequestTrace``. Do not mix with hashes.
    ///   - size: bytes.
    public mutating func replay(key: UInt32, size: UInt32) {
        replay([RequestTrace.Request(key: key, size: size)])
    }

    /// Replays one request for a key that may be any number, such as a hash of a URL.
    ///
    /// - Returns: false if it was skipped because there are more than 2^32 - 1 keys.
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

    /// For each offset, whether a request's size differs from the key's previous size; empty if none does.
    private mutating func changes(in requests: ArraySlice<RequestTrace.Request>) -> [Bool] {
        var changed: [Bool] = []
        guard sizesTellVersions else { return changed }
        for request in unrecorded { _ = recordSize(of: request) }
        unrecorded = []
        for (offset, request) in requests.enumerated() {
            if let last = recordSize(of: request), last != request.size {
                if changed.isEmpty { changed = Array(repeating: false, count: requests.count) }
                changed[offset] = true
            }
        }
        return changed
    }

    /// Records a request's size, and returns that of the key's previous request.
    private mutating func recordSize(of request: RequestTrace.Request) -> UInt32? {
        let key = Int(request.key)
        if key >= lastSizes.count { lastSizes += Array(repeating: nil, count: key + 1 - lastSizes.count) }
        defer { lastSizes[key] = request.size }
        return lastSizes[key]
    }
}

/// The hits of one policy at one size.
///
/// Requests of the warm-up are not counted. Every other request is either a hit, a revalidation, or a miss.
public struct HitRateResult: Sendable, Hashable {
    /// The policy's name.
    public let policy: String
    /// Bytes of the cache.
    public let capacity: Int
    /// Requests replayed, and those that were hits.
    public internal(set) var requests = 0
    public internal(set) var hits = 0
    /// Requests whose copy was held but past its life; none if the requests have no lives.
    public internal(set) var revalidations = 0
    /// Bytes of all requests, of hits, and of revalidations.
    public internal(set) var requestedBytes = 0
    public internal(set) var hitBytes = 0
    public internal(set) var revalidatedBytes = 0
    /// Entries evicted because space was needed, without those that were never admitted and those that a newer version replaced.
    public internal(set) var evictions = 0
    /// Bytes of the entries admitted.
    public internal(set) var writtenBytes = 0
    /// Bytes copied within the cache to keep them.
    public internal(set) var movedBytes = 0

    /// Nothing counted yet.
    public init(policy: String, capacity: Int) {
        self.policy = policy
        self.capacity = capacity
    }

    /// Requests that were neither hits nor revalidations.
    public var misses: Int { requests - hits - revalidations }

    /// The share of requests that are hits; 0 if there were none.
    public var objectHitRatio: Double { ratio(hits, of: requests) }

    /// The share of requested bytes that are hits; 0 if there were none.
    public var byteHitRatio: Double { ratio(hitBytes, of: requestedBytes) }

    /// Bytes written, including those copied within the cache, for each byte requested; 0 if there were none.
    public var writesPerByte: Double { ratio(writtenBytes + movedBytes, of: requestedBytes) }

    /// Bytes written, including those copied within the cache, for each byte admitted; 0 if there were none.
    public var writeAmplification: Double { ratio(writtenBytes + movedBytes, of: writtenBytes) }

    private func ratio(_ part: Int, of whole: Int) -> Double {
        whole > 0 ? Double(part) / Double(whole) : 0
    }
}

/// Consecutive requests of a trace, with what is needed to evaluate them.
struct RequestBatch: Sendable {
    var requests: ArraySlice<RequestTrace.Request>
    /// For each offset from the first, whether the size differs from that of the key's previous request; empty: none does.
    var changed: [Bool] = []
    /// The times of the whole trace, by the index of the request; empty: no request has a life.
    var times = RequestTrace.Times()

    /// A batch of requests without lives.
    init(_ requests: ArraySlice<RequestTrace.Request>) { self.requests = requests }

    /// The first requests, and the rest.
    func split(after count: Int) -> (first: RequestBatch, rest: RequestBatch) {
        var (first, rest) = (self, self)
        first.requests = requests.prefix(count)
        rest.requests = requests.dropFirst(count)
        if !changed.isEmpty { rest.changed = Array(changed.dropFirst(count)) }
        return (first, rest)
    }
}

/// One policy at one size, and its counts so far.
struct HitRateRun: Sendable {
    private(set) var result: HitRateResult
    private var policy: any EvictionPolicy
    private var victims: [UInt32] = []
    /// For each key: when the held copy is past its life.
    private var freshUntil: [StoreInstant] = []
    /// How many more requests are not counted, and the bytes that had been moved when counting began.
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

// The loops are generic, so that the policy is unwrapped once for each batch instead of each call.
extension EvictionPolicy {
    /// Requests without new versions and without lives.
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
                // A held entry has the size of its last request.
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

    /// Handles a miss.
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
