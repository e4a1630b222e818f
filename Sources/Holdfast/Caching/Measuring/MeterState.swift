// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What was counted, in total and by origin, for a bounded number of origins.
///
/// Which origins have a place goes by their recent requests, by the rule of Space-Saving (Metwally et al. 2005): when all places
/// are taken, a new origin takes that of the origin with the fewest, and inherits its weight. So an origin with more than one
/// of `places` recent requests has a place, whatever else comes by. Weights are halved every ten minutes: that is "recent".
struct MeterState: Sendable {
    /// How many minutes are kept of the total, and of each origin.
    static let totalMinutes = 60
    static let originMinutes = 5

    private struct Place: Sendable {
        let name: String
        var weight = 0
        var ring = MinuteRing(length: originMinutes)
    }

    private(set) var total = MinuteRing(length: totalMinutes)
    /// What belongs to no origin that has a place.
    private(set) var other = CacheStatistics()
    private let capacity: Int
    /// The hashes of the origins, place by place; apart, so that a look for one reads little memory.
    private var hashes: [Int] = []
    private var places: [Place] = []
    private var last = 0
    private var decade = Int64.min

    /// - Parameter places: how many origins have one; at least 1.
    init(places: Int = CacheMeter.originLimit) {
        capacity = max(1, places)
    }

    /// Counts a request, and gives its origin a place.
    mutating func arrive(from origin: CountedOrigin?, in minute: Int64) {
        total.count(in: minute) { $0.requests += 1 }
        guard let origin else { return other.requests += 1 }
        let index = placeOfRequest(to: origin, in: minute)
        places[index].ring.count(in: minute) { $0.requests += 1 }
    }

    /// Counts a request and its fresh hit, as ``arrive(from:in:)`` and ``count(for:in:_:)`` do one after the other.
    mutating func hit(from origin: CountedOrigin, in minute: Int64, bytes: Int, saved: Duration) {
        let index = placeOfRequest(to: origin, in: minute)
        total.count(in: minute) { $0.addHit(bytes: bytes, saved: saved) }
        places[index].ring.count(in: minute) { $0.addHit(bytes: bytes, saved: saved) }
    }

    private mutating func placeOfRequest(to origin: CountedOrigin, in minute: Int64) -> Int {
        if minute / 10 > decade {
            decade = minute / 10
            for index in places.indices { places[index].weight /= 2 }
        }
        let index = place(of: origin) ?? makePlace(for: origin)
        places[index].weight += 1
        return index
    }

    /// Counts what became of a request.
    mutating func count(for origin: CountedOrigin?, in minute: Int64, _ change: (inout CacheStatistics) -> Void) {
        total.count(in: minute, change)
        if let origin, let index = place(of: origin) {
            places[index].ring.count(in: minute, change)
        } else {
            change(&other)
        }
    }

    private mutating func place(of origin: CountedOrigin) -> Int? {
        if last < hashes.count, hashes[last] == origin.hash { return last }
        guard let index = hashes.firstIndex(of: origin.hash) else { return nil }
        last = index
        return index
    }

    private mutating func makePlace(for origin: CountedOrigin) -> Int {
        guard places.count == capacity, let least = places.indices.min(by: { places[$0].weight < places[$1].weight })
        else {
            hashes.append(origin.hash)
            places.append(Place(name: origin.name))
            return places.count - 1
        }
        other += places[least].ring.counts
        hashes[least] = origin.hash
        places[least] = Place(name: origin.name, weight: places[least].weight)
        return least
    }

    /// The origins that have a place.
    var origins: [(name: String, ring: MinuteRing)] { places.map { ($0.name, $0.ring) } }
}
