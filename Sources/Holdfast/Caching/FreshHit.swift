// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Fresh hits of plain requests: a GET without content, conditions, range and directives of the caller, for which one whole response
/// is stored that certainly has the request's nominated values and is fresh.
///
/// They are judged by the facts that are stored with the response (``ResponseFacts``), and nothing is decoded. The result is always
/// that of the full judgement; if anything is in doubt, that decides, about the entries that were found here.
extension CachingHook {
    /// The answer to a plain request, if it is a fresh hit.
    ///
    /// - Parameter found: gets what was looked up.
    func freshAnswer(
        to request: URLRequest,
        history: LookupHistory,
        context: inout CallContext,
        found: inout KnownEntries
    ) -> Response? {
        guard !context.options.concernReuse, context.body.isNone, context.fieldsOfHooks(in: request).isEmpty,
            let hit = freshHit(
                for: request,
                principal: context.options.principal,
                history: history,
                clock: context.clock,
                transport: context.transport,
                found: &found
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
    ///   - found: gets what was looked up.
    func freshHit(
        for request: URLRequest,
        principal explicit: String?,
        history: LookupHistory,
        clock: any HoldfastClock,
        transport: any Transport,
        found: inout KnownEntries
    ) -> (response: Response, entry: StoredEntry)? {
        guard cache.answersFreshHits, let url = request.url, request.httpMethod == "GET",
            request.cachePolicy == .useProtocolCachePolicy, !cache.recording.isUnderWay,
            !cache.writer.hasPendingInvalidations
        else { return nil }
        let fields = request.allHTTPHeaderFields ?? [:]
        let implicit = transport.implicitFields(for: request)
        guard let plain = PlainRequestFields(fields, implicit: implicit), plain.arePlain,
            var target = PlainTarget(url.absoluteString, cache, fields, implicit: implicit),
            let principal = cache.partitions.name(
                of: plain,
                explicit: explicit,
                rule: target.rule,
                stripe: history.stripe
            )
        else { return nil }
        let now = clock.timestamp
        guard var own = cache.peek(target, of: principal, now: now, found: &found) else { return nil }
        if own.isEmpty, target.canonicalize() {
            guard let canonical = cache.peek(target, of: principal, now: now, found: &found) else { return nil }
            own = canonical
        }
        let mayBorrow = cache.options.cookiesMayBorrow && explicit == nil && plain.authorization == nil
        let isShared = cache.options.mode == .shared
        var entries = own
        if !principal.isEmpty, isShared || mayBorrow {
            guard let others = cache.peek(target, of: "", now: now, found: &found) else { return nil }
            guard own.isEmpty || others.isEmpty else { return nil }
            if own.isEmpty { entries = others }
        }
        guard
            let (entry, head) = EntryHead.selected(
                among: entries,
                fields,
                implicit: implicit,
                areCredentialsEqual: !own.isEmpty && !principal.isEmpty && explicit == nil
            )
        else { return nil }
        let metadata = entry.description.metadata
        guard !entry.needsValidation, entry.version != .beingWritten, !head.needsConfirmation,
            head.facts.targetsHash == cache.targetsHash,
            // A redirect is followed above, where an answer without a call never arrives.
            !head.facts.status.isRedirection,
            let stored = head.fields(in: metadata),
            let ruled = target.ruled(cache.options, head: head, in: metadata, fields: stored),
            !own.isEmpty || principal.isEmpty || isShared || head.facts.mayAnswerCookies(ruled),
            let standing = head.facts.standing(now: now, for: plain.cacheControl, options: ruled),
            let body = cache.store.peekBody(of: entry)
        else { return nil }
        cache.meter.hit(
            from: CountedOrigin(canonical: target.key, originLength: TargetURI.originLength(ofCanonical: target.key)),
            in: history.begun.minute,
            stripe: history.stripe,
            bytes: body.count,
            saved: head.facts.savedTime
        )
        let decision = CacheDecision(.hit, reason: .fresh, age: standing.age, freshnessLeft: standing.freshnessLeft)
        var answer = head.facts.answerFields(stored, now: now)
        CacheStatusField(cache.options, isStale: false)?.append(to: &answer, decision, key: "GET \(target.key)")
        let response = Response(
            head.facts,
            fields: answer,
            body: body,
            to: request,
            url: url,
            implicit: implicit,
            decision: decision
        )
        return (response, entry)
    }
}

extension HTTPCache {
    /// What is stored for a GET of a principal, as far as it is in memory.
    ///
    /// - Returns: nil also if a response for another query may answer (No-Vary-Search).
    fileprivate func peek(
        _ target: PlainTarget,
        of principal: String,
        now: Timestamp,
        found: inout KnownEntries
    ) -> [StoredEntry]? {
        func known(_ framed: [UInt8]) -> [StoredEntry]? {
            let key = StoreKey(framed)
            guard let entries = store.peek(key, now: StoreInstant(now)) else { return nil }
            found.add(entries, for: key)
            return entries
        }
        let framed = CacheKey.framed(partition: principal, ofGet: target.key, contentType: target.contentType)
        guard let entries = known(framed) else { return nil }
        guard holdsSearchVariance else { return entries }
        guard let uri = try? TargetURI(target.key),
            let keys = SearchVarianceKeys(
                CacheKey(partition: principal, method: .get, target: uri, contentType: target.contentType)
            ),
            known(keys.ofPath.framed)?.isEmpty ?? false
        else { return nil }
        return entries
    }
}

/// What a call has looked up already: a second lookup would count as another one.
struct KnownEntries: Sendable {
    private struct Known: Sendable {
        let key: StoreKey
        let entries: [StoredEntry]
    }

    // Most calls look up one key, and a list would be an allocation.
    private var first: Known?
    private var others: [Known] = []

    var isEmpty: Bool { first == nil }

    mutating func add(_ entries: [StoredEntry], for key: StoreKey) {
        let known = Known(key: key, entries: entries)
        if first == nil { first = known } else { others.append(known) }
    }

    /// What was found for a key; nil if it was not looked up.
    func entries(for key: StoreKey) -> [StoredEntry]? {
        guard let first else { return nil }
        return first.key == key ? first.entries : others.first { $0.key == key }?.entries
    }
}

/// The target of a plain request, and the rule for it.
private struct PlainTarget {
    /// The target in the keys of what is stored for it; at first as it is spelled in the request.
    private(set) var key: String
    /// What the rule's key fields add.
    let contentType: String
    /// The number of the rule that determines the keys; −1 if there is none.
    let rule: Int

    /// Nil if the target needs the full judgement.
    ///
    /// - Parameter text: as it is spelled in the request. The targets of keys are canonical, so that nothing is found for another
    ///   spelling, and what is found proves that this one is canonical.
    init?(_ text: String, _ cache: HTTPCache, _ fields: [String: String], implicit: HeaderFields) {
        let options = cache.options
        guard options.mayChangeKeys else {
            (key, contentType, rule) = (text, "", -1)
            return
        }
        guard let target = try? TargetURI(text), target.userinfo == nil, !options.neverStores(target) else {
            return nil
        }
        (key, rule) = (options.keyTarget(of: target).canonical, options.keyRuleIndex(for: target))
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
        guard let target = try? TargetURI(key), target.userinfo == nil, target.canonical != key else { return false }
        key = target.canonical
        return true
    }

    /// The options by which a stored response is judged; nil if its own target cannot be read.
    func ruled(_ options: CacheOptions, head: EntryHead, in metadata: ByteChunk, fields: HeaderFields) -> CacheOptions?
    {
        guard options.hasRules else { return options }
        let text = metadata.withUnsafeBytes { String(decoding: $0[head.target], as: UTF8.self) }
        guard let target = try? TargetURI(text) else { return nil }
        return options.ruled(for: target, fields: fields)
    }
}

extension EntryHead {
    /// The only entry that certainly has the request's nominated values; nil if it is not certain which one that is.
    fileprivate static func selected(
        among entries: [StoredEntry],
        _ fields: [String: String],
        implicit: HeaderFields,
        areCredentialsEqual: Bool
    ) -> (StoredEntry, EntryHead)? {
        var selected: (StoredEntry, EntryHead)?
        for entry in entries {
            let metadata = entry.description.metadata
            guard let head = EntryHead(metadata), head.isWholeGet else { return nil }
            let isSelected = metadata.withUnsafeBytes { bytes in
                head.hasNominated(in: bytes, fields, implicit: implicit, areCredentialsEqual: areCredentialsEqual)
            }
            guard isSelected else { continue }
            if selected != nil { return nil }
            selected = (entry, head)
        }
        // Variants with the same names have different values, so that a request has those of one at most.
        guard let selected, entries.count == 1 || entries.allSatisfy({ $0.nominates(like: selected.0) }) else {
            return nil
        }
        return selected
    }

    /// Whether a request certainly has the values that the response nominates.
    ///
    /// - Parameter bytes: the metadata that this was read from.
    fileprivate func hasNominated(
        in bytes: UnsafeRawBufferPointer,
        _ fields: [String: String],
        implicit: HeaderFields,
        areCredentialsEqual: Bool
    ) -> Bool {
        if nominated.isEmpty { return true }
        return !written.isEmpty
            && NominatedFields.matches(
                written: UnsafeRawBufferPointer(rebasing: bytes[written]),
                fields,
                implicit: implicit,
                areCredentialsEqual: areCredentialsEqual
            )
    }
}

extension StoredEntry {
    /// Whether both responses nominate the same fields.
    fileprivate func nominates(like other: StoredEntry) -> Bool {
        func names(_ entry: StoredEntry) -> [String]? {
            NominatedFields(framed: entry.variant.bytes)?.names
        }
        return version == other.version || names(self).map { $0 == names(other) } ?? false
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
