// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How long a response is fresh, and by which rule (RFC 9111 §4.2.1).
public struct FreshnessLifetime: Sendable, Hashable {
    /// The rule that determined the lifetime.
    public enum Source: Sendable, Hashable {
        /// `s-maxage`, in a shared cache.
        case sMaxAge
        /// `max-age`.
        case maxAge
        /// Expires minus Date.
        case expires
        /// The cache's options, whatever the server says (``CacheOptions/fixedLifetime``).
        case fixed
        /// The call that got it, or the cache's options, because its server says nothing (``CacheDirective/lifetime``,
        /// ``CacheOptions/defaultLifetime``).
        case given
        /// The cache's options, for an error whose server says nothing (``CacheOptions/negativeLifetime``).
        case negative
        /// A share of the time since the last modification (RFC 9111 §4.2.2).
        case heuristic
        /// No rule: the response is stale at once.
        case none
    }

    /// The lifetime in seconds, never negative.
    public let seconds: Int64

    /// The rule that determined it.
    public let source: Source

    /// Creates a lifetime; negative seconds count as 0.
    public init(seconds: Int64, source: Source) {
        self.seconds = max(0, seconds)
        self.source = source
    }
}

extension StoredResponse {
    /// The options with the rules for this response applied.
    private func ruled(_ options: CacheOptions) -> CacheOptions { options.ruled(for: self) ?? options }

    /// How long this response is fresh, counted from its creation (RFC 9111 §4.2.1), or from its receipt if the options fix the
    /// lifetime.
    ///
    /// - Parameter options: the cache's mode, heuristics and limits.
    public func freshnessLifetime(_ options: CacheOptions) -> FreshnessLifetime { facts.lifetime(ruled(options)) }

    /// How much too old the response looks by its Date alone, in seconds (RFC 9111 §4.2.3).
    package var apparentAge: Int64 { facts.apparentAge / 1000 }

    /// The age of the response when it arrived, in seconds: the larger of the age by Date, and of Age plus the time of the exchange
    /// (RFC 9111 §4.2.3).
    package var correctedInitialAge: Int64 { facts.initialAge / 1000 }

    /// The age of the response in whole seconds, rounded down; a clock that was set back adds nothing (RFC 9111 §4.2.3).
    public func currentAge(now: Timestamp) -> Int64 { facts.currentAge(now: now) }

    /// Whether the response is fresh: its lifetime exceeds its age (RFC 9111 §4.2), or equals it if the options fix the lifetime.
    public func isFresh(now: Timestamp, options: CacheOptions) -> Bool {
        !standing(now: now, options: options).isStale
    }

    /// The response's age and lifetime.
    ///
    /// - Parameters:
    ///   - now: the time of the request.
    ///   - options: the cache's mode, heuristics and limits.
    package func standing(now: Timestamp, options: CacheOptions) -> FreshnessStanding {
        facts.standing(now: now, options: ruled(options))
    }

    /// The instant after which the entry can be neither reused nor revalidated, and may be evicted first.
    ///
    /// An entry with a validator, or one that may be served stale, stays useful after its lifetime for the options' retention; any
    /// other is useless once stale. One that must be confirmed and cannot be is useless at once.
    public func uselessAfter(_ options: CacheOptions) -> Timestamp {
        if needsConfirmation, !hasValidator { return responseTime }
        let ruled = ruled(options)
        let staleFrom = facts.staleFrom(ruled)
        guard hasValidator || !forbidsStale(ruled) else { return staleFrom }
        return staleFrom.advanced(by: ruled.retention)
    }

    /// Whether the response must not be used once stale, whatever the caller accepts (RFC 9111 §4.2.4).
    package func forbidsStale(_ options: CacheOptions) -> Bool {
        needsConfirmation || isForOneUser(options) || facts.forbidsStale(ruled(options))
    }

    /// Whether it is for one user, so that only a cache in private mode can have stored it: a shared one over the same store must
    /// not use it unconfirmed (RFC 9111 §5.2.2.7).
    func isForOneUser(_ options: CacheOptions) -> Bool {
        guard options.mode == .shared, facts.flags.contains(.private) else { return false }
        return switch cacheControl.private {
        case .absent: false
        case .unqualified: true
        // A shared cache removes the named fields before it stores a response.
        case .fields(let names):
            FieldUpdate.droppable(names, targetedFields: targetedFields).contains { head.fields.contains($0) }
        }
    }

