// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// The requests to replay, all of them or, once there are more than memory is meant for, those of a part of the objects.
    ///
    /// The part is chosen by a hash of the key, so that all requests for an object are in it or none; a cache of size s does to all
    /// requests what one of rate · s does to the sample (SHARDS, Waldspurger et al., FAST 2015). The part is halved as often as need be.
    struct SampledRequests: Sendable {
        /// The share of all objects that is kept.
        private(set) var rate = 1.0
        /// Requests offered, kept or not.
        private(set) var seen = 0
        /// Requests left out because there are too many for too few objects to choose among.
        private(set) var cut = 0
        private let limit: Int
        /// Whether an object has one size, the largest that was seen; else each request has its own.
        private let sizesAreOfObjects: Bool
        private let hasLives: Bool
        private var threshold = UInt64.max
        private var keys: [UInt64] = []
        private var sizes: [UInt32] = []
        private var instants: [Int64] = []
        private var freshUntil: [Int64] = []
        private var largest: [UInt64: UInt32] = [:]

        /// - Parameters:
        ///   - limit: how many requests are kept at most; at least 2.
        ///   - sizesAreOfObjects: whether the largest size seen of an object counts for all its requests.
        ///   - hasLives: whether requests have times and lives.
        init(limit: Int, sizesAreOfObjects: Bool, hasLives: Bool) {
            self.limit = max(2, limit)
            self.sizesAreOfObjects = sizesAreOfObjects
            self.hasLives = hasLives
        }

        /// How many requests are kept.
        var count: Int { keys.count }

        /// Adds a request.
        ///
        /// - Parameters:
        ///   - key: a hash, its bits well mixed.
        ///   - size: bytes of the body; nil where the request does not tell.
        ///   - instant: when it was made.
        ///   - end: until when its response is fresh.
        mutating func append(
            key: UInt64,
            size: UInt32?,
            at instant: Timestamp = .distantPast,
            freshUntil end: Timestamp = .distantFuture
        ) {
            seen += 1
            guard key <= threshold else { return }
            if keys.count >= limit {
                guard cut == 0, thin() else {
                    cut += 1
                    return
                }
                guard key <= threshold else { return }
            }
            keys.append(key)
            if sizesAreOfObjects {
                if let size { largest[key] = max(largest[key] ?? 0, size) }
            } else {
                sizes.append(size ?? 0)
            }
            if hasLives {
                instants.append(instant.millisecondsSinceEpoch)
                freshUntil.append(end.millisecondsSinceEpoch)
            }
        }

        /// The requests as a trace; those of objects whose size nothing tells are left out.
        ///
        /// - Returns: the trace, and how many requests were left out, as the sample has them.
        consuming func trace() -> (trace: RequestTrace, unsized: Int) {
            var trace = RequestTrace()
            var unsized = 0
            for index in keys.indices {
                let key = keys[index]
                guard let size = sizesAreOfObjects ? largest[key] : sizes[index] else {
                    unsized += 1
                    continue
                }
                trace.append(
                    key: key,
                    size: size,
                    at: hasLives ? StoreInstant(milliseconds: instants[index]) : nil,
                    freshUntil: hasLives ? StoreInstant(milliseconds: freshUntil[index]) : nil
                )
            }
            return (trace, unsized)
        }

        /// Drops the requests for about half of the objects.
        ///
        /// - Returns: false where too few objects would be left to say anything; then nothing was dropped.
        private mutating func thin() -> Bool {
            let next = threshold / 2
            let kept = keys.indices.filter { keys[$0] <= next }
            guard Set(kept.map { keys[$0] }).count >= Self.fewestObjects, kept.count < keys.count else {
                return false
            }
            threshold = next
            rate /= 2
            if !sizes.isEmpty { sizes = kept.map { sizes[$0] } }
            if hasLives {
                instants = kept.map { instants[$0] }
                freshUntil = kept.map { freshUntil[$0] }
            }
            keys = kept.map { keys[$0] }
            largest = largest.filter { $0.key <= next }
            return true
        }

        private static let fewestObjects = 64
    }
#endif
