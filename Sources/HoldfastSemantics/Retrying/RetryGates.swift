// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a call asks of the gates of its origin.
package struct GatePlace: Sendable, Hashable {
    /// The URL without its query, as a hash.
    package var resource: Int
    /// The caller as far as the request tells, as a hash.
    package var credential: Int

    package init(resource: Int, credential: Int) {
        self.resource = resource
        self.credential = credential
    }

    /// The resource as this caller is given it.
    fileprivate var ownResource: Int {
        var hasher = Hasher()
        hasher.combine(resource)
        hasher.combine(credential)
        return hasher.finalize()
    }
}

/// What a response tells the gates.
package struct GateNotice: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// 429: this caller asks too much.
        case throttled
        /// 503: the resource is not to be had now.
        case unavailable
        /// A quota with nothing left.
        case quota
        /// Any other answer; the server did its work, or not.
        case answer(succeeded: Bool)
    }

    package var kind: Kind
    /// For how long nothing is to be sent, from the answer.
    package var asked: Duration
    /// What a quota is counted by, as a hash, where the server says so (`pk` of RateLimit).
    package var partition: Int?

    package init(_ kind: Kind, asked: Duration = .zero, partition: Int? = nil) {
        self.kind = kind
        self.asked = asked
        self.partition = partition
    }
}