    /// Whether its lifetime is fixed by the cache, whatever its server says.
    package func hasFixedLifetime(_ options: CacheOptions) -> Bool { ruled(options).fixedLifetime != nil }

    /// Whether this response to a request without credentials may answer one whose only credential is a Cookie, although
    /// each principal of a private cache has entries of its own.
    ///
    /// RFC 9111 §4 allows this, since a Cookie selects nothing unless Vary says so. The response must be fresh, because what the
    /// origin says about it to a user is for that user. It must be neither `private` nor a part, which the user's request would
    /// complete. Never if the cache fixes lifetimes itself: it then keeps responses that no server has declared suitable.
    ///
    /// - Parameters:
    ///   - now: the time of the request.
    ///   - options: the cache's rules.
    package func mayAnswerCookies(now: Timestamp, options: CacheOptions) -> Bool {
        let ruled = ruled(options)
        return ranges == nil && facts.mayAnswerCookies(ruled) && !facts.standing(now: now, options: ruled).isStale
    }
}

/// The rules, for options without rules by route (``CacheOptions/rules``) or with those applied.
extension ResponseFacts {
    func lifetime(_ options: CacheOptions) -> FreshnessLifetime {
        let lifetime = unlimitedLifetime(options)
        guard let limit = options.maximumLifetime?.wholeSeconds, limit < lifetime.seconds else { return lifetime }
        return FreshnessLifetime(seconds: limit, source: lifetime.source)
    }

    private func unlimitedLifetime(_ options: CacheOptions) -> FreshnessLifetime {
        if let fixed = options.fixedLifetime { return FreshnessLifetime(seconds: fixed.wholeSeconds, source: .fixed) }
        if options.mode == .shared, let sMaxAge { return FreshnessLifetime(seconds: sMaxAge, source: .sMaxAge) }
        if let maxAge { return FreshnessLifetime(seconds: maxAge, source: .maxAge) }
        guard flags.contains(.expires) else { return unstatedLifetime(options) }
        guard !flags.contains(.invalidExpires) else { return FreshnessLifetime(seconds: 0, source: .expires) }
        return FreshnessLifetime(seconds: date.millisecondsUntil(expires) / 1000, source: .expires)
    }

    /// The lifetime of a response whose server does not say.
    private func unstatedLifetime(_ options: CacheOptions) -> FreshnessLifetime {
        let mayBeEstimated = status.isHeuristicallyCacheable || flags.contains(.public)
        if status.rawValue < 400, mayBeEstimated,
            let seconds = givenLifetime ?? options.defaultLifetime?.wholeSeconds
        {
            return FreshnessLifetime(seconds: seconds, source: .given)
        }
        if let negative = options.negativeLifetime, flags.contains(.allowsNegativeCaching) {
            return FreshnessLifetime(seconds: negative.wholeSeconds, source: .negative)
        }
        guard options.heuristicFreshness, let lastModified, mayBeEstimated else {
            return FreshnessLifetime(seconds: 0, source: .none)
        }
        let unchanged = max(0, lastModified.millisecondsUntil(date))
        // The product is at most the Int64 that it came from, and halving keeps its rounding away from the upper end.
        let share = min(Double(unchanged) * options.heuristicFraction, Double(Int64.max / 2))
        let seconds = min(Int64(share) / 1000, options.heuristicCap.wholeSeconds)
        return FreshnessLifetime(seconds: seconds, source: .heuristic)
    }

    /// In milliseconds.
    var apparentAge: Int64 { max(0, date.millisecondsUntil(responseTime)) }

    /// In milliseconds.
    var initialAge: Int64 {
        let delay = max(0, requestTime.millisecondsUntil(responseTime))
        return max(apparentAge, saturatedSum(ageValue * 1000, delay))
    }

    func currentAge(now: Timestamp) -> Int64 {
        saturatedSum(initialAge, max(0, responseTime.millisecondsUntil(now))) / 1000
    }

    func standing(now: Timestamp, options: CacheOptions) -> FreshnessStanding {
        let lifetime = lifetime(options).seconds
        guard let fixed = options.fixedMilliseconds else {
            let age = currentAge(now: now)
            return FreshnessStanding(age: age, lifetime: lifetime, isStale: lifetime <= age)
        }
        let resident = max(0, responseTime.millisecondsUntil(now))
        return FreshnessStanding(age: resident / 1000, lifetime: lifetime, isStale: resident > fixed)
    }

