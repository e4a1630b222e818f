// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The short path: plain requests for fresh responses that were requested before are answered without a new decision.
///
/// Its result is always that of the long path; if anything is in doubt, the request takes the long path.
extension CachingHook {
    /// The answer to a plain request, if one is ready and still valid.
    func readyAnswer(to request: URLRequest, history: LookupHistory, context: inout CallContext) -> Response? {
        guard !context.options.concernReuse, context.body.isNone, context.fieldsOfHooks(in: request).isEmpty,
            let hit = readyHit(
                for: request,
                principal: context.options.principal,
                history: history,
                clock: context.clock,
                transport: context.transport
            )
        else { return nil }
        var response = hit.response
        if context.isObserved, let decision = response.cacheDecision { explain(decision, context: context) }
        // Only a caller that judges responses can reject one.
        if context.options.acceptance != nil {
            response.storedOrigin = EntryOrigin(hook: self, entry: hit.entry, context: context)
        }
        return response
    }

    /// - Parameters:
    ///   - request: without content.
    ///   - explicit: the name that the call gives the principal.
    func readyHit(
        for request: URLRequest,
        principal explicit: String?,
        history: LookupHistory,
        clock: any HoldfastClock,
        transport: any Transport
    ) -> (response: Response, entry: StoredEntry)? {
        guard let url = request.url, request.httpMethod == "GET", request.cachePolicy == .useProtocolCachePolicy,
            !cache.recording.isUnderWay, !cache.writer.hasPendingInvalidations
        else { return nil }
        let asked = request.allHTTPHeaderFields ?? [:]
        let implicit = transport.implicitFields(for: request)
        guard let plain = PlainRequestFields(asked, implicit: implicit), plain.arePlain,
            let principal = cache.partitions.name(of: plain, explicit: explicit, stripe: history.stripe),
            let ready = cache.ready.answer(for: url.absoluteString, to: principal, stripe: history.stripe),
            ready.answers(asked, implicit: implicit)
        else { return nil }
        let now = clock.timestamp
        guard let standing = ready.reuse.standing(now: now, for: plain.cacheControl),
            let entries = cache.store.peek(ready.key, now: StoreInstant(now)),
            ready.otherKey.map({ cache.store.peek($0, now: StoreInstant(now))?.isEmpty ?? false }) ?? true
        else { return nil }
        guard entries.count == 1, entries[0].version == ready.version, !entries[0].needsValidation,
            ready.searchVarianceCount == cache.writer.searchVarianceCount,
            let body = cache.store.peekBody(of: entries[0])
        else {
            cache.ready.giveUp(ready, stripe: history.stripe)
            return nil
        }
        cache.meter.hit(
            from: ready.origin,
            in: history.begun.minute,
            stripe: history.stripe,
            bytes: body.count,
            saved: ready.saved
        )
        let decision = CacheDecision(.hit, reason: .fresh, age: standing.age, freshnessLeft: standing.freshnessLeft)
        let fields = ready.fields(now: now, decision)
        return (
            Response(ready, fields: fields, body: body, to: request, url: url, implicit: implicit, decision: decision),
            entries[0]
        )
    }

