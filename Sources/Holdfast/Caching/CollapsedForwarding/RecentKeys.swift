// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// Remembers for some time which keys something was found out about.
///
/// A table of a fixed size; a key that takes another's place makes that one forgotten, which costs a chance and nothing else.
final class RecentKeys: Sendable {
    private struct Place {
        var hash = 0
        var until = MonotonicInstant(sinceOrigin: .zero)
    }

    private static let placeCount = 1_024

    private let places = Mutex([Place](repeating: Place(), count: placeCount))

    func note(_ key: CacheKey, until instant: MonotonicInstant) {
        let hash = key.hashValue
        places.withLock { $0[RecentKeys.index(hash)] = Place(hash: hash, until: instant) }
    }

    func forget(_ key: CacheKey) {
        let hash = key.hashValue
        places.withLock { places in
            if places[RecentKeys.index(hash)].hash == hash { places[RecentKeys.index(hash)] = Place() }
        }
    }

    func contains(_ key: CacheKey, now: MonotonicInstant) -> Bool {
        let hash = key.hashValue
        return places.withLock { places in
            let place = places[RecentKeys.index(hash)]
            return place.hash == hash && place.until > now
        }
    }

    private static func index(_ hash: Int) -> Int {
        Int(UInt(bitPattern: hash) % UInt(placeCount))
    }
}