    /// The age and lifetime of a whole response to a GET that answers a request without conditions, ranges and directives of the
    /// caller at once; nil if it is not fresh, or not fresh enough for the request: then ``ReasonedReuseDecision`` decides.
    ///
    /// - Parameter cacheControl: the request's field value; nil if it has none.
    package func standing(
        now: Timestamp,
        for cacheControl: String?,
        options: CacheOptions
    ) -> FreshnessStanding? {
        // Whether `private` names only fields is not among the facts, so the full decision looks.
        guard !options.neverStores, !requiresValidation(options), options.mode == .private || !flags.contains(.private)
        else { return nil }
        let standing = standing(now: now, options: options)
        guard !standing.isStale else { return nil }
        guard let cacheControl else { return standing }
        let asked = CacheControl(parsing: cacheControl)
        let demand = FreshnessDemand(asked, directive: .default, isImmutable: isImmutable(options))
        return !asked.noStore && demand.accepts(standing) ? standing : nil
    }

    /// Whether its server says that the origin must be asked each time, or that it must not be stored: what a cache with other
    /// options stored against the server's word is not used by a cache that respects it.
    func requiresValidation(_ options: CacheOptions) -> Bool {
        options.fixedLifetime == nil && (flags.contains(.noCache) || isAgainstItsWord)
    }

    /// Whether a reload by the caller need not confirm it while it is fresh (RFC 8246).
    func isImmutable(_ options: CacheOptions) -> Bool { options.fixedLifetime == nil && flags.contains(.immutable) }

    /// Whether its server says that it must not be stored, so that only a fixed lifetime can have kept it: with must-understand, the
    /// status decides (RFC 9111 §5.2.2.3).
    var isAgainstItsWord: Bool {
        flags.contains(.mustUnderstand) ? !status.isRegistered : flags.contains(.noStore)
    }

    /// ``StoredResponse/mayAnswerCookies(now:options:)``, of a whole response that is fresh.
    package func mayAnswerCookies(_ options: CacheOptions) -> Bool {
        options.fixedLifetime == nil && !flags.contains(.private)
    }

    func forbidsStale(_ options: CacheOptions) -> Bool {
        if flags.contains(.mustRevalidate) || flags.contains(.noCache) { return true }
        // Stored anyway because of a fixed lifetime, which has ended or was since removed from the options.
        if isAgainstItsWord || flags.contains(.noStore) && options.fixedLifetime != nil { return true }
        return options.mode == .shared && (flags.contains(.proxyRevalidate) || sMaxAge != nil)
    }

    func staleFrom(_ options: CacheOptions) -> Timestamp {
        if let fixed = options.fixedMilliseconds {
            return responseTime.advanced(byMilliseconds: fixed).advanced(byMilliseconds: 1)
        }
        let lifetime = lifetime(options).seconds.multipliedReportingOverflow(by: 1000)
        let remaining = (lifetime.overflow ? .max : lifetime.partialValue) - initialAge
        return responseTime.advanced(byMilliseconds: max(0, remaining))
    }

    private func saturatedSum(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, overflow) = left.addingReportingOverflow(right)
        return overflow ? .max : sum
    }
}

/// A stored response's age and lifetime at one moment.
package struct FreshnessStanding: Sendable, Hashable {
    /// Its age in whole seconds: since its creation (RFC 9111 §4.2.3), or since its receipt if the cache fixes the lifetime.
    package let age: Int64

    /// Its lifetime in whole seconds.
    package let lifetime: Int64

    /// Whether it is past its lifetime; more precise than seconds if the cache fixes the lifetime.
    package let isStale: Bool

    /// For how many seconds it has been stale; 0 while it is fresh, and in the first second after that.
    package var staleness: Int64 { isStale ? max(0, age - lifetime) : 0 }

    /// For how many seconds it stays fresh; 0 or less once it is stale.
    package var freshnessLeft: Int64 { isStale ? min(0, lifetime - age) : max(1, lifetime - age) }

    init(age: Int64, lifetime: Int64, isStale: Bool) {
        self.age = age
        self.lifetime = lifetime
        self.isStale = isStale
    }
}

