// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A response as a cache stores it, without its content.
///
/// What decisions about freshness need is read once, when the value is made.
public struct StoredResponse: Sendable, Hashable {
    /// What never changes, behind one reference, since candidates are copied often.
    private let reading: Reading

    /// Why the origin must confirm it before it is used again, even if it is fresh; nil if it need not.
    package private(set) var confirmationReason: CacheReason?

    /// Which bytes of its content are stored, if some may be missing; nil: all (RFC 9111 §3.3).
    package var ranges: StoredRanges?

    /// The order of its request among all requests of the cache: a later request is more recent, whatever the clock said.
    /// ``Admission`` sets it; by default it follows from ``requestTime``.
    package var requestOrder: HybridTimestamp

    /// The target URI of its request.
    public var target: TargetURI { reading.target }

    /// The method of its request.
    public var method: RequestMethod { reading.method }

    /// The request values that its Vary nominates.
    public var nominated: NominatedFields { reading.nominated }

    /// Status and fields, stripped of the fields that are not stored (RFC 9111 §3.1).
    public var head: ResponseHead { reading.head }

    /// When its request was sent.
    public var requestTime: Timestamp { facts.requestTime }

    /// When its head arrived.
    public var responseTime: Timestamp { facts.responseTime }

    /// Whether the transport decoded a content coding, so that the bytes are not those that the origin tagged.
    public var contentDecoded: Bool { facts.contentDecoded }

    /// The lifetime in seconds that the call gave it because the server gave none; nil if the call gave none either.
    public var givenLifetime: Int64? { facts.givenLifetime }

    /// The targeted fields that replace its Cache-Control and Expires if it has one of them.
    public var targetedFields: [FieldName] { reading.targetedFields }

    /// Its Cache-Control, or the targeted field in its place (RFC 9213 §2.2); parsed on each access.
    public var cacheControl: CacheControl {
        RulingCacheControl(head.fields, targets: targetedFields).cacheControl
    }

    /// Its entity tag; weak if the content was decoded, nil if missing, malformed or repeated. Parsed on each access.
    public var entityTag: EntityTag? {
        guard facts.flags.contains(.entityTag) else { return nil }
        return contentDecoded ? head.entityTag?.weakened : head.entityTag
    }

    /// Its Last-Modified; nil if missing, malformed or repeated.
    public var lastModified: HTTPDate? { facts.lastModified.map { HTTPDate($0) } }

    /// When the origin created it: its Date, or the time of receipt without one (RFC 9110 §6.6.1).
    public var date: Timestamp { facts.date }

    /// What its age and lifetime depend on.
    package var facts: ResponseFacts { reading.facts }

    /// Creates a stored response; costs one reading of the fields.
    ///
    /// - Parameters:
    ///   - target: the target URI of its request.
    ///   - method: the method of its request; `GET` by default.
    ///   - nominated: what its Vary nominates; nothing by default.
    ///   - head: status and fields, already stripped for storage.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the head arrived.
    ///   - contentDecoded: whether a content coding was decoded; false by default.
    ///   - givenLifetime: the call's ``CacheDirective/lifetime`` in seconds; negative counts as 0, nil by default.
    ///   - needsConfirmation: whether a person marked it, so that the origin must confirm it before it is used again; false by
    ///     default.
    ///   - targetedFields: the cache's target list (RFC 9213 §2.2); empty by default.
    public init(
        target: TargetURI,
        method: RequestMethod = .get,
        nominated: NominatedFields = NominatedFields(),
        head: ResponseHead,
        requestTime: Timestamp,
        responseTime: Timestamp,
        contentDecoded: Bool = false,
        givenLifetime: Int64? = nil,
        needsConfirmation: Bool = false,
        targetedFields: [FieldName] = []
    ) {
        reading = Reading(
            target: target,
            method: method,
            nominated: nominated,
            head: head,
            targetedFields: targetedFields,
            facts: ResponseFacts(
                head,
                requestTime: requestTime,
                responseTime: responseTime,
                contentDecoded: contentDecoded,
                givenLifetime: givenLifetime,
                targetedFields: targetedFields
            )
        )
        confirmationReason = needsConfirmation ? .softPurged : nil
        requestOrder = HybridTimestamp(requestTime)
    }

