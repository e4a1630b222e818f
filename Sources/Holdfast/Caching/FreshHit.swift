// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Fresh hits of plain requests: a GET without content, conditions, range and directives of the caller, for which one whole response
/// is stored that certainly has the request's nominated values and is fresh.
///
/// They are decided by the facts that are stored with the response (``ResponseFacts``), and nothing is decoded. The result is always
/// that of the full decision; if anything is in doubt, that decides, about the entries that were found here.
extension CachingHook {
    /// The answer to a plain request, if it is a fresh hit.
    ///
    /// - Parameter known: gets what was looked up.
    func freshAnswer(
        to request: URLRequest,
        history: LookupHistory,
        context: inout CallContext,
        known: inout KnownEntries
    ) -> Response? {
        guard !context.options.concernReuse, context.body.isNone, context.fieldsOfHooks(in: request).isEmpty,
            let hit = freshHit(
                for: request,
                principal: context.options.principal,
                history: history,
                clock: context.clock,
                transport: context.transport,
                known: &known
            )
        else { return nil }
        var response = hit.response
        if context.isObserved, let decision = response.cacheDecision { explain(decision, context: context) }
        // Only a caller that checks responses can reject one, and that of an outer pipeline cannot be seen from here.
        if context.options.acceptance != nil || context.returnsRedirects {
            response.storedOrigin = EntryOrigin(hook: self, entry: hit.entry, context: context)
        }
        return response
    }

    /// - Parameters:
    ///   - request: without content.
    ///   - explicit: the name that the call gives the principal.
    ///   - known: gets what was looked up.
    func freshHit(
        for request: URLRequest,
        principal explicit: String?,
        history: LookupHistory,
        clock: any HoldfastClock,
        transport: any Transport,
        known: inout KnownEntries
    ) -> (response: Response, entry: StoredEntry)? {
        guard cache.answersFreshHits, let url = request.url, request.httpMethod == "GET",
            request.cachePolicy == .useProtocolCachePolicy, !cache.recording.isUnderWay,
            !cache.writer.hasPendingInvalidations
        else { return nil }
        let fields = request.allHTTPHeaderFields ?? [:]
        let implicit = transport.implicitFields(for: request)
        guard let plain = PlainRequestFields(fields, implicit: implicit), plain.arePlain,
            let target = PlainTarget(url.absoluteString, in: cache, fields: fields, implicit: implicit),
            let principal = cache.partitions.name(
                of: plain,
                explicit: explicit,
                rule: target.rule,
                secret: cache.store.secret,
                stripe: history.stripe
            )
        else { return nil }
        var question = FreshQuestion(
            request: request,
            url: url,
            fields: fields,
            implicit: implicit,
            cacheControl: plain.cacheControl,
            target: target,
            now: clock.timestamp,
            minute: history.begun.minute,
            stripe: history.stripe
        )
        known.completions = cache.fetches.completions
        guard var own = cache.peek(question, of: principal) else { return nil }
        if own.isEmpty, question.target.canonicalize() {
            guard let canonical = cache.peek(question, of: principal) else { return nil }
            own = canonical
        }
        let isShared = cache.options.mode == .shared
        let readsOthers =
            !principal.isEmpty
            && (isShared || cache.options.cookiesMayBorrow && explicit == nil && plain.authorization == nil)
        let others = readsOthers ? cache.peek(question, of: "") : []
        if let others, own.isEmpty || others.isEmpty, !cache.mayVaryInSearch(question, of: principal),
            !readsOthers || !cache.mayVaryInSearch(question, of: ""),
            let hit = answer(
                question,
                from: own.isEmpty ? others : own,
                isBorrowed: own.isEmpty && readsOthers && !isShared,
                // Those of the own partition, which these alone determine.
                areCredentialsEqual: !own.isEmpty && !principal.isEmpty && explicit == nil
            )
        {
            return hit
        }
        known.add(own, for: question.target.key(of: principal))
        if let others, readsOthers { known.add(others, for: question.target.key(of: "")) }
        return nil
    }

