// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// The fetches of one cache that other calls may join, by key.
final class FetchCoalescer: Sendable {
    /// A place in a fetch.
    enum Membership: Sendable {
        /// The call has opened the fetch and must start it.
        case opened(Fetch)
        /// `isLate`: the response's head arrived before the call began.
        case joined(Fetch, isLate: Bool)

        var fetch: Fetch {
            switch self {
            case .opened(let fetch), .joined(let fetch, _): fetch
            }
        }

        var isFirst: Bool { if case .opened = self { true } else { false } }
        var isLate: Bool { if case .joined(_, let isLate) = self { isLate } else { false } }
    }

    private struct State {
        var fetches: [CacheKey: [Fetch]] = [:]
        var background = 0
        /// The keys whose fetches ended last, by the number of the ending.
        var lastCompletions = [Int](repeating: 0, count: rememberedCompletions)
    }

    /// If there are more at once for one key, they differ in their requests; further ones are sent separately.
    private static let mostPerKey = 16
    private static let rememberedCompletions = 64

    private let completed = Atomic<UInt64>(0)
    private let state = Mutex(State())

    /// How many fetches have ended so far.
    var completions: UInt64 { completed.load(ordering: .acquiring) }

    /// Joins a fetch with the same terms, or opens one.
    ///
    /// - Parameters:
    ///   - lookup: of the call, which needs an answer from the origin from then on if it asks for validation.
    ///   - leases: whether other processes may be fetching the same.
    ///   - context: of the call, which must not wait for fetches that wait for it.
    /// - Returns: nil if such a fetch ended after the call's lookup: its response may be stored by now, so look again.
    func membership(for lookup: CacheLookup, terms: FetchTerms, leases: Bool, context: CallContext) -> Membership? {
        let (key, history, deadline, path) = (lookup.key, lookup.history, context.deadline, context.fetchPath)
        let (membership, wakes): (Membership?, [Fetch.Waiter]) = state.withLock { state in
            let known = state.fetches[key] ?? []
            var hasEnded = false
            for fetch in known where fetch.terms == terms && !path.contains(ObjectIdentifier(fetch)) {
                if fetch.isExclusive { continue }
                if lookup.asksValidation, fetch.isSent { continue }
                let joining = fetch.join(
                    until: deadline,
                    late: !history.refusesFinished,
                    yielding: history.mayYield,
                    newestOrder: lookup.newestOrder
                )
                switch joining {
                case .joined(let wakes): return (.joined(fetch, isLate: false), wakes)
                case .joinedLate: return (.joined(fetch, isLate: true), [])
                case .over: hasEnded = true
                case .refused: break
                }
            }
            if history.goesOn, hasEnded || hasCompleted(key, since: lookup.completions, state: state) {
                return (nil, [])
            }
            let mayYield = leases && history.mayYield
            let fetch = Fetch(terms, deadline: deadline, isBackground: false, mayYield: mayYield)
            if known.count < FetchCoalescer.mostPerKey { state.fetches[key, default: []].append(fetch) }
            return (.opened(fetch), [])
        }
        for waiter in wakes { waiter.wake() }
        return membership
    }

    /// Whether a response of the key may have been stored since `mark`.
    func hasCompleted(_ key: CacheKey, since mark: UInt64) -> Bool {
        completions != mark && state.withLock { hasCompleted(key, since: mark, state: $0) }
    }

    private func hasCompleted(_ key: CacheKey, since mark: UInt64, state: borrowing State) -> Bool {
        let completions = completions
        if completions &- mark > UInt64(FetchCoalescer.rememberedCompletions) { return true }
        let hash = key.hashValue
        return (mark..<completions).contains { state.lastCompletions[FetchCoalescer.place($0)] == hash }
    }

    private static func place(_ number: UInt64) -> Int { Int(number % UInt64(rememberedCompletions)) }

    /// Opens a fetch that nobody waits for, unless there is already one with the same terms, or too many.
    ///
    /// - Parameter isExclusive: whether nobody may join it either.
    func background(
        for key: CacheKey,
        _ terms: FetchTerms,
        limit: Int,
        leases: Bool,
        isExclusive: Bool
    ) -> Fetch? {
        state.withLock { state in
            let known = state.fetches[key] ?? []
            guard state.background < limit, !known.contains(where: { $0.terms == terms && !$0.isGivenUp }) else {
                return nil
            }
            state.background += 1
            let fetch = Fetch(terms, deadline: nil, isBackground: true, mayYield: leases, isExclusive: isExclusive)
            state.fetches[key, default: []].append(fetch)
            return fetch
        }
    }

    /// Lets the exchange of a fetch continue after its readers have left, unless too many do already.
    ///
    /// - Returns: whether it continues because of this call.
    @discardableResult
    func keepRunning(_ fetch: Fetch, limit: Int) -> Bool {
        let effects: Fetch.Effects? = state.withLock { state in
            guard state.background < limit, let effects = fetch.enterBackground() else { return nil }
            state.background += 1
            return effects
        }
        effects?.apply()
        return effects != nil
    }

    /// Records that a fetch has ended, including its body.
    func ended(_ fetch: Fetch, for key: CacheKey) {
        if !fetch.staysOpen { close(fetch, for: key) }
        if fetch.end() { state.withLock { $0.background -= 1 } }
    }