    /// Keeps an answer ready if its request was a plain one.
    func keepReady(
        _ selected: LoadedResponse,
        of candidates: [CacheCandidate],
        request: URLRequest,
        lookup: CacheLookup,
        context: CallContext
    ) {
        guard candidates.count == 1, selected.isAtHand, lookup.head.method == .get, request.httpMethod == "GET",
            lookup.content == nil, lookup.directive == .default, !context.options.concernReuse, context.body.isNone,
            request.cachePolicy == .useProtocolCachePolicy,
            cache.options.cacheName == nil || !cache.options.showsKeyInCacheStatus,
            !selected.entry.needsValidation, selected.entry.version != .beingWritten,
            // A redirect is followed above, where an answer without a call never arrives.
            !selected.stored.head.status.isRedirection, selected.entry.headLength <= ReadyAnswers.longestHead
        else { return }
        let keys = [lookup.storeKey, lookup.sharedStoreKey].compactMap(\.self)
        let implicit = context.transport.implicitFields(for: request)
        let fields = request.allHTTPHeaderFields ?? [:]
        // A response of another query is looked up again: one of the URL's own would take precedence.
        guard keys.contains(selected.entry.key),
            // Any other request is not found again.
            let plain = PlainRequestFields(fields, implicit: implicit), plain.arePlain,
            cache.partitions.name(of: plain, explicit: context.options.principal, stripe: lookup.history.stripe)
                == lookup.principal,
            let url = request.url?.absoluteString,
            cache.ready.hasPlace(for: url, to: lookup.principal, stripe: lookup.history.stripe),
            let reuse = PlainReuse(selected.stored, options: cache.options),
            let answer = ReadyAnswer(
                selected.entry,
                stored: selected.stored,
                reuse: reuse,
                url: url,
                principal: lookup.principal,
                hasNamedPrincipal: context.options.principal != nil,
                otherKey: keys.first { $0 != selected.entry.key },
                fields: fields,
                implicit: implicit,
                target: lookup.head.target,
                keyFields: cache.options.keyFields(for: lookup.head.target),
                status: CacheStatusField(cache.options, isStale: false),
                searchVarianceCount: lookup.searchVarianceCount
            )
        else { return }
        cache.ready.keep(answer, stripe: lookup.history.stripe)
    }
}

/// The entry that a ready answer came from, in case the caller rejects it.
private final class EntryOrigin: RemovableOrigin {
    private let hook: CachingHook
    private let entry: StoredEntry
    private let context: CallContext

    init(hook: CachingHook, entry: StoredEntry, context: CallContext) {
        self.hook = hook
        self.entry = entry
        self.context = context
    }

    func remove() async { await hook.remove(entry, context: context) }
}

extension StoredEntry {
    /// The bytes that identify and describe the entry.
    fileprivate var headLength: Int { key.bytes.count + variant.bytes.count + description.metadata.count }
}

/// Everything except the body that answers to plain requests of one principal for one URL have in common.
///
/// Holds no bytes of the store: an entry that leaves the store is freed, and its version is then not found.
final class ReadyAnswer: Sendable {
    /// The head for one second of age.
    private struct Face: Sendable {
        let age: Int64
        let freshnessLeft: Int64?
        let fields: HeaderFields
        var foundation: HTTPURLResponse?
    }

    /// The URL as written in requests.
    let url: String
    /// The digest of the requester; empty without credentials.
    let principal: String
    let key: StoreKey
    /// The other key under which the requester's responses are looked up, and must be none.
    let otherKey: StoreKey?
    let version: StoredEntry.Version
    /// ``CacheWriter/searchVarianceCount`` at the entry's lookup: responses stored since may answer the URL too.
    let searchVarianceCount: UInt64
    let stored: StoredResponse
    let status: StatusCode
    let reuse: PlainReuse
    let origin: CountedOrigin
    /// The time that each hit saves its caller.
    let saved: Duration
    /// Finds the fields that the response's Vary nominates.
    private let finder: FieldNameFinder
    /// The values of the nominated fields in the requests that this answers.
    private let nominated: [String?]
    private let presentCount: Int
    private let implicit: HeaderFields
    private let report: CacheStatusField?
    private let face = Mutex<Face?>(nil)

