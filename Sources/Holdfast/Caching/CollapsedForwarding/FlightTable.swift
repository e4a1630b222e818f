// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// The flights of one cache that other calls may join, by key.
final class FlightTable: Sendable {
    /// A place in a flight.
    enum Seat: Sendable {
        /// The call has opened the flight and must launch it.
        case opened(Flight)
        case joined(Flight)

        var flight: Flight {
            switch self {
            case .opened(let flight), .joined(let flight): flight
            }
        }
    }

    private struct State {
        var flights: [CacheKey: [Flight]] = [:]
        var background = 0
    }

    /// More at once for one key differ in what they ask for; the next ones fly alone.
    private static let mostPerKey = 16

    private let state = Mutex(State())

    /// Joins a flight of the same terms, or opens one.
    func seat(for key: CacheKey, _ terms: FlightTerms, until deadline: MonotonicInstant?) -> Seat {
        state.withLock { state in
            let known = state.flights[key] ?? []
            if let flight = known.first(where: { $0.terms == terms && $0.join(until: deadline) }) {
                return .joined(flight)
            }
            let flight = Flight(terms, deadline: deadline, isBackground: false)
            if known.count < FlightTable.mostPerKey { state.flights[key, default: []].append(flight) }
            return .opened(flight)
        }
    }

    /// Opens a flight that nobody waits for, unless one of the same terms is in the air or too many are.
    func background(for key: CacheKey, _ terms: FlightTerms, limit: Int) -> Flight? {
        state.withLock { state in
            let known = state.flights[key] ?? []
            guard state.background < limit, !known.contains(where: { $0.terms == terms && !$0.isGivenUp }) else {
                return nil
            }
            state.background += 1
            let flight = Flight(terms, deadline: nil, isBackground: true)
            state.flights[key, default: []].append(flight)
            return flight
        }
    }

    /// A flight opened by ``background(for:_:limit:)`` has ended, its body included.
    func endedInBackground() {
        state.withLock { $0.background -= 1 }
    }

    /// Lets nobody join a flight any more.
    func close(_ flight: Flight, for key: CacheKey) {
        state.withLock { state in
            state.flights[key]?.removeAll { $0 === flight }
            if state.flights[key]?.isEmpty ?? false { state.flights[key] = nil }
        }
    }

    /// How many flights can be joined.
    var count: Int { state.withLock { $0.flights.values.reduce(0) { $0 + $1.count } } }
}

/// What two calls of one key must have in common for one exchange to answer both.
struct FlightTerms: Sendable, Hashable {
    private let values: [String?]
    private let tags: Set<String>
    private let mark: InvalidationLog.Mark

    /// - Parameter nominated: the names that stored responses of the key nominate by Vary.
    init(_ lookup: CacheLookup, nominated: [String], tags: Set<String>) {
        var names = FlightTerms.always
        for name in nominated { if let name = FieldName(name), !names.contains(name) { names.append(name) } }
        values = names.map { lookup.head.fields[$0] }
        self.tags = tags
        // What was sent before an invalidation may be older than what a later call must see.
        mark = lookup.mark
    }

    private static let always: [FieldName] = [
        .accept, .acceptEncoding, .acceptLanguage, .cacheControl, .pragma, .range,
    ]
}
