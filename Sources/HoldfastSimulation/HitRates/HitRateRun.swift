// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

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
            policy.replay(batch.requests, &result, &victims)
        } else {
            policy.replay(versions: batch, &freshUntil, &result, &victims)
        }
        result.movedBytes = policy.bytesMoved - movedBefore
    }
}

// The loops are generic, so that the policy is unwrapped once a batch and not once a call.
extension EvictionPolicy {
    /// Requests of one version each, none of which is ever past its life.
    fileprivate mutating func replay(
        _ requests: ArraySlice<RequestTrace.Request>,
        _ result: inout HitRateResult,
        _ victims: inout [UInt32]
    ) {
        var (hits, hitBytes, bytes) = (0, 0, 0)
        for request in requests {
            bytes += Int(request.size)
            if holds(request.key) {
                hits += 1
                hitBytes += Int(request.size)
                use(request.key)
            } else {
                offer(request, &result, &victims)
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
        _ freshUntil: inout [StoreInstant],
        _ result: inout HitRateResult,
        _ victims: inout [UInt32]
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
            offer(request, &result, &victims)
        }
    }

    /// What follows a miss.
    private mutating func offer(
        _ request: RequestTrace.Request,
        _ result: inout HitRateResult,
        _ victims: inout [UInt32]
    ) {
        victims.removeAll(keepingCapacity: true)
        let hash = SplitMix64.mixed(UInt64(request.key))
        insert(request.key, key: hash, size: Int(request.size), victims: &victims)
        let isAdmitted = holds(request.key)
        if isAdmitted { result.writtenBytes += Int(request.size) }
        result.evictions += victims.count - (isAdmitted ? 0 : 1)
    }
}