    /// Nil if the request has a nominated field in several spellings, whose values only count together, or if the response nominates
    /// a field whose value is not compared here.
    ///
    /// - Parameters:
    ///   - principal: the requester.
    ///   - hasNamedPrincipal: whether the call names it, so that it does not follow from the credentials.
    ///   - otherKey: where nothing must be stored.
    ///   - fields: those of a plain request that the entry answers.
    ///   - implicit: what its transport adds to it.
    ///   - keyFields: those that are part of its key by a rule: other values mean another key, as other values of nominated fields
    ///     mean another variant.
    ///   - report: what the cache adds to its responses.
    init?(
        _ entry: StoredEntry,
        stored: StoredResponse,
        reuse: PlainReuse,
        url: String,
        principal: String,
        hasNamedPrincipal: Bool = false,
        otherKey: StoreKey? = nil,
        fields: [String: String],
        implicit: HeaderFields,
        target: TargetURI,
        keyFields: [FieldName] = [],
        status report: CacheStatusField? = nil,
        searchVarianceCount: UInt64
    ) {
        self.url = url
        self.principal = principal
        self.otherKey = otherKey
        self.report = report
        self.searchVarianceCount = searchVarianceCount
        key = entry.key
        version = entry.version
        self.stored = stored
        status = stored.head.status
        self.reuse = reuse
        origin = CountedOrigin(of: target)
        saved = max(.zero, min(stored.delay, CallMetrics.longestDelay))
        self.implicit = implicit
        let nominated = stored.nominated.names
        var names = nominated + keyFields.map(\.canonicalName).filter { !nominated.contains($0) }
        if names.contains(where: ReuseFields.names.contains) {
            // The values of credentials are those of the principal, unless the call names it.
            guard !hasNamedPrincipal else { return nil }
            names.removeAll { ReuseFields.ofPlainRequests[..<2].contains($0) }
            guard !names.contains(where: ReuseFields.names.contains) else { return nil }
        }
        finder = FieldNameFinder(names)
        var values = [String?](repeating: nil, count: names.count)
        for (name, value) in fields {
            guard let number = finder.number(of: name) else { continue }
            guard values[number] == nil else { return nil }
            values[number] = value
        }
        self.nominated = values
        presentCount = values.count { $0 != nil }
    }

    func isFor(_ url: String, _ principal: String) -> Bool { self.url == url && self.principal == principal }

    /// Whether a plain request has the nominated values; otherwise it takes the long path.
    func answers(_ fields: [String: String], implicit: HeaderFields) -> Bool {
        guard implicit.isEmpty ? self.implicit.isEmpty : implicit.hasSameBytes(as: self.implicit) else { return false }
        guard !nominated.isEmpty else { return true }
        var presented = 0
        // By index: an iterator would count references to each key and value.
        var index = fields.startIndex
        while index != fields.endIndex {
            if let number = finder.number(of: fields.keys[index]) {
                guard let value = nominated[number], value.hasSameBytes(as: fields.values[index]) else { return false }
                presented += 1
            }
            fields.formIndex(after: &index)
        }
        return presented == presentCount
    }

    /// The fields with the current Age, and what the cache adds about its decision; made once a second.
    func fields(now: Timestamp, _ decision: CacheDecision) -> HeaderFields {
        // Not the age for a fixed lifetime, which counts from another moment.
        let age = stored.currentAge(now: now)
        return face.withLock { face in
            if let face, face.age == age, face.freshnessLeft == decision.freshnessLeft { return face.fields }
            var fields = stored.responseHead(now: now).fields
            report?.append(to: &fields, decision)
            face = Face(age: age, freshnessLeft: decision.freshnessLeft, fields: fields)
            return fields
        }
    }

    /// The head in Foundation's form, made once for all responses of a second; nil if the response has been changed.
    func foundation(for response: Response, _ url: URL, make: () -> HTTPURLResponse?) -> HTTPURLResponse? {
        // A relative URL is the caller's own, although it identifies the same resource.
        guard response.status == status, url.baseURL == nil, url.absoluteString == self.url else {
            return nil
        }
        let known: HTTPURLResponse?? = face.withLock { face in
            guard let face, face.fields.isIdentical(to: response.fields) else { return .none }
            return .some(face.foundation)
        }
        guard let known else { return nil }
        if let known { return known }
        guard let made = make() else { return nil }
        face.withLock { face in
            if face?.fields.isIdentical(to: response.fields) ?? false { face?.foundation = made }
        }
        return made
    }
}

