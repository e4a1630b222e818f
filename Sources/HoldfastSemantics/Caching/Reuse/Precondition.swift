// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The caller's own conditional request, answered by a cache (RFC 9111 §4.3.2, RFC 9110 §13).
public enum Precondition {
    /// What becomes of a request that a stored response could answer.
    public enum Outcome: Sendable, Hashable {
        /// The caller holds what is stored: answer ``Precondition/notModifiedHead(for:now:)`` and no content.
        case notModified
        /// Answer from the stored response; a Range is judged next (RFC 9110 §13.2.2).
        case full
        /// The condition is the origin's to judge: send the request as it came.
        case forward
    }

    /// What a 304 from the origin means to a caller who sent conditions of its own.
    public enum ValidationAnswer: Sendable, Hashable {
        /// Freshen this candidate and answer 304 from it.
        case notModified(candidate: Int)
        /// Freshen this candidate and answer with its content, as ``Outcome/full`` does.
        case full(candidate: Int)
        /// The 304 speaks of what the caller holds and nothing that is stored: hand it up, freshen nothing.
        case relay
        /// The 304 does not say whose response still holds: send the request again with the caller's own fields only.
        case resend
    }

    /// Judges the caller's preconditions against a stored response that is fresh or was validated just now.
    ///
    /// If-None-Match goes before If-Modified-Since (RFC 9110 §13.2.2) and compares weakly; one that cannot be read
    /// matches nothing. If-Modified-Since counts once only and is held against Last-Modified, else Date, else the time
    /// of receipt. If-Match and If-Unmodified-Since are not a cache's to judge. Statuses other than 200 and 206 know no
    /// preconditions (RFC 9110 §13.2.1).
    ///
    /// - Parameters:
    ///   - request: the caller's request.
    ///   - stored: the response selected for it; it need not have a validator.
    ///   - now: the time of the request, for dates with two-digit years.
    /// - Returns: the outcome; costs one pass over the fields and the tags.
    public static func evaluate(request: RequestHead, stored: StoredResponse, now: Timestamp) -> Outcome {
        let fields = request.fields
        if fields.contains(.ifMatch) || fields.contains(.ifUnmodifiedSince) { return .forward }
        guard request.method == .get || request.method == .head || request.method == .query else {
            // What stands under the content of a POST answers it whole; conditions of its own are not a cache's.
            return fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince) ? .forward : .full
        }
        guard stored.head.status == .ok || stored.head.status == .partialContent else { return .full }
        if let value = fields[.ifNoneMatch] {
            switch EntityTag.list(value) {
            case .any: return .notModified
            case .tags(let tags):
                guard let tag = stored.entityTag else { return .full }
                return tags.contains { $0.weakMatches(tag) } ? .notModified : .full
            case nil: return .full
            }
        }
        guard let since = ResponseHead.date(of: .ifModifiedSince, in: fields, receivedAt: now) else { return .full }
        let modified = stored.lastModified?.timestamp ?? HTTPDate(stored.date).timestamp
        return modified <= since.timestamp ? .notModified : .full
    }

    /// The head of the 304 that stands for a stored response (RFC 9110 §15.4.5).
    ///
    /// - Parameters:
    ///   - stored: the response the caller holds too.
    ///   - now: the time of the answer.
    /// - Returns: the fields a 200 would have had among Cache-Control, Content-Location, Date, ETag, Expires and Vary,
    ///   with the current Age; Last-Modified only where there is no ETag, since it then guides the caller's update.
    public static func notModifiedHead(for stored: StoredResponse, now: Timestamp) -> ResponseHead {
        let answer = stored.responseHead(now: now)
        var kept = kept
        if !answer.fields.contains(.eTag) { kept.insert(.lastModified) }
        return ResponseHead(
            status: .notModified,
            fields: HeaderFields(answer.fields.filter { kept.contains($0.name) })
        )
    }

    /// The conditions to send when stored responses must be validated for a caller with conditions of its own
    /// (RFC 9111 §4.3.1, §4.3.2).
    ///
    /// - Parameters:
    ///   - caller: the caller's fields.
    ///   - candidates: the selected response first, then further variants. One that holds only a part belongs here only
    ///     if the request is for a range within that part (RFC 9111 §4.3.2).
    /// - Returns: If-None-Match and If-Modified-Since in place of the caller's, in one list: the union of all entity
    ///   tags where the caller sent tags, the caller's own fields where it sent `*` or nothing stored has what it
    ///   compares by, else what ``Validation/conditionalFields(for:)`` gives. The caller's date gives way to the stored
    ///   validators; it is judged when the answer came.
    public static func mergedConditionalFields(
        caller: HeaderFields,
        candidates: [StoredResponse]
    ) -> HeaderFields {
        let own = Validation.conditionalFields(for: candidates)
        let asSent = HeaderFields(caller.filter { $0.name == .ifNoneMatch || $0.name == .ifModifiedSince })
        switch callerTags(caller) {
        case nil:
            return own.isEmpty ? asSent : own
        case .any:
            return asSent
        case .tags(let tags):
            let stored = storedTags(candidates)
            if stored.isEmpty { return asSent }
            // If-None-Match compares weakly, so a tag's weak form says nothing new.
            var known = Set(stored.map(\.opaqueTag))
            let added = tags.filter { known.insert($0.opaqueTag).inserted }
            // A date beside foreign tags would leave open which of the two a 304 went by.
            if added.isEmpty { return own }
            return [.ifNoneMatch: (stored + added).map(\.description).joined(separator: ", ")]
        }
    }

    /// What the caller is told after the origin answered 304 to the merged conditions (RFC 9111 §4.3.2, §4.3.4).
    ///
    /// Any other status is the caller's answer as it is; a new 200 may be judged by ``evaluate(request:stored:now:)``
    /// once more, since the caller's date may be later than the one that was sent.
    ///
    /// - Parameters:
    ///   - notModified: the 304's head.
    ///   - request: the caller's request, as it came.
    ///   - candidates: the responses that were offered to ``mergedConditionalFields(caller:candidates:)``, in that
    ///     order.
    ///   - now: when the 304 came.
    /// - Returns: the answer; indexes are into `candidates`.
    public static func answer(
        to notModified: ResponseHead,
        request: RequestHead,
        candidates: [StoredResponse],
        now: Timestamp
    ) -> ValidationAnswer {
        let tags = callerTags(request.fields)
        if let unclear = unclearAnswer(to: notModified, callerTags: tags, candidates: candidates) { return unclear }
        guard let index = Validation.selected(by: notModified, among: candidates) else {
            return isCallers(notModified, callerTags: tags, candidates: candidates) ? .relay : .resend
        }
        guard request.isConditionalOrPartial else { return .full(candidate: index) }
        let freshened = candidates[index].freshened(
            by: notModified,
            requestTime: now,
            responseTime: now,
            mode: .private
        )
        return switch evaluate(request: request, stored: freshened, now: now) {
        case .notModified: .notModified(candidate: index)
        case .full: .full(candidate: index)
        case .forward: .relay
        }
    }

    /// The answer to a 304 without a tag where the caller's tags were sent: it does not tell which of them matched.
    private static func unclearAnswer(
        to notModified: ResponseHead,
        callerTags: EntityTagList?,
        candidates: [StoredResponse]
    ) -> ValidationAnswer? {
        guard notModified.entityTag == nil, let callerTags else { return nil }
        guard case .tags(let tags) = callerTags else { return .relay }
        let stored = Set(storedTags(candidates).map(\.opaqueTag))
        let caller = Set(tags.map(\.opaqueTag))
        if caller == stored, candidates.count == 1 { return nil }
        return stored.isSubset(of: caller) ? .relay : .resend
    }

    /// Whether a 304 that fits no candidate can be meant for the caller.
    private static func isCallers(
        _ notModified: ResponseHead,
        callerTags: EntityTagList?,
        candidates: [StoredResponse]
    ) -> Bool {
        switch callerTags {
        case nil:
            return Validation.conditionalFields(for: candidates).isEmpty
        case .any:
            return true
        case .tags(let tags):
            guard let tag = notModified.entityTag else { return false }
            return tags.contains { $0.weakMatches(tag) }
        }
    }

    private static func callerTags(_ fields: HeaderFields) -> EntityTagList? {
        fields[.ifNoneMatch].flatMap { EntityTag.list($0) }
    }

    /// The tags as the origin spelled them, each once; decoding weakens what a tag says of our bytes, not of the
    /// origin's.
    private static func storedTags(_ candidates: [StoredResponse]) -> [EntityTag] {
        var known: Set<EntityTag> = []
        return candidates.compactMap(\.head.entityTag).filter { known.insert($0).inserted }
    }

    private static let kept: Set<FieldName> = [
        .age, .cacheControl, .contentLocation, .date, .eTag, .expires, .vary,
    ]
}