    /// The answer from the only entry that certainly is the one to use; nil if it is not certain.
    private func answer(
        _ question: borrowing FreshQuestion,
        from entries: [StoredEntry],
        isBorrowed: Bool,
        areCredentialsEqual: Bool
    ) -> (response: Response, entry: StoredEntry)? {
        let index =
            entries.count == 1 ? 0 : question.selected(among: entries, areCredentialsEqual: areCredentialsEqual)
        guard let index else { return nil }
        let entry = entries[index]
        let metadata = entry.description.metadata
        guard !entry.needsValidation, entry.version != .beingWritten, let head = EntryHead(metadata),
            head.layout.isWholeGet,
            question.hasNominated(head, in: metadata, areCredentialsEqual: areCredentialsEqual),
            !head.layout.needsConfirmation,
            head.facts.targetsHash == cache.targetsHash,
            // A redirect is followed above, where an answer without a call never arrives.
            !head.facts.status.isRedirection, var fields = head.fields(in: metadata),
            let standing = standing(question, of: fields, head: head, in: metadata, isBorrowed: isBorrowed),
            let body = cache.store.peekBody(of: entry)
        else { return nil }
        cache.meter.hit(
            from: CountedOrigin(canonical: question.target.text, originLength: head.layout.originLength),
            in: question.minute,
            stripe: question.stripe,
            bytes: body.count,
            saved: head.facts.savedTime
        )
        let decision = CacheDecision(.hit, reason: .fresh, age: standing.age, freshnessLeft: standing.freshnessLeft)
        head.facts.writeAge(into: &fields, now: question.now)
        CacheStatusField(cache.options, isStale: false)?
            .append(to: &fields, decision, key: "GET \(question.target.text)")
        let response = Response(
            head.facts,
            fields: fields,
            body: body,
            to: question.request,
            url: question.url,
            implicit: question.implicit,
            decision: decision
        )
        return (response, entry)
    }

    /// The age and lifetime of a response that is fresh enough; otherwise nil.
    private func standing(
        _ question: borrowing FreshQuestion,
        of fields: HeaderFields,
        head: EntryHead,
        in metadata: ByteChunk,
        isBorrowed: Bool
    ) -> FreshnessStanding? {
        guard cache.options.hasRules else {
            if isBorrowed, !head.facts.mayAnswerCookies(cache.options) { return nil }
            return head.facts.standing(now: question.now, for: question.cacheControl, options: cache.options)
        }
        // Rules are chosen by the response's own target, which may have more than the key's.
        guard let stored = StoredResponse(decoding: metadata, targetedFields: cache.options.targets),
            let ruled = cache.options.ruled(for: stored.target, fields: fields),
            !isBorrowed || head.facts.mayAnswerCookies(ruled)
        else { return nil }
        return head.facts.standing(now: question.now, for: question.cacheControl, options: ruled)
    }
}

/// What is asked of the entries that were found for a plain request.
private struct FreshQuestion: ~Copyable {
    let request: URLRequest
    let url: URL
    let fields: [String: String]
    let implicit: HeaderFields
    let cacheControl: String?
    var target: PlainTarget
    let now: Timestamp
    /// When it is counted.
    let minute: Int64
    /// Where it is counted.
    let stripe: Int