    /// Prevents further joins of a fetch; its response has been stored by then, if it is stored at all.
    ///
    /// A fetch that nobody reads any more may be stored only afterwards; it is then closed again, so that calls look once more.
    func close(_ fetch: Fetch, for key: CacheKey) {
        state.withLock { state in
            state.fetches[key]?.removeAll { $0 === fetch }
            if state.fetches[key]?.isEmpty ?? false { state.fetches[key] = nil }
            noteCompletion(key, state: &state)
        }
    }

    /// Records that a response of the key was stored that no fetch had brought.
    func noteCompletion(_ key: CacheKey) {
        state.withLock { noteCompletion(key, state: &$0) }
    }

    private func noteCompletion(_ key: CacheKey, state: inout State) {
        state.lastCompletions[FetchCoalescer.place(completions)] = key.hashValue
        completed.add(1, ordering: .releasing)
    }

    /// How many fetches can be joined.
    var count: Int { state.withLock { $0.fetches.values.reduce(0) { $0 + $1.count } } }

    /// How many calls are in them.
    var readers: Int { state.withLock { $0.fetches.values.joined().reduce(0) { $0 + $1.readers } } }

    /// How many exchanges continue, or would continue, without readers.
    var backgroundCount: Int { state.withLock { $0.background } }
}

/// What two calls with one key must have in common so that one exchange can answer both.
struct FetchTerms: Sendable, Hashable {
    private let values: [String?]
    private let names: [FieldName]
    private let tags: Set<String>
    private let lifetime: Duration?
    private let mark: InvalidationLog.Mark
    private let pathMark: InvalidationLog.PathMark
    private let method: RequestMethod
    /// Whether the response must be a complete one: a refresh may have begun with a HEAD or a condition.
    private let isWhole: Bool

    /// - Parameter nominated: the names that responses of the key are known to nominate by Vary.
    init(_ lookup: CacheLookup, nominated: [String], tags: Set<String>, pathMark: InvalidationLog.PathMark) {
        var names = FetchTerms.always
        for name in nominated { if let name = FieldName(name), !names.contains(name) { names.append(name) } }
        self.names = names
        values = names.map { lookup.head.fields[$0] }
        self.tags = tags
        lifetime = lookup.directive.lifetime
        // A request sent before an invalidation may give an older response than a later call must see.
        mark = lookup.generation.mark
        // Its response may say that it answers the query that was invalidated (No-Vary-Search).
        self.pathMark = pathMark
        method = lookup.head.method
        isWhole = !lookup.isConditionalOrPartial
    }

    /// A digest of the values, equal in all processes with the same secret.
    func digest(_ secret: [UInt8]) -> [UInt8] {
        var frames = FramedBytes()
        for (name, value) in zip(names, values) {
            guard let value else { continue }
            frames.append(name.canonicalName)
            frames.append(value)
        }
        return SHA256Digest(authenticating: frames.bytes, key: secret).bytes
    }

    private static let always: [FieldName] = [
        .accept, .acceptEncoding, .acceptLanguage, .cacheControl, .pragma, .range,
    ]
}

/// How a call has looked for an answer so far: the results of earlier lookups, and how many there were.
struct LookupHistory: Sendable {
    /// A response that arrived since a lookup may be stored now; it is worth this many lookups.
    private static let mostLooks = 3

    /// When the call reached the cache.
    let begun: MonotonicInstant
    /// Where the call's events are counted.
    let stripe: Int
    private(set) var looks = 1
    /// Names that a response nominated by Vary, with values that differ from this call's.
    private(set) var nominated: Set<String> = []
    /// Whether the call cannot use responses to requests sent before it began.
    private(set) var refusesFinished = false
    /// Whether the call has waited for another process: it does so only once.
    private(set) var hasYielded = false
    /// Whether another process has stored an answer while the call waited.
    private(set) var isFilled = false

    init(begun: MonotonicInstant) {
        self.begun = begun
        stripe = CacheMeter.stripe()
    }

    /// Whether this is the first lookup of its call.
    var isFirst: Bool { looks == 1 }

    /// Whether another lookup is allowed.
    var goesOn: Bool { looks < LookupHistory.mostLooks }

    /// Whether the call can wait for another process: only another lookup can find what that process stored.
    var mayYield: Bool { goesOn && !hasYielded }

    /// The history after another lookup, following a fetch that left the exchange to another process.
    func beyond(_ elsewhere: Fetch.Elsewhere) -> LookupHistory {
        var history = further()
        history.hasYielded = hasYielded || elsewhere.wasAwaited
        history.isFilled = elsewhere.wasAwaited && elsewhere.outcome == .stored
        return history
    }

    /// The history after another lookup.
    func further(nominated names: [String] = [], refusesFinished: Bool = false) -> LookupHistory {
        var history = self
        history.looks += 1
        history.nominated.formUnion(names)
        history.refusesFinished = history.refusesFinished || refusesFinished
        return history
    }
}

/// Remembers facts about keys for some time.
///
/// A table of fixed size; a key that takes another's place makes that one forgotten, which only costs an optimization.
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