/// The gates of one origin: closed by a server that asked for a pause, and no wider than what it is known to mean.
///
/// - 503 with Retry-After closes the resource, from the second in a row; the origin where several resources say so more often
///   than others answer.
/// - 429 with Retry-After closes the resource, and at once the origin for the credential. Probes find out whether it was meant
///   for the whole origin: a good one opens it, and for a minute later 429s close their resource alone.
/// - A quota with nothing left closes what it is counted by, else the resource, and the credential by the same evidence.
///
/// A value that is told the time. Everything in it is bounded in number and in time.
package struct RetryGates: Sendable, Hashable {
    /// A closed gate.
    package struct Gate: Sendable, Hashable {
        /// When it opens, since the clock's origin.
        package var opens: Duration
        /// How far the calls behind it are spread after it opened: half of the time for which it was closed, 8 s at most, so
        /// that what gathered meanwhile does not come back all at once.
        package var spread: Duration
        /// Until when a call that could not wait for ``opens`` waits for the first probe; only of wide gates.
        package var holdsUntil: Duration?
        /// What it is closed for; nil for a resource.
        package var scope: Int?
        /// When it was closed; what was asked since then only kept it so.
        fileprivate var since: Duration
        fileprivate var nextProbe: Duration
        fileprivate var interval: Duration

        /// Whether all that waited behind it have gone.
        fileprivate func isPast(_ now: Duration) -> Bool { now > opens + spread }
    }

    /// What a call is told.
    package enum Answer: Sendable, Hashable {
        case open
        /// Go, and tell what came of it.
        case probe
        case closed(Gate)
    }

    /// What a notice changed.
    package struct Effect: Sendable, Hashable {
        /// Whether a gate was closed, or closed for longer.
        package var hasClosed = false
        /// The scopes that were opened before their time, and how far the calls behind each are spread.
        package var opened: [Int: Duration] = [:]
    }

    /// What is known of one width of gate: of all callers, one credential, one partition of a quota.
    private struct Scope: Sendable, Hashable {
        var gate: Gate?
        var score = 0
        var resources: Set<Int> = []
        var narrowUntil: Duration = .zero

        /// One more resource asks for a pause; whether enough do to speak for all.
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
            score == 0 && narrowUntil <= now && gate.map { $0.opens <= now } ?? true
        }
    }

    /// The most gates, and resources that are remembered for what they said, each.
    package static let limit = 256
    /// The longest a gate stays closed, whatever a server says: an hour.
    package static let longestPause: Duration = .seconds(3600)
    /// The evidence that closes an origin: a score, and how many resources at least.
    private static let (need, distinct) = (6, 3)
    /// The scope of all callers. A hash may be as much: then somebody's 429 holds back all of one origin.
    private static let everyone = 0
    /// For how long a credential's 429s close their resource alone, once a probe was answered well.
    private static let narrowTime: Duration = .seconds(60)
    /// For how long what resources said is remembered while nothing more is said.
    private static let memory: Duration = .seconds(60)

    private var scopes: [Int: Scope] = [:]
    private var resources: [Int: Gate] = [:]
    /// 503s with Retry-After in a row.
    private var strikes: [Int: Int] = [:]
    /// What the quotas of resources are counted by.
    private var partitions: [Int: Int] = [:]
    private var lastNotice: Duration = .zero

    /// No gate closed.
    package init() {}

    /// Whether there is nothing to ask or to tell, as far as is known without looking at the time.
    package var isEmpty: Bool { scopes.isEmpty && resources.isEmpty && strikes.isEmpty && partitions.isEmpty }

    /// How much is remembered.
    package var size: Int { scopes.count + resources.count + strikes.count + partitions.count }

    /// Asks for a call.
    ///
    /// - Parameters:
    ///   - admitsProbe: whether the call may be sent as a probe, which counts as one.
    ///   - longestWait: a resource that is closed for longer is probed as often: a server that asks for an hour by mistake
    ///     is not lost for an hour.
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
            // Where the origin is closed too, all its resources together are probed no more often than it.
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
        let rest = gate.opens - now
        if admitsProbe, now >= gate.nextProbe, now + min(.seconds(1), rest) / 2 < gate.opens {
            probes(place, now: now)
            return .probe
        }
        if let held = gate.holdsUntil, held <= now { gate.holdsUntil = nil }
        return .closed(gate)
    }

    /// Takes note of what a response says.
    ///
    /// - Parameter isProbe: whether the call was let through a closed gate.
    package mutating func answered(
        _ notice: GateNotice,
        from place: GatePlace,
        isProbe: Bool,
        now: Duration
    ) -> Effect {
        var effect = Effect()
        makeRoom(now: now)
        if let partition = notice.partition { partitions[place.resource] = partition }
        let asked = min(notice.asked, RetryGates.longestPause)
        if notice.kind != .answer(succeeded: true), notice.kind != .answer(succeeded: false) { lastNotice = now }
        func closes(_ scope: Int, in gates: inout RetryGates) {
            effect.hasClosed = gates.close(scope, asked: asked, now: now) || effect.hasClosed
        }
        func closes(resource: Int, _ gates: inout RetryGates) {
            effect.hasClosed = gates.close(resource: resource, asked: asked, now: now) || effect.hasClosed
        }
        switch notice.kind {
        case .throttled:
            closes(resource: place.ownResource, &self)
            let isNarrow = now < scopes[place.credential]?.narrowUntil ?? .zero
            if !isNarrow || isProbe { closes(place.credential, in: &self) }
            if isNarrow, gathers(place.credential, resource: place.resource) {
                scopes[place.credential]?.narrowUntil = .zero
                closes(place.credential, in: &self)
            }
        case .unavailable:
            strikes[place.resource, default: 0] += 1
            if strikes[place.resource, default: 0] >= 2 { closes(resource: place.resource, &self) }
            if gathers(RetryGates.everyone, resource: place.resource) { closes(RetryGates.everyone, in: &self) }
        case .quota:
            if let partition = notice.partition {
                closes(partition, in: &self)
            } else {
                closes(resource: place.ownResource, &self)
                if gathers(place.credential, resource: place.resource) { closes(place.credential, in: &self) }
            }
        case .answer(let succeeded):
            strikes[place.resource] = nil
            let keys = keys(of: place)
            for key in keys { scopes[key]?.loses() }
            if isProbe, succeeded {
                (resources[place.resource], resources[place.ownResource]) = (nil, nil)
                for key in keys { effect.opened[key] = opens(key, for: place, now: now) }
            }
            for key in keys where scopes[key]?.isOver(now) == true { scopes[key] = nil }
        }
        return effect
    }

    /// Whether a gate is closed for a call, as far as its credential does not matter. Does not count as a probe.
    package func isClosed(for resource: Int, now: Duration) -> Bool {
        scopes.values.contains { $0.gate.map { $0.opens > now } ?? false }
            || resources[resource].map { $0.opens > now } ?? false
    }

    /// Whether a scope is closed.
    package func isClosed(scope: Int, now: Duration) -> Bool {
        scopes[scope]?.gate.map { $0.opens > now } ?? false
    }

    /// When the last of the closed gates opens; nil where all are open.
    package func lastOpening(now: Duration) -> Duration? {
        let all = scopes.values.compactMap { $0.gate?.opens } + resources.values.map(\.opens)
        return all.max().flatMap { $0 > now ? $0 : nil }
    }

    private func keys(of place: GatePlace) -> [Int] {
        [RetryGates.everyone, place.credential] + (partitions[place.resource].map { [$0] } ?? [])
    }

    /// A call goes out as a probe: the next one of its scopes comes an interval later.
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
    /// - Returns: how far the calls behind it are spread; nil where it was open.
    private mutating func opens(_ key: Int, for place: GatePlace, now: Duration) -> Duration? {
        guard let gate = scopes[key]?.gate, gate.opens > now else { return nil }
        scopes[key] = Scope(narrowUntil: key == place.credential ? now + RetryGates.narrowTime : .zero)
        // Where it was closed by mistake nobody is to wait for long.
        return min(.seconds(5), max(.milliseconds(100), RetryGates.spread(after: now - gate.since)))
    }

    /// How far calls are spread that waited at a gate which was closed for so long.
    private static func spread(after closed: Duration) -> Duration { min(closed / 2, .seconds(8)) }

    private mutating func close(_ scope: Int, asked: Duration, now: Duration) -> Bool {
        guard asked > .zero else { return false }
        let old = scopes[scope]?.gate
        let gate = gate(after: old, scope: scope, asked: asked, now: now)
        scopes[scope, default: Scope()].gate = gate
        return gate != old
    }

    private mutating func close(resource: Int, asked: Duration, now: Duration) -> Bool {
        guard asked > .zero else { return false }
        let old = resources[resource]
        let gate = gate(after: old, scope: nil, asked: asked, now: now)
        resources[resource] = gate
        return gate != old
    }

    /// A gate that is closed for longer already stays so.
    private func gate(after old: Gate?, scope: Int?, asked: Duration, now: Duration) -> Gate {
        let opens = now + asked
        let interval = max(.seconds(1), asked / 60)
        if var old, old.opens > now {
            guard opens > old.opens else { return old }
            (old.opens, old.spread, old.interval) = (opens, RetryGates.spread(after: opens - old.since), interval)
            return old
        }
        // Closed again before those who waited have all gone, it has been closed all the time.
        let since = old.flatMap { $0.isPast(now) ? nil : $0.since } ?? now
        return Gate(
            opens: opens,
            spread: RetryGates.spread(after: opens - since),
            holdsUntil: scope == nil ? nil : now + .milliseconds(500),
            scope: scope,
            since: since,
            // A resource's probes are counted from its closing, those of an origin begin soon: often it was meant for less.
            nextProbe: scope == nil ? now : now + .milliseconds(100),
            interval: interval
        )
    }

    /// Forgets everything once nothing is closed and nothing was said for a while, so that good calls pay for nothing.
    private mutating func clear(now: Duration) {
        guard now > lastNotice + RetryGates.memory, lastOpening(now: now) == nil else { return }
        let kept = partitions
        self = RetryGates()
        partitions = kept
    }

    private mutating func makeRoom(now: Duration) {
        if resources.count >= RetryGates.limit {
            resources = resources.filter { $0.value.opens > now }
            while resources.count >= RetryGates.limit,
                let first = resources.min(by: { $0.value.opens < $1.value.opens })
            {
                resources[first.key] = nil
            }
        }
        if scopes.count >= RetryGates.limit {
            scopes = scopes.filter { !$0.value.isOver(now) }
            while scopes.count >= RetryGates.limit,
                let first = scopes.min(by: { $0.value.opens < $1.value.opens })
            {
                scopes[first.key] = nil
            }
        }
        if strikes.count >= RetryGates.limit { strikes = [:] }
        if partitions.count >= RetryGates.limit { partitions = [:] }
    }
}
