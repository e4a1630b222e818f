// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The short way: plain requests for what was asked for before, and is fresh, are answered without a judgement of their own.
///
/// It decides nothing that the long way would decide otherwise; where anything is in doubt, the request goes the long way.
extension CachingHook {
    /// The answer to a plain request, where one is ready and still as good.
    func readyAnswer(to request: URLRequest, history: LookupHistory, context: inout CallContext) -> Response? {
        guard !context.options.concernReuse, context.body.isNone, context.fieldsOfHooks(in: request).isEmpty,
            let hit = readyHit(for: request, history: history, clock: context.clock, transport: context.transport)
        else { return nil }
        var response = hit.response
        if context.isObserved, let decision = response.cacheDecision { explain(decision, context: context) }
        // Only a caller that judges responses can refuse one.
        if !context.options.areDefault {
            response.storedOrigin = EntryOrigin(hook: self, entry: hit.entry, context: context)
        }
        return response
    }

    /// - Parameter request: without content, and sent without a wish of the caller's.
    func readyHit(
        for request: URLRequest,
        history: LookupHistory,
        clock: any HoldfastClock,
        transport: any Transport
    ) -> (response: Response, entry: StoredEntry)? {
        guard let url = request.url, let ready = cache.ready.answer(for: url.absoluteString, stripe: history.stripe),
            request.httpMethod == "GET", request.cachePolicy == .useProtocolCachePolicy, !cache.recording.isUnderWay,
            !cache.writer.hasPendingInvalidations
        else { return nil }
        let implicit = transport.implicitFields(for: request)
        guard ready.answers(request.allHTTPHeaderFields ?? [:], implicit: implicit) else { return nil }
        let now = clock.timestamp
        let standing = ready.reuse.standing(now: now)
        guard !standing.isStale, let entries = cache.store.peek(ready.key, now: StoreInstant(now)) else { return nil }
        guard entries.count == 1, entries[0].version == ready.version, !entries[0].needsValidation,
            ready.searchVarianceCount == cache.searchVarianceCount,
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
        let fields = ready.fields(now: now)
        return (
            Response(ready, fields: fields, body: body, to: request, url: url, implicit: implicit, decision: decision),
            entries[0]
        )
    }

    /// Keeps ready what answered a request, if that was a plain one.
    func keepReady(
        _ selected: LoadedResponse,
        of candidates: [CacheCandidate],
        request: URLRequest,
        lookup: CacheLookup,
        context: CallContext
    ) {
        guard candidates.count == 1, selected.isAtHand, selected.isOwn, lookup.head.method == .get,
            request.httpMethod == "GET", lookup.principal.isEmpty, lookup.sharedKey == nil, lookup.content == nil,
            lookup.directive == .default, !context.options.concernReuse, context.body.isNone,
            request.cachePolicy == .useProtocolCachePolicy, cache.options.cacheName == nil,
            !selected.entry.needsValidation, selected.entry.version != .beingWritten,
            // What another query's response answers for is looked for anew: one of the URL's own would go before it.
            selected.entry.key == lookup.storeKey,
            // A redirect is followed above, where an answer that takes part in no call never comes by.
            !selected.stored.head.status.isRedirection, selected.entry.headLength <= ReadyAnswers.longestHead,
            !lookup.presented.contains(where: { ReuseFields.names.contains($0.name.canonicalName) }),
            let url = request.url?.absoluteString, cache.ready.hasPlace(for: url, stripe: lookup.history.stripe),
            let reuse = PlainReuse(selected.stored, options: cache.options),
            let answer = ReadyAnswer(
                selected.entry,
                stored: selected.stored,
                reuse: reuse,
                url: url,
                request: request,
                implicit: context.transport.implicitFields(for: request),
                target: lookup.head.target,
                keyFields: cache.options.keyFields(for: lookup.head.target),
                searchVarianceCount: lookup.searchVarianceCount
            )
        else { return }
        cache.ready.keep(answer, stripe: lookup.history.stripe)
    }
}

/// The entry that a ready answer came from, should the caller refuse it.
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
    /// The bytes by which the entry is found and described.
    fileprivate var headLength: Int { key.bytes.count + variant.bytes.count + description.metadata.count }
}