    /// A response that was stored with its facts.
    ///
    /// - Parameter facts: those of the head; with another target list than this one, the fields are read again.
    package init(
        _ facts: ResponseFacts,
        target: TargetURI,
        method: RequestMethod,
        nominated: NominatedFields,
        fields: HeaderFields,
        needsConfirmation: Bool,
        targetedFields: [FieldName]
    ) {
        let head = ResponseHead(status: facts.status, fields: fields)
        reading = Reading(
            target: target,
            method: method,
            nominated: nominated,
            head: head,
            targetedFields: targetedFields,
            facts: facts.targetsHash == ResponseFacts.hash(targetedFields)
                ? facts
                : ResponseFacts(
                    head,
                    requestTime: facts.requestTime,
                    responseTime: facts.responseTime,
                    contentDecoded: facts.contentDecoded,
                    givenLifetime: facts.givenLifetime,
                    targetedFields: targetedFields,
                    hasWeakDate: facts.flags.contains(.weakDate)
                )
        )
        confirmationReason = needsConfirmation ? .softPurged : nil
        requestOrder = HybridTimestamp(facts.requestTime)
    }

    /// This response under other nominated values, for a Vary that an update brought.
    func nominating(_ nominated: NominatedFields) -> StoredResponse {
        var filed = StoredResponse(
            facts,
            target: target,
            method: method,
            nominated: nominated,
            fields: head.fields,
            needsConfirmation: needsConfirmation,
            targetedFields: targetedFields
        )
        (filed.confirmationReason, filed.ranges, filed.requestOrder) = (confirmationReason, ranges, requestOrder)
        return filed
    }

    /// Whether the origin must confirm it before it is used again, even if it is fresh.
    public var needsConfirmation: Bool { confirmationReason != nil }

    /// This response, marked by a person so that the origin must confirm it before it is used again (RFC 9111 §4.4: "invalidate").
    package var needingConfirmation: StoredResponse { needingConfirmation(.softPurged) }

    /// This response, marked so that the origin must confirm it before it is used again.
    ///
    /// - Parameter reason: why; it replaces an earlier reason.
    package func needingConfirmation(_ reason: CacheReason) -> StoredResponse {
        var marked = self
        marked.confirmationReason = reason
        return marked
    }

    /// Whether the origin can be asked to validate it (RFC 9111 §4.3.1).
    package var hasValidator: Bool { facts.hasValidator }

    /// Whether both are the same response, read in the same way.
    public static func == (left: StoredResponse, right: StoredResponse) -> Bool {
        left.confirmationReason == right.confirmationReason && left.ranges == right.ranges
            && left.requestOrder == right.requestOrder
            && (left.reading === right.reading || left.reading == right.reading)
    }

    /// Feeds the main parts that ``==(_:_:)`` compares to the hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(target)
        hasher.combine(head)
        hasher.combine(responseTime)
    }

    /// What a stored response consists of, and the facts that follow from it.
    final class Reading: Sendable, Equatable {
        let target: TargetURI
        let method: RequestMethod
        let nominated: NominatedFields
        let head: ResponseHead
        let targetedFields: [FieldName]
        let facts: ResponseFacts

        init(
            target: TargetURI,
            method: RequestMethod,
            nominated: NominatedFields,
            head: ResponseHead,
            targetedFields: [FieldName],
            facts: ResponseFacts
        ) {
            self.target = target
            self.method = method
            self.nominated = nominated
            self.head = head
            self.targetedFields = targetedFields
            self.facts = facts
        }

        static func == (left: Reading, right: Reading) -> Bool {
            left.facts == right.facts && left.target == right.target && left.method == right.method
                && left.nominated == right.nominated && left.head == right.head
                && left.targetedFields == right.targetedFields
        }
    }
}

extension ResponseHead {
    /// The entity tag; nil if missing, malformed or repeated.
    public var entityTag: EntityTag? {
        let values = fields.values(of: .eTag)
        return values.count == 1 ? values.first.flatMap { EntityTag($0) } : nil
    }

    /// The Last-Modified date; nil if missing, malformed or repeated.
    ///
    /// - Parameter receivedAt: when the response arrived, for two-digit years.
    public func lastModified(receivedAt: Timestamp) -> HTTPDate? {
        ResponseHead.date(of: .lastModified, in: fields, receivedAt: receivedAt)
    }
}
