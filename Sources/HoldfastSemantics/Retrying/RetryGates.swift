// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a call passes to the gates of its origin.
package struct GatePlace: Sendable, Hashable {
    /// The URL without its query, as a hash.
    package var resource: Int
    /// The caller, as far as the request shows, as a hash.
    package var credential: Int

    package init(resource: Int, credential: Int) {
        self.resource = resource
        self.credential = credential
    }

    /// The resource as this caller sees it.
    fileprivate var ownResource: Int {
        var hasher = Hasher()
        hasher.combine(resource)
        hasher.combine(credential)
        return hasher.finalize()
    }
}

/// What a response says to the gates.
package struct GateNotice: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// 429: this caller sends too much.
        case throttled
        /// 503: the resource is unavailable now.
        case unavailable
        /// An exhausted quota.
        case quota
        /// Any other answer; the server did its work, or not.
        case answer(succeeded: Bool)
    }

    package var kind: Kind
    /// How long nothing must be sent, counted from the answer.
    package var asked: Duration
    /// The partition key of a quota, as a hash, if the server gives it (`pk` of RateLimit).
    package var partition: Int?

    package init(_ kind: Kind, asked: Duration = .zero, partition: Int? = nil) {
        self.kind = kind
        self.asked = asked
        self.partition = partition
    }
}