    /// The index of the only one of several entries that certainly has the request's nominated values; nil if it is not certain
    /// which one that is.
    ///
    /// - Parameter areCredentialsEqual: whether the credentials of the stored responses are the request's.
    borrowing func selected(among entries: [StoredEntry], areCredentialsEqual: Bool) -> Int? {
        var selected: Int?
        for index in entries.indices {
            let metadata = entries[index].description.metadata
            guard let head = EntryHead(metadata), head.layout.isWholeGet else { return nil }
            guard hasNominated(head, in: metadata, areCredentialsEqual: areCredentialsEqual) else { continue }
            if selected != nil { return nil }
            selected = index
        }
        guard let selected, entries.count > 1 else { return selected }
        // Variants with the same names have different values, so that a request has those of one at most: as long as each has the
        // values that it is filed under, which an update with another Vary changes.
        func names(_ entry: StoredEntry) -> [String]? {
            let (metadata, variant) = (entry.description.metadata, entry.variant.bytes)
            guard let head = EntryHead(metadata),
                metadata.withUnsafeBytes({ head.nominates(variant, in: $0) })
            else { return nil }
            return NominatedFields(framed: variant)?.names
        }
        let known = names(entries[selected])
        return known != nil && entries.allSatisfy { names($0) == known } ? selected : nil
    }

    /// Whether the request certainly has the values that a response nominates.
    borrowing func hasNominated(_ head: EntryHead, in metadata: ByteChunk, areCredentialsEqual: Bool) -> Bool {
        guard head.layout.isNominating else { return true }
        return metadata.withUnsafeBytes { metadata in
            guard let written = head.written(in: metadata) else { return false }
            return NominatedFields.matches(
                written: written,
                fields,
                implicit: implicit,
                areCredentialsEqual: areCredentialsEqual
            )
        }
    }
}

extension HTTPCache {
    /// What is stored for a GET of a principal; nil if it is not in memory.
    fileprivate func peek(_ question: borrowing FreshQuestion, of principal: String) -> [StoredEntry]? {
        store.peek(question.target.key(of: principal), now: StoreInstant(question.now))
    }

    /// Whether a response that is stored for another query may answer (No-Vary-Search).
    fileprivate func mayVaryInSearch(_ question: borrowing FreshQuestion, of principal: String) -> Bool {
        guard writer.holdsSearchVariance else { return false }
        guard let uri = try? TargetURI(question.target.text),
            let keys = SearchVarianceKeys(
                CacheKey(
                    partition: principal,
                    method: .get,
                    target: uri,
                    contentType: question.target.contentType
                )
            )
        else { return true }
        let found = store.peek(StoreKey(keys.ofPath.framed), now: StoreInstant(question.now))
        return found.map { !$0.isEmpty } ?? true
    }
}

/// What a call has looked up already: a second lookup would count as another one.
struct KnownEntries: Sendable {
    private typealias Known = (key: StoreKey, entries: [StoredEntry])

    // Most calls look up one key, and a list would be an allocation.
    private var first: Known?
    private var others: [Known] = []
    /// How many fetches of the cache had ended before.
    var completions: UInt64 = 0

    var isEmpty: Bool { first == nil }

    mutating func add(_ entries: [StoredEntry], for key: StoreKey) {
        let known = (key: key, entries: entries)
        if first == nil { first = known } else { others.append(known) }
    }

    /// What was found for a key; nil if it was not looked up.
    func entries(for key: StoreKey) -> [StoredEntry]? {
        first?.key == key ? first?.entries : others.first { $0.key == key }?.entries
    }
}

/// The target of a plain request, and the rule for it.
private struct PlainTarget {
    /// The target in the keys of what is stored for it; at first as it is spelled in the request.
    private(set) var text: String
    /// What the rule's key fields add.
    let contentType: String
    /// The number of the rule that determines the keys; −1 if there is none.
    let rule: Int

    /// Nil if the target needs the full decision.
    ///
    /// - Parameter spelled: as it is spelled in the request. The targets of keys are canonical, so that nothing is found for another
    ///   spelling, and what is found proves that this one is canonical.
    init?(_ spelled: String, in cache: HTTPCache, fields: [String: String], implicit: HeaderFields) {
        let options = cache.options
        guard options.mayChangeKeys else {
            (text, contentType, rule) = (spelled, "", -1)
            return
        }
        guard let target = try? TargetURI(spelled), target.userinfo == nil, !options.neverStores(target) else {
            return nil
        }
        (text, rule) = (options.keyTarget(of: target).canonical, options.keyRuleIndex(for: target))
        guard options.hasKeyFields else {
            contentType = ""
            return
        }
        let presented = cache.view(of: implicit.merging(HeaderFields(fields)), to: target)
        contentType = options.keyFieldText(of: presented, to: target, secret: cache.store.secret)
    }

