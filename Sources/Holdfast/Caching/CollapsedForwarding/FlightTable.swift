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
        /// `isLate`: the response's head was there before the call came.
        case joined(Flight, isLate: Bool)

        var flight: Flight {
            switch self {
            case .opened(let flight), .joined(let flight, _): flight
            }
        }

        var isFirst: Bool { if case .opened = self { true } else { false } }
        var isLate: Bool { if case .joined(_, let isLate) = self { isLate } else { false } }
    }

    /// A passenger.
    struct Boarding: Sendable {
        let deadline: MonotonicInstant?
        /// The flights that the call itself is a part of, which wait for it.
        let path: [ObjectIdentifier]
        /// How many flights had ended when the call looked for a stored response.
        let landings: UInt64
        let trail: LookTrail
        /// Whether other processes may be at it.
        let leases: Bool
        /// Whether the call asks for what the origin says from now on, which a request that was sent before it does not bring.
        let asksValidation: Bool
        /// When the newest of what is stored for the call was asked for: an older response is none for it (RFC 9111 §4).
        let newestOrder: HybridTimestamp?
    }

    private struct State {
        var flights: [CacheKey: [Flight]] = [:]
        var background = 0
        /// Whose flights ended last, by the number of the ending.
        var lastLandings = [Int](repeating: 0, count: rememberedLandings)
    }

    /// More at once for one key differ in what they ask for; the next ones fly alone.
    private static let mostPerKey = 16
    private static let rememberedLandings = 64

    private let landed = Atomic<UInt64>(0)
    private let state = Mutex(State())

    /// How many flights have ended so far.
    var landings: UInt64 { landed.load(ordering: .acquiring) }

    /// Joins a flight of the same terms, or opens one.
    ///
    /// - Returns: nil where such a flight ended after the call's look-up: its response may be stored by now, so look again.
    func seat(for key: CacheKey, _ terms: FlightTerms, _ boarding: Boarding) -> Seat? {
        let (seat, wakes): (Seat?, [Flight.Waiter]) = state.withLock { state in
            let known = state.flights[key] ?? []
            var hasEnded = false
            for flight in known where flight.terms == terms && !boarding.path.contains(ObjectIdentifier(flight)) {
                if flight.isExclusive { continue }
                if boarding.asksValidation, flight.isSent { continue }
                let trail = boarding.trail
                let joining = flight.join(
                    until: boarding.deadline,
                    late: !trail.refusesLanded,
                    yielding: trail.mayYield,
                    newestOrder: boarding.newestOrder
                )
                switch joining {
                case .joined(let wakes): return (.joined(flight, isLate: false), wakes)
                case .joinedLate: return (.joined(flight, isLate: true), [])
                case .over: hasEnded = true
                case .refused: break
                }
            }
            if boarding.trail.goesOn, hasEnded || hasLanded(key, since: boarding.landings, state) { return (nil, []) }
            let mayYield = boarding.leases && boarding.trail.mayYield
            let flight = Flight(terms, deadline: boarding.deadline, isBackground: false, mayYield: mayYield)
            if known.count < FlightTable.mostPerKey { state.flights[key, default: []].append(flight) }
            return (.opened(flight), [])
        }
        for waiter in wakes { waiter.wake() }
        return seat
    }

    /// Whether a response of the key may have been stored since `mark`.
    func hasLanded(_ key: CacheKey, since mark: UInt64) -> Bool {
        landings != mark && state.withLock { hasLanded(key, since: mark, $0) }
    }

    private func hasLanded(_ key: CacheKey, since mark: UInt64, _ state: borrowing State) -> Bool {
        let landings = landings
        if landings == mark { return false }
        if landings &- mark > UInt64(FlightTable.rememberedLandings) { return true }
        let hash = key.hashValue
        return (mark..<landings).contains { state.lastLandings[FlightTable.place($0)] == hash }
    }

    private static func place(_ number: UInt64) -> Int { Int(number % UInt64(rememberedLandings)) }

    /// Opens a flight that nobody waits for, unless one of the same terms is in the air or too many are.
    ///
    /// - Parameter isExclusive: whether nobody may join it either.
    func background(
        for key: CacheKey,
        _ terms: FlightTerms,
        limit: Int,
        leases: Bool,
        isExclusive: Bool
    ) -> Flight? {
        state.withLock { state in
            let known = state.flights[key] ?? []
            guard state.background < limit, !known.contains(where: { $0.terms == terms && !$0.isGivenUp }) else {
                return nil
            }
            state.background += 1
            let flight = Flight(terms, deadline: nil, isBackground: true, mayYield: leases, isExclusive: isExclusive)
            state.flights[key, default: []].append(flight)
            return flight
        }
    }

    /// Lets the exchange of a flight go on when its readers have left, unless too much goes on already.
    ///
    /// - Returns: whether it goes on because of this call.
    @discardableResult
    func keepUp(_ flight: Flight, limit: Int) -> Bool {
        let effects: Flight.Effects? = state.withLock { state in
            guard state.background < limit, let effects = flight.enterBackground() else { return nil }
            state.background += 1
            return effects
        }
        effects?.apply()
        return effects != nil
    }

    /// A flight has ended, its body included.
    func ended(_ flight: Flight, for key: CacheKey) {
        close(flight, for: key)
        if flight.end() { state.withLock { $0.background -= 1 } }
    }

    /// Lets nobody join a flight any more; what is to be stored of it by then is.
    func close(_ flight: Flight, for key: CacheKey) {
        state.withLock { state in
            state.flights[key]?.removeAll { $0 === flight }
            if state.flights[key]?.isEmpty ?? false { state.flights[key] = nil }
            noteLanding(key, &state)
        }
    }

    /// A response of the key was stored that no flight had brought.
    func noteLanding(_ key: CacheKey) {
        state.withLock { noteLanding(key, &$0) }
    }

    private func noteLanding(_ key: CacheKey, _ state: inout State) {
        state.lastLandings[FlightTable.place(landings)] = key.hashValue
        landed.add(1, ordering: .releasing)
    }

    /// How many flights can be joined.
    var count: Int { state.withLock { $0.flights.values.reduce(0) { $0 + $1.count } } }

    /// How many calls are in them.
    var readers: Int { state.withLock { $0.flights.values.joined().reduce(0) { $0 + $1.readers } } }

    /// How many exchanges go on, or would, without readers.
    var backgroundCount: Int { state.withLock { $0.background } }
}