/// Asking the origin whether what is stored still holds (RFC 9111 §4.3).
public enum Validation {
    /// The fields that make a request conditional on stored responses (RFC 9111 §4.3.1).
    ///
    /// - Parameter candidates: the selected response first, then further variants.
    /// - Returns: If-None-Match with all entity tags, each once, in the spelling they came in; If-Modified-Since with the
    ///   first candidate's date. Empty when there is no validator.
    public static func conditionalFields(for candidates: [StoredResponse]) -> HeaderFields {
        var fields = HeaderFields()
        var known: Set<EntityTag> = []
        let tags = candidates.compactMap(\.head.entityTag).filter { known.insert($0).inserted }.map(\.description)
        if !tags.isEmpty { fields.append(.ifNoneMatch, tags.joined(separator: ", ")) }
        if let first = candidates.first, first.lastModified != nil,
            let value = first.head.fields[.lastModified]
        {
            fields.append(.ifModifiedSince, value)
        }
        return fields
    }

    /// Which stored response a 304 speaks of (RFC 9111 §4.3.3, §4.3.4).
    ///
    /// A strong validator in the 304 must match a stored one strongly; where none does, or the validator is weak, the
    /// weak comparison decides, since that is how the origin compared. Without any validator it can only mean the one
    /// candidate there was. Tags count as they came, decoded content or not: a 304 freshens fields, not bytes.
    ///
    /// - Parameters:
    ///   - notModified: the 304's head.
    ///   - candidates: the responses that were offered, the selected one first.
    /// - Returns: an index into `candidates`; nil when the 304 fits none, and the request must be sent unconditionally.
    public static func selected(by notModified: ResponseHead, among candidates: [StoredResponse]) -> Int? {
        if let tag = notModified.entityTag {
            let strong = candidates.firstIndex { $0.head.entityTag?.strongMatches(tag) ?? false }
            return strong ?? candidates.firstIndex { $0.head.entityTag?.weakMatches(tag) ?? false }
        }
        if notModified.fields.contains(.lastModified), candidates.count > 1 {
            guard let received = candidates.first?.responseTime,
                let date = notModified.lastModified(receivedAt: received)
            else { return nil }
            return candidates.firstIndex { $0.lastModified == date }
        }
        guard let only = candidates.first, candidates.count == 1 else { return nil }
        guard notModified.fields.contains(.lastModified) else { return 0 }
        return notModified.lastModified(receivedAt: only.responseTime) == only.lastModified ? 0 : nil
    }
}