extension HeaderFields {
    /// Whether both have the same lines byte for byte, except for the case of names.
    fileprivate func hasSameBytes(as other: HeaderFields) -> Bool {
        isIdentical(to: other) || elementsEqual(other) { $0.name == $1.name && $0.value.hasSameBytes(as: $1.value) }
    }
}

/// The ready answers of a cache: a table with a fixed number of sets in each of two stripes of threads, and two answers in each
/// set.
///
/// A new answer for a set that is full gets a place one time in sixteen, and replaces the answer that was found longer ago. If
/// there are more URLs than places, most requests then skip making an answer that nobody would find, and frequent ones stay
/// (bimodal insertion; Qureshi et al., ISCA 2007).
///
/// Each stripe has its own answers, so that threads with the same URL contend less for reference counts.
final class ReadyAnswers: Sendable {
    private struct Pair: Sendable {
        /// The one that was found last.
        var first: ReadyAnswer?
        var second: ReadyAnswer?
        /// How often a place was wanted and none was free.
        var wishes: UInt8 = 0
    }

    private typealias Place = Mutex<Pair>

    static let stripes = 2
    /// One set for this many bytes of the store: a ready answer takes about 1.5 KiB.
    private static let bytesPerSet = 32 << 10
    private static let wishesPerPlace: UInt8 = 16
    /// Entries with a longer key, variant and metadata take the long path, so that the table stays small compared to the store.
    static let longestHead = 8 << 10

    private let stripes: Int
    /// How many sets a stripe has.
    private let count: Int
    private let seed = UInt64.random(in: .min ... .max)
    // Proof: set only in `init`; what it points to is initialized there, Sendable, and freed in `deinit`, when nobody can reach it
    // any more. ReadyAnswersTests uses it from many threads.
    private nonisolated(unsafe) let sets: UnsafeMutablePointer<Place>

    /// - Parameters:
    ///   - capacity: the store's capacity in bytes.
    ///   - stripes: how many there are; with 0 nothing is kept.
    init(capacity: Int, stripes: Int = ReadyAnswers.stripes) {
        self.stripes = stripes
        count = stripes > 0 ? min(max(capacity / ReadyAnswers.bytesPerSet, 64), 16_384) : 0
        sets = .allocate(capacity: count * stripes)
        for index in 0..<count * stripes { sets.advanced(by: index).initialize(to: Mutex(Pair())) }
    }

    deinit {
        sets.deinitialize(count: count * stripes)
        sets.deallocate()
    }

    /// The answer kept for a URL and a principal, if it still has its place.
    ///
    /// - Parameter stripe: the caller's, one of those of ``CacheMeter``; the same for finding and keeping.
    func answer(for url: String, to principal: String, stripe: Int) -> ReadyAnswer? {
        guard count > 0 else { return nil }
        return set(of: url, principal, stripe).pointee.withLock { pair in
            if let first = pair.first, first.isFor(url, principal) { return first }
            if let second = pair.second, second.isFor(url, principal) {
                swap(&pair.first, &pair.second)
                return second
            }
            return nil
        }
    }

    /// Whether an answer for a URL and a principal would get a place now; counts as a request for one.
    func hasPlace(for url: String, to principal: String, stripe: Int) -> Bool {
        guard count > 0 else { return false }
        return set(of: url, principal, stripe).pointee.withLock { pair in
            if pair.first?.isFor(url, principal) ?? true || pair.second?.isFor(url, principal) ?? true { return true }
            pair.wishes &+= 1
            return pair.wishes % ReadyAnswers.wishesPerPlace == 0
        }
    }

