// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The caller's own conditional request, answered by a cache (RFC 9111 §4.3.2, RFC 9110 §13).
package enum Precondition {
    /// What to do with a conditional request that a stored response could answer.
    package enum Outcome: Sendable, Hashable {
        /// The caller has what is stored: answer ``Precondition/notModifiedHead(for:now:)`` without content.
        case notModified
        /// Answer from the stored response; evaluate Range next (RFC 9110 §13.2.2).
        case full
        /// Only the origin can evaluate the condition: send the request in its original form.
        case forward
    }

    /// What a 304 from the origin means for a caller who sent conditions.
    package enum ValidationAnswer: Sendable, Hashable {
        /// Freshen this candidate and answer 304 from it.
        case notModified(candidate: Int)
        /// Freshen this candidate and answer with its content, as ``Outcome/full`` does.
        case full(candidate: Int)
        /// The 304 is about what the caller has, not about what is stored: return it, and freshen nothing.
        case relay
        /// The 304 does not say which response is still valid: send the request again with only the caller's own fields.
        case resend
    }

    /// Evaluates the caller's preconditions against a stored response that is fresh or has just been validated.
    ///
    /// If-None-Match takes precedence over If-Modified-Since (RFC 9110 §13.2.2) and compares weakly; one that cannot be parsed
    /// matches nothing. If-Modified-Since counts only if it is not repeated, and is compared with Last-Modified, else Date, else
    /// the time of receipt. A cache does not evaluate If-Match and If-Unmodified-Since. Preconditions do not apply to statuses
    /// other than 200 and 206 (RFC 9110 §13.2.1).
    ///
    /// - Parameters:
    ///   - request: the caller's request.
    ///   - stored: the response selected for it; it need not have a validator.
    ///   - now: the time of the request, for dates with two-digit years.
    /// - Returns: the outcome; costs one pass over the fields and the tags.
    package static func evaluate(request: RequestHead, stored: StoredResponse, now: Timestamp) -> Outcome {
        let fields = request.fields
        if fields.contains(.ifMatch) || fields.contains(.ifUnmodifiedSince) { return .forward }
        guard request.method == .get || request.method == .head || request.method == .query else {
            // What is stored under the content of a POST answers it completely; a cache does not evaluate conditions for it.
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

    /// The head of the 304 for a stored response (RFC 9110 §15.4.5).
    ///
    /// - Parameters:
    ///   - stored: the response that the caller has too.
    ///   - now: the time of the answer.
    /// - Returns: the fields that a 200 would have had among Cache-Control, Content-Location, Date, ETag, Expires and Vary, with
    ///   the current Age; Last-Modified only without an ETag, since the caller's update then needs it.
    package static func notModifiedHead(for stored: StoredResponse, now: Timestamp) -> ResponseHead {
        let answer = stored.responseHead(now: now)
        var kept = kept
        if !answer.fields.contains(.eTag) { kept.insert(.lastModified) }
        return ResponseHead(
            status: .notModified,
            fields: HeaderFields(answer.fields.filter { kept.contains($0.name) })
        )
    }

    /// The conditions to send when stored responses must be validated for a caller who sent conditions (RFC 9111 §4.3.1, §4.3.2).
    ///
    /// - Parameters:
    ///   - caller: the caller's fields.
    ///   - candidates: the selected response first, then further variants. Include one that has only a part only if the request is
    ///     for a range within that part (RFC 9111 §4.3.2).
    /// - Returns: If-None-Match and If-Modified-Since to use instead of the caller's. If the caller sent tags, this is the union of
    ///   all entity tags. If it sent `*`, or if nothing stored has what it compares, these are the caller's own fields. Otherwise,
    ///   they are those of ``Validation/conditionalFields(for:)``. The stored validators replace the caller's date, which is
    ///   evaluated after the answer has arrived.
    package static func mergedConditionalFields(
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
            // If-None-Match compares weakly, so the weak form of a tag adds nothing.
            var known = Set(stored.map(\.opaqueTag))
            let added = tags.filter { known.insert($0.opaqueTag).inserted }
            // With a date beside other tags, it would be unknown which of the two a 304 is based on.
            if added.isEmpty { return own }
            return [.ifNoneMatch: (stored + added).map(\.description).joined(separator: ", ")]
        }
    }

    /// What to answer the caller after the origin has answered 304 to the merged conditions (RFC 9111 §4.3.2, §4.3.4).
    ///
    /// A response with any other status is the caller's answer as it is. A new 200 may be passed to
    /// ``evaluate(request:stored:now:)`` again, since the caller's date may be later than the one that was sent.
    ///
    /// - Parameters:
    ///   - notModified: the 304's head.
    ///   - request: the caller's request in its original form.
    ///   - candidates: the responses that were passed to ``mergedConditionalFields(caller:candidates:)``, in that order.
    ///   - now: when the 304 arrived.
    /// - Returns: the answer; indexes are into `candidates`.
    package static func answer(
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

    /// The answer to a 304 without a tag if the caller's tags were sent: it does not say which of them matched.
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

    /// Whether a 304 that matches no candidate can be about what the caller has.
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

    /// The tags in the origin's spelling, each once; decoding weakens what a tag says about our bytes, not about the origin's.
    private static func storedTags(_ candidates: [StoredResponse]) -> [EntityTag] {
        var known: Set<EntityTag> = []
        return candidates.compactMap(\.head.entityTag).filter { known.insert($0).inserted }
    }

    private static let kept: Set<FieldName> = [
        .age, .cacheControl, .contentLocation, .date, .eTag, .expires, .vary,
    ]
}

/// Asking the origin whether stored responses are still valid (RFC 9111 §4.3).
public enum Validation {
    /// The fields that make a request conditional on stored responses (RFC 9111 §4.3.1).
    ///
    /// - Parameter candidates: the selected response first, then further variants.
    /// - Returns: If-None-Match with all entity tags, each once, in their original spelling; If-Modified-Since with the first
    ///   candidate's date. Empty if there is no validator.
    public static func conditionalFields(for candidates: [StoredResponse]) -> HeaderFields {
        var fields = HeaderFields()
        var known: Set<EntityTag> = []
        let tags = candidates.compactMap(\.head.entityTag).filter { known.insert($0).inserted }.map(\.description)
        if !tags.isEmpty { fields.append(.ifNoneMatch, tags.joined(separator: ", ")) }
        if let first = candidates.first, first.head.status.isSuccessful, first.lastModified != nil,
            let value = first.head.fields[.lastModified]
        {
            fields.append(.ifModifiedSince, value)
        }
        return fields
    }

    /// The stored response that a 304 is about (RFC 9111 §4.3.3, §4.3.4).
    ///
    /// A strong validator in the 304 must match a stored one strongly. If none does, or if the validator is weak, the weak
    /// comparison decides, since the origin compared weakly too. Without any validator, the 304 can only be about the single
    /// candidate. Tags count in their original form, even of decoded content: a 304 freshens fields, not bytes.
    ///
    /// - Parameters:
    ///   - notModified: the 304's head.
    ///   - candidates: the responses that were offered, the selected one first.
    /// - Returns: an index into `candidates`; nil if the 304 matches none, so that the request must be sent unconditionally.
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