/// All of the answer to plain requests for one URL that is the same from one to the next, but its body.
///
/// Holds no bytes of the store: an entry that leaves it is freed, and found missing by its version.
final class ReadyAnswer: Sendable {
    /// The head as it is while the age is that of one second.
    private struct Face: Sendable {
        let age: Int64
        let fields: HeaderFields
        var foundation: HTTPURLResponse?
    }

    /// The URL as requests spell it.
    let url: String
    let key: StoreKey
    let version: StoredEntry.Version
    /// ``HTTPCache/searchVarianceCount`` when the entry was looked up: what was stored since may answer the URL too.
    let searchVarianceCount: UInt64
    let stored: StoredResponse
    let status: StatusCode
    let reuse: PlainReuse
    let origin: CountedOrigin
    /// What each hit spares its caller.
    let saved: Duration
    /// Finds the fields that make a request go the long way, and behind them those that the response's Vary nominates.
    private let finder: FieldNameFinder
    /// The values of the nominated fields in the requests that this answers.
    private let nominated: [String?]
    private let presentCount: Int
    private let reuseCount: Int
    private let implicit: HeaderFields
    private let face = Mutex<Face?>(nil)

    /// Nil where the request names a nominated field in several spellings, whose values are one only when taken together.
    ///
    /// - Parameters:
    ///   - request: a plain one that the entry answers.
    ///   - implicit: what its transport adds to it.
    ///   - keyFields: those that are part of its key by a rule: other values are another key, as others of nominated fields are another
    ///     variant.
    init?(
        _ entry: StoredEntry,
        stored: StoredResponse,
        reuse: PlainReuse,
        url: String,
        request: URLRequest,
        implicit: HeaderFields,
        target: TargetURI,
        keyFields: [FieldName] = [],
        searchVarianceCount: UInt64
    ) {
        self.url = url
        self.searchVarianceCount = searchVarianceCount
        key = entry.key
        version = entry.version
        self.stored = stored
        status = stored.head.status
        self.reuse = reuse
        origin = CountedOrigin(of: target)
        saved = max(.zero, min(stored.delay, CallMetrics.longestDelay))
        self.implicit = implicit
        let fields = request.allHTTPHeaderFields ?? [:]
        reuseCount = ReuseFields.names.count
        let nominated = stored.nominated.names
        let names = nominated + keyFields.map(\.canonicalName).filter { !nominated.contains($0) }
        finder = FieldNameFinder(ReuseFields.names + names)
        let own = FieldNameFinder(names)
        var values = [String?](repeating: nil, count: names.count)
        for (name, value) in fields {
            guard let number = own.number(of: name) else { continue }
            guard values[number] == nil else { return nil }
            values[number] = value
        }
        self.nominated = values
        presentCount = values.count { $0 != nil }
    }

    /// Whether a request with these fields is a plain one with the nominated values; false sends it the long way.
    func answers(_ fields: [String: String], implicit: HeaderFields) -> Bool {
        guard implicit.isEmpty ? self.implicit.isEmpty : implicit.hasSameBytes(as: self.implicit) else { return false }
        var presented = 0
        // By index: an iterator would count references to each key and value.
        var index = fields.startIndex
        while index != fields.endIndex {
            if let number = finder.number(of: fields.keys[index]) {
                let place = number - reuseCount
                guard place >= 0, let value = nominated[place], value.hasSameBytes(as: fields.values[index]) else {
                    return false
                }
                presented += 1
            }
            fields.formIndex(after: &index)
        }
        return presented == presentCount
    }

    /// The fields with the Age of this moment; made once a second.
    func fields(now: Timestamp) -> HeaderFields {
        // Not the age that a lifetime of the cache's own goes by, which counts from another moment.
        let age = stored.currentAge(now: now)
        return face.withLock { face in
            if let face, face.age == age { return face.fields }
            let fields = stored.responseHead(now: now).fields
            face = Face(age: age, fields: fields)
            return fields
        }
    }