/// The gates of one origin: closed when a server asks for a pause, and only as widely as it is known to mean.
///
/// - 503 with Retry-After closes the resource, from the second in a row; it closes the origin if several resources answer like this
///   more often than others succeed.
/// - 429 with Retry-After closes the resource, and at once the origin for the credential. Probes find out whether it was meant for
///   the whole origin: a successful one opens it, and for a minute later 429s close only their resource.
/// - An exhausted quota closes its partition, or else the resource, and the credential by the same evidence.
///
/// A value that is told the time. Everything in it is limited in number and in time.
package struct RetryGates: Sendable, Hashable {
    /// A closed gate.
    package struct Gate: Sendable, Hashable {
        /// When it opens, since the clock's origin.
        package var opens: Duration
        /// Over how much time the waiting calls are spread after it opens: half of the time for which it was closed, 8 s at most,
        /// so that they do not all return at once.
        package var spread: Duration
        /// Until when a call that cannot wait for ``opens`` waits for the first probe; only for wide gates.
        package var holdsUntil: Duration?
        /// The scope that it closes; nil for a resource.
        package var scope: Int?
        /// When it was closed; later requests for a pause only kept it closed.
        fileprivate var since: Duration
        fileprivate var nextProbe: Duration
        fileprivate var interval: Duration

        /// Whether all calls that waited for it have gone.
        fileprivate func isPast(_ now: Duration) -> Bool { now > opens + spread }
    }

    /// The reply to a call.
    package enum Answer: Sendable, Hashable {
        case open
        /// Send it, and report the result.
        case probe
        case closed(Gate)
    }

    /// What a notice changed.
    package struct Effect: Sendable, Hashable {
        /// Whether a gate was closed, or closed for longer.
        package var hasClosed = false
        /// The scopes that were opened early, and over how much time the waiting calls of each are spread.
        package var opened: [Int: Duration] = [:]
    }

    /// What is known of one scope: all callers, one credential, or one partition of a quota.
    private struct Scope: Sendable, Hashable {
        var gate: Gate?
        var score = 0
        var resources: Set<Int> = []
        var narrowUntil: Duration = .zero

        /// Another resource asks for a pause; returns whether there are enough to count for all.
        mutating func gathers(_ resource: Int) -> Bool {
            score = min(2 * RetryGates.need, score + 1)
            if resources.count < RetryGates.distinct { resources.insert(resource) }
            return score >= RetryGates.need && resources.count >= RetryGates.distinct
        }

        mutating func loses() {
            score = max(0, score - 2)
            if score == 0 { resources = [] }
        }

        var opens: Duration { gate?.opens ?? .zero }

        func isOver(_ now: Duration) -> Bool {
            score == 0 && isIdle(now)
        }

        /// Whether all calls that waited for it have gone, and 429s close it at once again.
        func isIdle(_ now: Duration) -> Bool {
            narrowUntil <= now && gate.map { $0.isPast(now) } ?? true
        }
    }

    /// The limit for the number of gates, and for the number of resources whose answers are remembered.
    package static let limit = 256
    /// The longest time that a gate stays closed, whatever a server says: an hour.
    package static let longestPause: Duration = .seconds(3600)
    /// The evidence that closes an origin: a score, and the least number of resources.
    private static let (need, distinct) = (6, 3)
    /// The scope of all callers. If a hash equals it, one caller's 429 holds back all calls to one origin.
    private static let everyone = 0
    /// For how long a credential's 429s close only their resource after a successful probe.
    private static let narrowTime: Duration = .seconds(60)
    /// How long the answers of resources are remembered if there are no new ones.
    private static let memory: Duration = .seconds(60)

    private var scopes: [Int: Scope] = [:]
    private var resources: [Int: Gate] = [:]
    /// 503s with Retry-After in a row.
    private var strikes: [Int: Int] = [:]
    /// The partition keys of the resources' quotas, as each caller was told them: another caller may be counted elsewhere.
    private var partitions: [Int: Int] = [:]
    private var lastNotice: Duration = .zero

    /// All gates open.
    package init() {}

    /// Whether there is nothing to check or report, as far as is known without the time.
    package var isEmpty: Bool { scopes.isEmpty && resources.isEmpty && strikes.isEmpty && partitions.isEmpty }

    /// How many items are remembered.
    package var size: Int { scopes.count + resources.count + strikes.count + partitions.count }

    /// Checks the gates for a call.
    ///
    /// - Parameters:
    ///   - admitsProbe: whether the call may be sent as a probe; then it counts as one.
    ///   - longestWait: a resource that is closed for longer is probed this often, so that it is not lost for an hour if a server
    ///     asks for an hour by mistake.
    package mutating func check(
        _ place: GatePlace,
        admitsProbe: Bool,
        longestWait: Duration,
        now: Duration
    ) -> Answer {
        if isEmpty { return .open }
        for key in [place.resource, place.ownResource] {
            guard var gate = resources[key] else { continue }
            guard gate.opens > now else {
                if gate.isPast(now) { resources[key] = nil }
                continue
            }
            let interval = max(longestWait, .seconds(1))
            // If the origin is closed too, all its resources together are probed no more often than the origin.
            let isDue = keys(of: place).allSatisfy { scopes[$0]?.gate.map { $0.nextProbe <= now } ?? true }
            if admitsProbe, gate.opens - now > longestWait, now >= gate.nextProbe + interval, isDue {
                gate.nextProbe = now
                resources[key] = gate
                probes(place, now: now)
                return .probe
            }
            return .closed(gate)
        }
        var closed: Gate?
        for key in keys(of: place) {
            guard let gate = scopes[key]?.gate, gate.opens > now else { continue }
            if closed.map({ $0.opens < gate.opens }) ?? true { closed = gate }
        }
        guard var gate = closed else {
            clear(now: now)
            return .open
        }
        if admitsProbe, now >= gate.nextProbe {
            probes(place, now: now)
            return .probe
        }
        if let held = gate.holdsUntil, held <= now { gate.holdsUntil = nil }
        return .closed(gate)
    }

    /// Records what a response says.
    ///
    /// - Parameter isProbe: whether the call passed a closed gate as a probe.
    package mutating func answered(
        _ notice: GateNotice,
        from place: GatePlace,
        isProbe: Bool,
        now: Duration
    ) -> Effect {
        var effect = Effect()
        makeRoom(now: now)
        if let partition = notice.partition { partitions[place.ownResource] = partition }
        let asked = min(notice.asked, RetryGates.longestPause)
        if notice.kind != .answer(succeeded: true), notice.kind != .answer(succeeded: false) { lastNotice = now }
        if notice.kind != .unavailable { strikes[place.resource] = nil }
        var resource: Int?
        var scope: Int?
        switch notice.kind {
        case .throttled:
            resource = place.ownResource
            let isNarrow = now < scopes[place.credential]?.narrowUntil ?? .zero
            // The probe of a resource says nothing new about an origin that another resource's probe has opened.
            if !isNarrow || isProbe && isClosed(scope: place.credential, now: now) { scope = place.credential }
            if isNarrow, gathers(place.credential, resource: place.resource) {
                scopes[place.credential]?.narrowUntil = .zero
                scope = place.credential
            }
        case .unavailable:
            strikes[place.resource, default: 0] += 1
            if strikes[place.resource, default: 0] >= 2 { resource = place.resource }
            if gathers(RetryGates.everyone, resource: place.resource) { scope = RetryGates.everyone }
        case .quota:
            if let partition = notice.partition {
                scope = partition
            } else {
                resource = place.ownResource
                if gathers(place.credential, resource: place.resource) { scope = place.credential }
            }
        case .answer(let succeeded):
            let keys = keys(of: place)
            for key in keys { scopes[key]?.loses() }
            if isProbe, succeeded {
                (resources[place.resource], resources[place.ownResource]) = (nil, nil)
                for key in keys { effect.opened[key] = opens(key, for: place, now: now) }
            }
            for key in keys where scopes[key]?.isOver(now) == true { scopes[key] = nil }
        }
        if let resource {
            effect.hasClosed = RetryGates.close(&resources[resource], scope: nil, asked: asked, now: now)
        }
        if let scope {
            let isClosed = RetryGates.close(&scopes[scope, default: Scope()].gate, scope: scope, asked: asked, now: now)
            effect.hasClosed = effect.hasClosed || isClosed
        }
        return effect
    }

    /// Whether a gate is closed for a call, ignoring its credential. Does not count as a probe.
    package func isClosed(for resource: Int, now: Duration) -> Bool {
        scopes.values.contains { $0.gate.map { $0.opens > now } ?? false }
            || resources[resource].map { $0.opens > now } ?? false
    }

    /// Whether a scope is closed.
    package func isClosed(scope: Int, now: Duration) -> Bool {
        scopes[scope]?.gate.map { $0.opens > now } ?? false
    }

    /// When the last of the closed gates opens; nil if all are open.
    package func lastOpening(now: Duration) -> Duration? {
        let all = scopes.values.compactMap { $0.gate?.opens } + resources.values.map(\.opens)
        return all.max().flatMap { $0 > now ? $0 : nil }
    }

    private func keys(of place: GatePlace) -> [Int] {
        [RetryGates.everyone, place.credential] + (partitions[place.ownResource].map { [$0] } ?? [])
    }

    /// Records that a call is sent as a probe: the next one of its scopes is due an interval later.
    private mutating func probes(_ place: GatePlace, now: Duration) {
        for key in keys(of: place) {
            guard let interval = scopes[key]?.gate?.interval else { continue }
            scopes[key]?.gate?.nextProbe = now + interval
        }
    }

    private mutating func gathers(_ scope: Int, resource: Int) -> Bool {
        scopes[scope, default: Scope()].gathers(resource)
    }

    /// Opens a scope that a probe found open.
    ///
    /// - Returns: over how much time its waiting calls are spread; nil if it was open.
    private mutating func opens(_ key: Int, for place: GatePlace, now: Duration) -> Duration? {
        guard let gate = scopes[key]?.gate, gate.opens > now else { return nil }
        scopes[key] = Scope(narrowUntil: key == place.credential ? now + RetryGates.narrowTime : .zero)
        // If it was closed by mistake, nobody should wait long.
        return min(.seconds(5), max(.milliseconds(100), RetryGates.spread(after: now - gate.since)))
    }

    /// Over how much time calls are spread that waited at a gate which was closed this long.
    private static func spread(after closed: Duration) -> Duration { min(closed / 2, .seconds(8)) }

    /// Closes a gate, or keeps it closed for longer; returns whether it did.
    private static func close(_ gate: inout Gate?, scope: Int?, asked: Duration, now: Duration) -> Bool {
        guard asked > .zero else { return false }
        let opens = now + asked
        let interval = max(.seconds(1), asked / 60)
        let old = gate
        if var old, old.opens > now {
            guard opens > old.opens else { return false }
            (old.opens, old.spread, old.interval) = (opens, spread(after: opens - old.since), interval)
            gate = old
            return true
        }
        // If it closes again before all waiting calls have gone, it counts as closed all the time.
        let since = old.flatMap { $0.isPast(now) ? nil : $0.since } ?? now
        gate = Gate(
            opens: opens,
            spread: spread(after: opens - since),
            holdsUntil: scope == nil ? nil : now + .milliseconds(500),
            scope: scope,
            since: since,
            // A resource's probes are counted from its closing. Those of an origin begin soon, since the server often meant less.
            nextProbe: scope == nil ? now : now + .milliseconds(100),
            interval: interval
        )
        return true
    }

    /// Forgets everything if nothing is closed and nothing was reported for a while, so that successful calls have no cost.
    private mutating func clear(now: Duration) {
        guard now > lastNotice + RetryGates.memory, resources.values.allSatisfy({ $0.isPast(now) }),
            scopes.values.allSatisfy({ $0.isIdle(now) })
        else { return }
        let kept = partitions
        self = RetryGates()
        partitions = kept
    }

    private mutating func makeRoom(now: Duration) {
        RetryGates.makeRoom(in: &resources, isNeeded: { $0.opens > now }, opens: \.opens)
        RetryGates.makeRoom(in: &scopes, isNeeded: { !$0.isOver(now) }, opens: \.opens)
        if strikes.count >= RetryGates.limit { strikes = [:] }
        if partitions.count >= RetryGates.limit { partitions = [:] }
    }

    /// Removes what is not needed if there is no room for more, and then what opens first.
    private static func makeRoom<Item>(
        in items: inout [Int: Item],
        isNeeded: (Item) -> Bool,
        opens: (Item) -> Duration
    ) {
        guard items.count >= limit else { return }
        items = items.filter { isNeeded($0.value) }
        while items.count >= limit, let first = items.min(by: { opens($0.value) < opens($1.value) }) {
            items[first.key] = nil
        }
    }
}
