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
            let hit = readyHit(for: request, history: history, clock: context.clock, transport: context.transport)
        else { return nil }
        var response = hit.response
        if context.isObserved, let decision = response.cacheDecision { explain(decision, context: context) }
        // Only a caller that judges responses can reject one.
        if context.options.acceptance != nil {
            response.storedOrigin = EntryOrigin(hook: self, entry: hit.entry, context: context)
        }
        return response
    }

    /// - Parameter request: without content and directives.
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
        let fields = ready.fields(now: now)
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
        guard candidates.count == 1, selected.isAtHand, selected.isOwn, lookup.head.method == .get,
            request.httpMethod == "GET", lookup.principal.isEmpty, lookup.sharedKey == nil, lookup.content == nil,
            lookup.directive == .default, !context.options.concernReuse, context.body.isNone,
            request.cachePolicy == .useProtocolCachePolicy, cache.options.cacheName == nil,
            !selected.entry.needsValidation, selected.entry.version != .beingWritten,
            // A response of another query is looked up again: one of the URL's own would take precedence.
            selected.entry.key == lookup.storeKey,
            // A redirect is followed above, where an answer without a call never arrives.
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

/// Everything except the body that answers to plain requests for one URL have in common.
///
/// Holds no bytes of the store: an entry that leaves the store is freed, and its version is then not found.
final class ReadyAnswer: Sendable {
    /// The head for one second of age.
    private struct Face: Sendable {
        let age: Int64
        let fields: HeaderFields
        var foundation: HTTPURLResponse?
    }

    /// The URL as written in requests.
    let url: String
    let key: StoreKey
    let version: StoredEntry.Version
    /// ``CacheWriter/searchVarianceCount`` at the entry's lookup: responses stored since may answer the URL too.
    let searchVarianceCount: UInt64
    let stored: StoredResponse
    let status: StatusCode
    let reuse: PlainReuse
    let origin: CountedOrigin
    /// The time that each hit saves its caller.
    let saved: Duration
    /// Finds the fields that make a request take the long path, followed by those that the response's Vary nominates.
    private let finder: FieldNameFinder
    /// The values of the nominated fields in the requests that this answers.
    private let nominated: [String?]
    private let presentCount: Int
    private let reuseCount: Int
    private let implicit: HeaderFields
    private let face = Mutex<Face?>(nil)

    /// Nil if the request has a nominated field in several spellings, whose values only count together.
    ///
    /// - Parameters:
    ///   - request: a plain request that the entry answers.
    ///   - implicit: what its transport adds to it.
    ///   - keyFields: those that are part of its key by a rule: other values mean another key, as other values of nominated fields
    ///     mean another variant.
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

    /// Whether a request with these fields is a plain one with the nominated values; otherwise it takes the long path.
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

    /// The fields with the current Age; made once a second.
    func fields(now: Timestamp) -> HeaderFields {
        // Not the age for a fixed lifetime, which counts from another moment.
        let age = stored.currentAge(now: now)
        return face.withLock { face in
            if let face, face.age == age { return face.fields }
            let fields = stored.responseHead(now: now).fields
            face = Face(age: age, fields: fields)
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

    private static let stripes = 2
    /// One set for this many bytes of the store: a ready answer takes about 1.5 KiB.
    private static let bytesPerSet = 32 << 10
    private static let wishesPerPlace: UInt8 = 16
    /// Entries with a longer key, variant and metadata take the long path, so that the table stays small compared to the store.
    static let longestHead = 8 << 10

    /// How many sets a stripe has.
    private let count: Int
    private let seed = UInt64.random(in: .min ... .max)
    // Proof: set only in `init`; what it points to is initialized there, Sendable, and freed in `deinit`, when nobody can reach it
    // any more. ReadyAnswersTests uses it from many threads.
    private nonisolated(unsafe) let sets: UnsafeMutablePointer<Place>

    /// - Parameter capacity: the store's capacity in bytes; nil: nothing is kept.
    init(capacity: Int?) {
        count = capacity.map { min(max($0 / ReadyAnswers.bytesPerSet, 64), 4096) } ?? 0
        sets = .allocate(capacity: count * ReadyAnswers.stripes)
        for index in 0..<count * ReadyAnswers.stripes { sets.advanced(by: index).initialize(to: Mutex(Pair())) }
    }

    deinit {
        sets.deinitialize(count: count * ReadyAnswers.stripes)
        sets.deallocate()
    }

    /// The answer kept for a URL, if it still has its place.
    ///
    /// - Parameter stripe: the caller's, one of those of ``CacheMeter``; the same for finding and keeping.
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

    /// Whether an answer for a URL would get a place now; counts as a request for one.
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

    /// Keeps an answer: replaces an older one for its URL, or the one in its set that was found longer ago.
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

    /// Drops an answer whose entry is gone, so that it is not found again.
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