    /// The head in Foundation's form, made once for all responses of a second; nil where the response is no longer as it was
    /// answered.
    func foundation(for response: Response, _ url: URL, make: () -> HTTPURLResponse?) -> HTTPURLResponse? {
        // A relative URL is the caller's own, although it names the same resource.
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
    /// Whether both have the same lines, letter case of names aside, byte for byte.
    fileprivate func hasSameBytes(as other: HeaderFields) -> Bool {
        isIdentical(to: other) || elementsEqual(other) { $0.name == $1.name && $0.value.hasSameBytes(as: $1.value) }
    }
}

/// The ready answers of a cache: a table of a fixed number of sets in each of two stripes of threads, two answers a set.
///
/// What wants a place that another one has gets it one time in sixteen, and takes that of the answer that was found longer ago.
/// Where more URLs are asked for than there are places, most requests are so spared the making of an answer that nobody would
/// find, and what is asked for often stays (bimodal insertion; Qureshi et al., ISCA 2007).
///
/// Each stripe has answers of its own, so that threads that want the same one wait less for each other's counts of references.
final class ReadyAnswers: Sendable {
    private struct Pair: Sendable {
        /// The one that was found last.
        var first: ReadyAnswer?
        var second: ReadyAnswer?
        /// How often a place was wanted and none was free.
        var wishes: UInt8 = 0
    }

    private typealias Place = Mutex<Pair>

    private static let stripes = 2
    /// One set for so many bytes of the store: a ready answer takes about 1.5 KiB.
    private static let bytesPerSet = 32 << 10
    private static let wishesPerPlace: UInt8 = 16
    /// Entries whose key, variant and metadata are longer go the long way, so that the table stays within a small part of the store.
    static let longestHead = 8 << 10

    /// How many sets a stripe has.
    private let count: Int
    private let seed = UInt64.random(in: .min ... .max)
    // Proof: set in `init`, and never again; what it points to is filled there, Sendable, and freed in `deinit`, when nobody can reach
    // it any more. ReadyAnswersTests uses it from many threads.
    private nonisolated(unsafe) let sets: UnsafeMutablePointer<Place>

    /// - Parameter capacity: what the store holds at most, in bytes; nil: nothing is kept.
    init(capacity: Int?) {
        count = capacity.map { min(max($0 / ReadyAnswers.bytesPerSet, 64), 4096) } ?? 0
        sets = .allocate(capacity: count * ReadyAnswers.stripes)
        for index in 0..<count * ReadyAnswers.stripes { sets.advanced(by: index).initialize(to: Mutex(Pair())) }
    }

    deinit {
        sets.deinitialize(count: count * ReadyAnswers.stripes)
        sets.deallocate()
    }

    /// What was kept for a URL, if it still has its place.
    ///
    /// - Parameter stripe: the caller's, one of those of ``CacheMeter``; the same for what it finds and what it keeps.
    func answer(for url: String, stripe: Int) -> ReadyAnswer? {
        guard count > 0 else { return nil }
        return set(of: url, stripe).pointee.withLock { pair in
            if let first = pair.first, first.url == url { return first }
            if let second = pair.second, second.url == url {
                swap(&pair.first, &pair.second)
                return second
            }
            return nil
        }
    }

    /// Whether an answer for a URL would be given a place now; counts as a wish for one.
    func hasPlace(for url: String, stripe: Int) -> Bool {
        guard count > 0 else { return false }
        return set(of: url, stripe).pointee.withLock { pair in
            if pair.first == nil || pair.second == nil || pair.first?.url == url || pair.second?.url == url {
                return true
            }
            pair.wishes &+= 1
            return pair.wishes % ReadyAnswers.wishesPerPlace == 0
        }
    }

    /// Keeps an answer, in the place of an older one of its URL, or of the one of its set that was found longer ago.
    func keep(_ answer: ReadyAnswer, stripe: Int) {
        guard count > 0 else { return }
        set(of: answer.url, stripe).pointee.withLock { pair in
            if pair.first == nil || pair.first?.url == answer.url {
                pair.first = answer
            } else {
                pair.second = answer
            }
        }
    }

    /// Lets go of an answer whose entry is gone, so that it is not looked for again.
    func giveUp(_ answer: ReadyAnswer, stripe: Int) {
        guard count > 0 else { return }
        set(of: answer.url, stripe).pointee.withLock { pair in
            if pair.first === answer { pair.first = nil }
            if pair.second === answer { pair.second = nil }
        }
    }

    private func set(of url: String, _ stripe: Int) -> UnsafeMutablePointer<Place> {
        var url = url
        let hash = url.withUTF8 { HeadHash.of(UnsafeRawBufferPointer($0), seed: seed) }
        return sets.advanced(by: stripe % ReadyAnswers.stripes * count + Int(hash % UInt64(count)))
    }
}