    /// Keeps an answer: replaces an older one for its URL, or the one in its set that was found longer ago.
    func keep(_ answer: ReadyAnswer, stripe: Int) {
        guard count > 0 else { return }
        set(of: answer.url, answer.principal, stripe).pointee.withLock { pair in
            if pair.first?.isFor(answer.url, answer.principal) ?? true {
                pair.first = answer
            } else {
                pair.second = answer
            }
        }
    }

    /// Drops an answer whose entry is gone, so that it is not found again.
    func giveUp(_ answer: ReadyAnswer, stripe: Int) {
        guard count > 0 else { return }
        set(of: answer.url, answer.principal, stripe).pointee.withLock { pair in
            if pair.first === answer { pair.first = nil }
            if pair.second === answer { pair.second = nil }
        }
    }

    private func set(of url: String, _ principal: String, _ stripe: Int) -> UnsafeMutablePointer<Place> {
        func hash(_ text: String, seed: UInt64) -> UInt64 {
            var text = text
            return text.withUTF8 { HeadHash.of(UnsafeRawBufferPointer($0), seed: seed) }
        }
        let hash = hash(url, seed: principal.isEmpty ? seed : hash(principal, seed: seed))
        return sets.advanced(by: stripe % stripes * count + Int(hash % UInt64(count)))
    }
}

/// The digests of principals by a keyed hash of their credentials, so that each is computed once and no credential is kept.
///
/// Each stripe of threads has its own, as with ``ReadyAnswers``.
final class PartitionNames: Sendable {
    private struct Place: Sendable {
        let credentials: KeyedHash.Wide
        let name: String
    }

    private final class Stripe: Sendable {
        /// Empty until the first credential comes.
        let places = Mutex<[Place?]>([])
    }

    private static let placesPerStripe = 512

    private let hash: KeyedHash
    private let stripes: [Stripe]

    /// - Parameter count: how many stripes there are; 0 counts as 1.
    init(stripes count: Int) {
        var random = SystemRandomNumberGenerator()
        hash = KeyedHash(keys: (random.next(), random.next()))
        stripes = (0..<max(1, count)).map { _ in Stripe() }
    }

    /// The digest of a principal, which `make` computes if it is not known; "" without credentials.
    ///
    /// - Parameters:
    ///   - explicit: a name that the call gives the principal in place of its credentials.
    ///   - stripe: as in ``ReadyAnswers``.
    func name(of fields: PlainRequestFields, explicit: String?, stripe: Int, make: () -> String) -> String {
        guard let credentials = hashed(fields, explicit: explicit) else { return "" }
        if let known = name(of: credentials, stripe: stripe) { return known }
        let made = make()
        stripes[stripe % stripes.count].places.withLock { places in
            if places.isEmpty { places = [Place?](repeating: nil, count: Self.placesPerStripe) }
            places[Self.index(credentials)] = Place(credentials: credentials, name: made)
        }
        return made
    }

    /// The digest of a principal if it is known; "" without credentials.
    func name(of fields: PlainRequestFields, explicit: String?, stripe: Int) -> String? {
        guard let credentials = hashed(fields, explicit: explicit) else { return "" }
        return name(of: credentials, stripe: stripe)
    }

    private func name(of credentials: KeyedHash.Wide, stripe: Int) -> String? {
        stripes[stripe % stripes.count].places.withLock { places in
            guard !places.isEmpty, let place = places[Self.index(credentials)], place.credentials == credentials else {
                return nil
            }
            return place.name
        }
    }

    /// Nil without credentials.
    private func hashed(_ fields: PlainRequestFields, explicit: String?) -> KeyedHash.Wide? {
        if let explicit { return hash.wide(of: nil, nil, explicit) }
        if fields.authorization == nil, fields.cookie == nil { return nil }
        return hash.wide(of: fields.authorization, fields.cookie, nil)
    }

    private static func index(_ credentials: KeyedHash.Wide) -> Int {
        Int(credentials.low % UInt64(placesPerStripe))
    }
}