extension CacheOptions {
    /// The fixed lifetime in milliseconds, limited by the maximum lifetime; nil if none is fixed.
    var fixedMilliseconds: Int64? {
        guard let fixedLifetime else { return nil }
        return min(fixedLifetime, maximumLifetime ?? fixedLifetime).wholeMilliseconds
    }
}

/// What the rules of freshness and reuse need to know of a stored response, as numbers and flags (RFC 9111 §4.2, RFC 5861).
///
/// They are read from the fields once, and stored with the response, so that a decision reads none.
package struct ResponseFacts: Sendable, Hashable {
    /// What a response says or has.
    struct Flags: OptionSet, Sendable, Hashable {
        let rawValue: UInt32

        static let noStore = Flags(rawValue: 1 << 0)
        /// `no-cache` for the whole response.
        static let noCache = Flags(rawValue: 1 << 1)
        static let mustRevalidate = Flags(rawValue: 1 << 2)
        static let proxyRevalidate = Flags(rawValue: 1 << 3)
        static let mustUnderstand = Flags(rawValue: 1 << 4)
        /// `private`, also for some fields.
        static let `private` = Flags(rawValue: 1 << 5)
        static let `public` = Flags(rawValue: 1 << 6)
        static let immutable = Flags(rawValue: 1 << 7)
        static let entityTag = Flags(rawValue: 1 << 8)
        /// A Date field, readable or not.
        static let date = Flags(rawValue: 1 << 9)
        static let retryAfter = Flags(rawValue: 1 << 10)
        static let allowsNegativeCaching = Flags(rawValue: 1 << 11)
        /// An Expires field that applies.
        static let expires = Flags(rawValue: 1 << 12)
        /// One that is no date.
        static let invalidExpires = Flags(rawValue: 1 << 13)
        static let contentDecoded = Flags(rawValue: 1 << 14)
        static let age = Flags(rawValue: 1 << 15)
        /// A Last-Modified that is weak, although the Date of an update makes it look strong.
        static let weakDate = Flags(rawValue: 1 << 16)
    }

    let flags: Flags
    private let statusNumber: Int32
    package let requestTime: Timestamp
    package let responseTime: Timestamp
    let date: Timestamp
    let expires: Timestamp
    let ageValue: Int64
    // Stored as they are encoded, since facts are copied on each hit.
    private let storedLastModified: Timestamp
    private let storedMaxAge: Int64
    private let storedSMaxAge: Int64
    private let storedStaleWhileRevalidate: Int64
    private let storedStaleIfError: Int64
    private let storedGivenLifetime: Int64
    /// Of the target list by which the directives were chosen (RFC 9213 §2.2).
    package let targetsHash: UInt64

    package var status: StatusCode { StatusCode(rawValue: Int(statusNumber)) }
    var lastModified: Timestamp? { storedLastModified == .distantPast ? nil : storedLastModified }
    var maxAge: Int64? { storedMaxAge < 0 ? nil : storedMaxAge }
    var sMaxAge: Int64? { storedSMaxAge < 0 ? nil : storedSMaxAge }
    var staleWhileRevalidate: Int64? { storedStaleWhileRevalidate < 0 ? nil : storedStaleWhileRevalidate }
    var staleIfError: Int64? { storedStaleIfError < 0 ? nil : storedStaleIfError }
    package var givenLifetime: Int64? { storedGivenLifetime < 0 ? nil : storedGivenLifetime }

    package var contentDecoded: Bool { flags.contains(.contentDecoded) }

    /// A date asks only about a success: the 304 to it says that the answer would be one now (RFC 9110 §15.4.5).
    var hasValidator: Bool { flags.contains(.entityTag) || lastModified != nil && status.isSuccessful }

    /// Reads the fields.
    init(
        _ head: ResponseHead,
        requestTime: Timestamp,
        responseTime: Timestamp,
        contentDecoded: Bool,
        givenLifetime: Int64?,
        targetedFields: [FieldName],
        hasWeakDate: Bool = false
    ) {
        let ruling = RulingCacheControl(head.fields, targets: targetedFields)
        let cacheControl = ruling.cacheControl
        var flags: Flags = []
        func set(_ flag: Flags, _ condition: Bool) { if condition { flags.insert(flag) } }
        set(.noStore, cacheControl.noStore)
        set(.noCache, cacheControl.noCache == .unqualified)
        set(.mustRevalidate, cacheControl.mustRevalidate)
        set(.proxyRevalidate, cacheControl.proxyRevalidate)
        set(.mustUnderstand, cacheControl.mustUnderstand)
        set(.private, cacheControl.private != .absent)
        set(.public, cacheControl.public)
        set(.immutable, cacheControl.immutable)
        set(.entityTag, head.entityTag != nil)
        set(.date, head.fields.contains(.date))
        set(.retryAfter, head.fields.contains(.retryAfter))
        set(.allowsNegativeCaching, head.allowsNegativeCaching(by: ruling))
        set(.contentDecoded, contentDecoded)
        set(.age, head.fields.contains(.age))
        set(.weakDate, hasWeakDate)
        var expires = Timestamp.distantPast
        if ruling.hasExpires {
            // A repeated Expires counts as invalid, an invalid one as past (RFC 9111 §4.2.1, §5.3).
            let parsed = ResponseHead.date(of: .expires, in: head.fields, receivedAt: responseTime)
            flags.insert(.expires)
            set(.invalidExpires, parsed == nil || ResponseFacts.namesOtherZone(head.fields[.expires]))
            expires = parsed?.timestamp ?? .distantPast
        }
        self.flags = flags
        self.expires = expires
        statusNumber = Int32(clamping: head.status.rawValue)
        self.requestTime = requestTime
        self.responseTime = responseTime
        date = head.date(receivedAt: responseTime)?.timestamp ?? responseTime
        storedLastModified = head.lastModified(receivedAt: responseTime)?.timestamp ?? .distantPast
        ageValue = head.age ?? 0
        storedMaxAge = cacheControl.maxAge ?? -1
        storedSMaxAge = cacheControl.sMaxAge ?? -1
        storedStaleWhileRevalidate = cacheControl.staleWhileRevalidate ?? -1
        storedStaleIfError = cacheControl.staleIfError ?? -1
        storedGivenLifetime = givenLifetime.map { max($0, 0) } ?? -1
        targetsHash = ResponseFacts.hash(targetedFields)
    }

    /// Whether an expiration date has another zone than GMT, including UTC by name: such a date can be read, but must not make
    /// a response fresh (RFC 9111 §4.2).
    private static func namesOtherZone(_ expires: String?) -> Bool {
        expires?.loweringASCII().hasSuffix("utc") ?? false
    }

    /// A number for a target list; FNV-1a of its names in lower case.
    package static func hash(_ targets: [FieldName]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for name in targets {
            for byte in name.canonicalName.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            hash = (hash ^ 0xFF) &* 0x100_0000_01B3
        }
        return hash
    }
}

