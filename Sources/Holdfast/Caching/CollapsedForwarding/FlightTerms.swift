// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// What two calls of one key must have in common for one exchange to answer both.
struct FlightTerms: Sendable, Hashable {
    private let values: [String?]
    private let names: [FieldName]
    private let tags: Set<String>
    private let lifetime: Duration?
    private let mark: InvalidationLog.Mark
    private let pathMark: InvalidationLog.PathMark
    private let method: RequestMethod
    /// Whether the response is to be a whole one: a refresh may have begun with a HEAD or a condition.
    private let isWhole: Bool

    /// - Parameter nominated: the names that responses of the key are known to nominate by Vary.
    init(_ lookup: CacheLookup, nominated: [String], tags: Set<String>, pathMark: InvalidationLog.PathMark) {
        var names = FlightTerms.always
        for name in nominated { if let name = FieldName(name), !names.contains(name) { names.append(name) } }
        self.names = names
        values = names.map { lookup.head.fields[$0] }
        self.tags = tags
        lifetime = lookup.directive.lifetime
        // What was sent before an invalidation may be older than what a later call must see.
        mark = lookup.generation.mark
        // Its response may say that it answers for the query that was invalidated (No-Vary-Search).
        self.pathMark = pathMark
        method = lookup.head.method
        isWhole = !lookup.isConditionalOrPartial
    }

    /// The values as a digest that all processes with the same secret have alike.
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

/// How a call has looked for an answer so far: what came of earlier looks, and how many there were.
struct LookTrail: Sendable {
    /// What landed since a look-up may be stored now; so many looks are worth it.
    private static let mostLooks = 3

    /// When the call reached the cache.
    let begun: MonotonicInstant
    /// Where all that becomes of the call is counted.
    let stripe: Int
    private(set) var looks = 1
    /// Names that a response nominated by Vary, whose values were other ones than this call's.
    private(set) var nominated: Set<String> = []
    /// Whether the call can use nothing that was sent before it came.
    private(set) var refusesLanded = false
    /// Whether the call has waited for another process: it does so once.
    private(set) var hasYielded = false
    /// Whether another process has stored an answer while the call waited.
    private(set) var isFilled = false

    init(begun: MonotonicInstant) {
        self.begun = begun
        stripe = CacheMeter.stripe()
    }

    /// Whether this is the first look of its call.
    var isFirst: Bool { looks == 1 }

    /// Whether another look is allowed.
    var goesOn: Bool { looks < LookTrail.mostLooks }

    /// Whether the call can wait for another process: only what looks again can find what that one stored.
    var mayYield: Bool { goesOn && !hasYielded }

    /// The trail after one more look, beyond a flight that left the exchange to another process.
    func beyond(_ elsewhere: Flight.Elsewhere) -> LookTrail {
        var trail = further()
        trail.hasYielded = hasYielded || elsewhere.wasAwaited
        trail.isFilled = elsewhere.wasAwaited && elsewhere.outcome == .stored
        return trail
    }

    /// The trail after one more look.
    func further(nominated names: [String] = [], refusesLanded: Bool = false) -> LookTrail {
        var trail = self
        trail.looks += 1
        trail.nominated.formUnion(names)
        trail.refusesLanded = trail.refusesLanded || refusesLanded
        return trail
    }
}
