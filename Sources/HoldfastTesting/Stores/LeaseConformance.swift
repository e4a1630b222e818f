// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastStorage

/// The promises of `FillLeasing` as laws that any implementation can be tested against.
///
/// Needs no test framework: a law returns findings, and none means that it holds. Run them under a time limit, since a store that
/// never reports the end of a lease makes them hang.
public enum LeaseConformance {
    /// Two processes that share a store, and a way to let the store's time pass.
    public struct Subject: Sendable {
        /// The leases as each of the two processes sees them.
        public var one: any FillLeasing
        public var other: any FillLeasing
        /// Returns once this much time has passed for the store.
        public var elapse: @Sendable (Duration) async -> Void

        /// A subject.
        public init(
            one: any FillLeasing,
            other: any FillLeasing,
            elapse: @escaping @Sendable (Duration) async -> Void
        ) {
            self.one = one
            self.other = other
            self.elapse = elapse
        }
    }

    /// One law.
    public struct Law: Sendable, CustomStringConvertible {
        /// What the law says, in a sentence; unique.
        public let description: String
        private let check: @Sendable (Subject, StoreKey) async -> [String]

        init(_ name: String, check: @escaping @Sendable (Subject, StoreKey) async -> [String]) {
            description = name
            self.check = check
        }

        /// What breaks the law; empty if it holds.
        ///
        /// - Parameters:
        ///   - subject: what is tested.
        ///   - key: a key that nobody has leased recently.
        public func findings(of subject: Subject, key: StoreKey) async -> [String] { await check(subject, key) }
    }

    /// Every law.
    public static let laws: [Law] = [
        Law("Only one of two gets the lease; each variant and each key has its own lease") { subject, key in
            let (first, second) = (StoreKey([1]), StoreKey([2]))
            guard let lease = await granted(subject.one, key: key, variant: first) else {
                return ["the first one was not granted"]
            }
            var findings: [String] = []
            if await granted(subject.other, key: key, variant: first) != nil {
                findings.append("it was granted to both")
            }
            if await granted(subject.one, key: key, variant: first) != nil {
                findings.append("it was granted twice to one process")
            }
            if await granted(subject.other, key: key, variant: second) == nil {
                findings.append("another variant was refused")
            }
            let elsewhere = StoreKey(key.bytes + [7])
            if await granted(subject.other, key: elsewhere, variant: first) == nil {
                findings.append("another key was refused")
            }
            lease.end(.failed)
            return findings
        },
        Law("Waiters learn how the lease ended") { subject, key in
            var findings: [String] = []
            for outcome in LeaseOutcome.allCases {
                let variant = StoreKey(Array(outcome.rawValue.utf8))
                guard let lease = await granted(subject.one, key: key, variant: variant) else {
                    return ["\(outcome): not granted"]
                }
                guard let seen = await held(subject.other, key: key, variant: variant) else {
                    return ["\(outcome): not held"]
                }
                async let told = seen.end()
                lease.end(outcome)
                lease.end(outcome == .failed ? .stored : .failed)
                let word = await told
                if word != outcome { findings.append("\(outcome): told \(word.map { "\($0)" } ?? "nothing")") }
            }
            return findings
        },
        Law("Late waiters also learn how the lease ended") { subject, key in
            guard let lease = await granted(subject.one, key: key) else { return ["not granted"] }
            guard let seen = await held(subject.other, key: key) else { return ["not held"] }
            lease.end(.stored)
            let told = await seen.end()
            return told == .stored ? [] : ["told \(told.map { "\($0)" } ?? "nothing")"]
        },
        Law("A lease that is dropped has failed, and can be granted again") { subject, key in
            guard let seen = await seenLetGo(subject, key: key) else { return ["not granted, or not held by then"] }
            let told = await seen.end()
            if told != .failed { return ["told \(told.map { "\($0)" } ?? "nothing")"] }
            return await granted(subject.other, key: key) == nil ? ["it was not granted again"] : []
        },
        Law("An expired lease can be granted to a waiter") { subject, key in
            let length = Duration.milliseconds(300)
            guard let lease = await granted(subject.one, key: key, for: length) else { return ["not granted"] }
            guard let seen = await held(subject.other, key: key) else { return ["not held"] }
            async let elapsed: Void = subject.elapse(length)
            let told = await seen.end()
            await elapsed
            var findings = told == .failed ? [] : ["told \(told.map { "\($0)" } ?? "nothing")"]
            guard let next = await granted(subject.other, key: key) else {
                return findings + ["it was not granted again"]
            }
            // The expired lease is no longer its holder's: it may neither renew it nor end the other's.
            if await lease.renew(for: .seconds(60)) { findings.append("an expired lease was renewed") }
            lease.end(.stored)
            if await granted(subject.one, key: key) != nil { findings.append("the lease of another holder was ended") }
            next.end(.failed)
            return findings
        },
        Law("A renewed lease does not expire") { subject, key in
            guard let lease = await granted(subject.one, key: key, for: .seconds(20)) else { return ["not granted"] }
            guard await lease.renew(for: .seconds(600)) else { return ["not renewed"] }
            lease.end(.stored)
            return await lease.renew(for: .seconds(600)) ? ["a lease that had ended was renewed"] : []
        },
        Law("A new lease says whether it follows a fill or a failure") { subject, key in
            var findings: [String] = []
            for outcome in LeaseOutcome.allCases {
                let variant = StoreKey(Array(outcome.rawValue.utf8))
                guard let lease = await granted(subject.one, key: key, variant: variant) else {
                    return ["\(outcome): not granted"]
                }
                if lease.followsFill { findings.append("the first one follows a fill") }
                guard let seen = await held(subject.other, key: key, variant: variant) else {
                    return ["\(outcome): not held"]
                }
                lease.end(outcome)
                _ = await seen.end()
                guard let next = await granted(subject.other, key: key, variant: variant) else {
                    return ["\(outcome): not granted again"]
                }
                if next.followsFill != (outcome == .stored) { findings.append("\(outcome): \(next.followsFill)") }
            }
            return findings
        },
        Law("A wait ends when its task is cancelled") { subject, key in
            guard let lease = await granted(subject.one, key: key) else { return ["not granted"] }
            guard let seen = await held(subject.other, key: key) else { return ["not held"] }
            let waiting = Task { await seen.end() }
            waiting.cancel()
            let told = await waiting.value
            lease.end(.failed)
            return told == nil ? [] : ["told \(told.map { "\($0)" } ?? "nothing")"]
        },
    ]

    private static func granted(
        _ leasing: any FillLeasing,
        key: StoreKey,
        variant: StoreKey = StoreKey([]),
        for length: Duration = .seconds(600)
    ) async -> (any FillLease)? {
        guard case .granted(let lease) = await leasing.lease(key, variant: variant, for: length) else { return nil }
        return lease
    }

    private static func held(
        _ leasing: any FillLeasing,
        key: StoreKey,
        variant: StoreKey = StoreKey([])
    ) async -> (any ForeignLease)? {
        guard case .held(let seen) = await leasing.lease(key, variant: variant, for: .seconds(600)) else { return nil }
        return seen
    }

    /// What the other process saw of a lease that its holder has released.
    private static func seenLetGo(_ subject: Subject, key: StoreKey) async -> (any ForeignLease)? {
        let lease = await granted(subject.one, key: key)
        let seen = await held(subject.other, key: key)
        return lease == nil ? nil : seen
    }
}