extension ResponseFacts {
    /// The length of the encoded form.
    package static let encodedSize = 104

    /// The facts in ``encodedSize`` bytes: little-endian numbers, of which −1 (for a date: the lowest) says that there is none.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(ResponseFacts.encodedSize)
        func append(_ number: UInt64) {
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
        append(UInt64(flags.rawValue) | UInt64(UInt32(bitPattern: statusNumber)) << 32)
        for instant in [requestTime, responseTime, date, expires, storedLastModified] {
            append(UInt64(bitPattern: instant.millisecondsSinceEpoch))
        }
        for seconds in [
            ageValue, storedMaxAge, storedSMaxAge, storedStaleWhileRevalidate, storedStaleIfError, storedGivenLifetime,
        ] {
            append(UInt64(bitPattern: seconds))
        }
        append(targetsHash)
        return bytes
    }

    /// Reads the encoded form; nil if there are fewer bytes.
    package init?(encoded bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= ResponseFacts.encodedSize else { return nil }
        func number(_ index: Int) -> Int64 {
            Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: Int64.self))
        }
        func instant(_ index: Int) -> Timestamp { Timestamp(millisecondsSinceEpoch: number(index)) }
        flags = Flags(rawValue: UInt32(truncatingIfNeeded: number(0)))
        statusNumber = Int32(truncatingIfNeeded: number(0) >> 32)
        requestTime = instant(1)
        responseTime = instant(2)
        date = instant(3)
        expires = instant(4)
        storedLastModified = instant(5)
        ageValue = max(0, min(number(6), CacheControl.maximumDeltaSeconds))
        storedMaxAge = number(7)
        storedSMaxAge = number(8)
        storedStaleWhileRevalidate = number(9)
        storedStaleIfError = number(10)
        storedGivenLifetime = number(11)
        targetsHash = UInt64(bitPattern: number(12))
    }
}