    /// Brings the target into canonical form.
    ///
    /// - Returns: whether it was in another one.
    mutating func canonicalize() -> Bool {
        guard let target = try? TargetURI(text), target.userinfo == nil, target.canonical != text else { return false }
        text = target.canonical
        return true
    }

    func key(of principal: String) -> StoreKey {
        StoreKey(CacheKey.framed(partition: principal, ofGet: text, contentType: contentType))
    }
}

extension ResponseFacts {
    /// The time that a hit saves its caller.
    fileprivate var savedTime: Duration {
        let delay = requestTime.millisecondsUntil(responseTime)
        return .milliseconds(max(0, min(delay, CallMetrics.longestDelayMilliseconds)))
    }
}

/// The entry that a fresh hit came from, in case the caller rejects it.
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

/// The digests of principals by a keyed hash of their credentials, so that each is computed once and no credential is kept.
///
/// Each stripe of threads has its own, and looks elsewhere for what it does not have, so that threads contend less.
final class PartitionNames: Sendable {
    private struct Place: Sendable {
        let credentials: KeyedHash.Wide
        let rule: Int
        /// The store's secret, which the name depends on; processes that share a store may adopt another.
        let secret: [UInt8]
        let name: String
    }

    private final class Stripe: Sendable {
        /// Empty until the first credential comes.
        let places = Mutex<[Place?]>([])
    }

    private static let placesPerStripe = 512

    private let hash: KeyedHash
    private let stripes: [Stripe]

    /// - Parameter count: how many stripes there are.
    init(stripes count: Int = 2) {
        var random = SystemRandomNumberGenerator()
        hash = KeyedHash(keys: (random.next(), random.next()))
        stripes = (0..<max(1, count)).map { _ in Stripe() }
    }

    /// The digest of a principal, which `make` computes if it is not known; "" without credentials.
    ///
    /// - Parameters:
    ///   - explicit: a name that the call gives the principal in place of its credentials.
    ///   - rule: the number of the rule by which cookies are ignored.
    ///   - secret: the store's.
    ///   - stripe: the caller's, one of those of ``CacheMeter``.
    func name(
        of fields: PlainRequestFields,
        explicit: String?,
        rule: Int,
        secret: @autoclosure () -> [UInt8],
        stripe: Int,
        make: (_ secret: [UInt8]) -> String
    ) -> String {
        guard let credentials = hashed(fields, explicit: explicit) else { return "" }
        let secret = secret()
        if let known = name(of: credentials, rule: rule, secret: secret, stripe: stripe) { return known }
        let place = Place(credentials: credentials, rule: rule, secret: secret, name: make(secret))
        stripes[stripe % stripes.count].places.withLock { places in
            if places.isEmpty { places = [Place?](repeating: nil, count: Self.placesPerStripe) }
            places[Self.index(credentials)] = place
        }
        return place.name
    }

    /// The digest of a principal if it is known; "" without credentials.
    func name(
        of fields: PlainRequestFields,
        explicit: String?,
        rule: Int,
        secret: @autoclosure () -> [UInt8],
        stripe: Int
    ) -> String? {
        guard let credentials = hashed(fields, explicit: explicit) else { return "" }
        return name(of: credentials, rule: rule, secret: secret(), stripe: stripe)
    }

    private func name(of credentials: KeyedHash.Wide, rule: Int, secret: [UInt8], stripe: Int) -> String? {
        for number in stripe..<stripe + stripes.count {
            let name: String? = stripes[number % stripes.count].places.withLock { places in
                guard !places.isEmpty, let place = places[Self.index(credentials)],
                    place.credentials == credentials, place.rule == rule, place.secret == secret
                else { return nil }
                return place.name
            }
            if let name { return name }
        }
        return nil
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
