// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A response as a cache holds it, all but its content.
///
/// What judgement asks again and again (directives, dates, validators) is read once, when the value is made.
public struct StoredResponse: Sendable, Hashable {
    /// What is read once and never changes, behind one reference: candidates are copied from stage to stage.
    private let reading: Reading

    /// Why the origin must confirm it before it is used again, whatever its freshness; nil where it need not.
    public private(set) var confirmationReason: CacheReason?

    /// Which bytes of its content are stored, where some may be missing; nil: all (RFC 9111 §3.3).
    public var ranges: StoredRanges?

    /// The place of its request among all requests of the cache: what was asked for later is more recent, whatever the clock
    /// said. ``Admission`` sets it; by default it follows from ``requestTime``.
    public var requestOrder: HybridTimestamp

    /// The target URI of the request it answered.
    public var target: TargetURI { reading.target }

    /// The method of the request it answered.
    public var method: RequestMethod { reading.method }

    /// The request values its Vary nominates.
    public var nominated: NominatedFields { reading.nominated }

    /// Status and fields, stripped for storage by ``FieldUpdate/storable(_:contentDecoded:mode:targetedFields:ignoredCookies:)``.
    public var head: ResponseHead { reading.head }

    /// When its request was sent.
    public var requestTime: Timestamp { reading.requestTime }

    /// When its head came.
    public var responseTime: Timestamp { reading.responseTime }

    /// Whether the transport had undone a content coding, so that the bytes are not those the origin tagged.
    public var contentDecoded: Bool { reading.contentDecoded }

    /// The lifetime in seconds that the call which got it gave it, for want of the server's; nil where none did.
    public var givenLifetime: Int64? { reading.givenLifetime }

    /// The targeted fields that rule in the place of its Cache-Control and Expires where it has one of them.
    public var targetedFields: [FieldName] { reading.targetedFields }

    /// Its Cache-Control, or the targeted field in its place (RFC 9213 §2.2).
    public var cacheControl: CacheControl { reading.cacheControl }

    /// Its entity tag; weak when the content was decoded, nil when missing, malformed or repeated.
    public var entityTag: EntityTag? { reading.entityTag }

    /// Its Last-Modified; nil when missing, malformed or repeated.
    public var lastModified: HTTPDate? { reading.lastModified }

    /// When the origin made it: its Date, or the time of receipt where that is missing (RFC 9110 §6.6.1).
    public var date: Timestamp { reading.date }

    var expires: Expiry { reading.expires }
    var ageValue: Int64 { reading.ageValue }

    enum Expiry: Sendable, Hashable {
        case absent
        case invalid
        case at(HTTPDate)
    }

    /// Creates a stored response; costs one reading of the fields.
    ///
    /// - Parameters:
    ///   - target: the target URI of its request.
    ///   - method: the method of its request; `GET` by default.
    ///   - nominated: what its Vary nominates; nothing by default.
    ///   - head: status and fields, already stripped for storage.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the head came.
    ///   - contentDecoded: whether a content coding was undone; false by default.
    ///   - givenLifetime: the call's ``CacheDirective/lifetime`` in seconds; negative counts as 0, nil by default.
    ///   - needsConfirmation: whether a person marked it, so that the origin must confirm it before it is used again; false
    ///     by default.
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
            requestTime: requestTime,
            responseTime: responseTime,
            contentDecoded: contentDecoded,
            givenLifetime: givenLifetime,
            targetedFields: targetedFields
        )
        confirmationReason = needsConfirmation ? .softPurged : nil
        requestOrder = HybridTimestamp(requestTime)
    }

    /// This response filed under other nominated values, for a Vary that an update brought.
    func nominating(_ nominated: NominatedFields) -> StoredResponse {
        var filed = StoredResponse(
            target: target,
            method: method,
            nominated: nominated,
            head: head,
            requestTime: requestTime,
            responseTime: responseTime,
            contentDecoded: contentDecoded,
            givenLifetime: givenLifetime,
            targetedFields: targetedFields
        )
        (filed.confirmationReason, filed.ranges, filed.requestOrder) = (confirmationReason, ranges, requestOrder)
        return filed
    }

    /// Whether the origin must confirm it before it is used again, whatever its freshness.
    public var needsConfirmation: Bool { confirmationReason != nil }

    /// This response marked by a person so that the origin must confirm it before it is used again (RFC 9111 §4.4:
    /// "invalidate").
    public var needingConfirmation: StoredResponse { needingConfirmation(.softPurged) }

    /// This response marked so that the origin must confirm it before it is used again.
    ///
    /// - Parameter reason: why; it stands in the place of an earlier one.
    public func needingConfirmation(_ reason: CacheReason) -> StoredResponse {
        var marked = self
        marked.confirmationReason = reason
        return marked
    }

    /// Whether the origin can be asked if it still holds (RFC 9111 §4.3.1).
    public var hasValidator: Bool { entityTag != nil || lastModified != nil }

    /// Whether both are the same response, read in the same way.
    public static func == (left: StoredResponse, right: StoredResponse) -> Bool {
        left.confirmationReason == right.confirmationReason && left.ranges == right.ranges
            && left.requestOrder == right.requestOrder
            && (left.reading === right.reading || left.reading == right.reading)
    }

    /// Feeds what ``==(_:_:)`` goes by most to the hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(target)
        hasher.combine(head)
        hasher.combine(responseTime)
    }

    /// A stored response as its fields were read, once.
    ///
    /// What it is made from is compared; the rest follows from it.
    final class Reading: Sendable, Equatable {
        let target: TargetURI
        let method: RequestMethod
        let nominated: NominatedFields
        let head: ResponseHead
        let requestTime: Timestamp
        let responseTime: Timestamp
        let contentDecoded: Bool
        let givenLifetime: Int64?
        let targetedFields: [FieldName]
        let cacheControl: CacheControl
        let entityTag: EntityTag?
        let lastModified: HTTPDate?
        let date: Timestamp
        let expires: Expiry
        let ageValue: Int64

        init(
            target: TargetURI,
            method: RequestMethod,
            nominated: NominatedFields,
            head: ResponseHead,
            requestTime: Timestamp,
            responseTime: Timestamp,
            contentDecoded: Bool,
            givenLifetime: Int64?,
            targetedFields: [FieldName]
        ) {
            self.target = target
            self.method = method
            self.nominated = nominated
            self.head = head
            self.requestTime = requestTime
            self.responseTime = responseTime
            self.contentDecoded = contentDecoded
            self.givenLifetime = givenLifetime.map { max($0, 0) }
            self.targetedFields = targetedFields
            let ruling = RulingCacheControl(head.fields, targets: targetedFields)
            cacheControl = ruling.cacheControl
            let tag = head.entityTag
            entityTag = contentDecoded ? tag?.weakened : tag
            lastModified = head.lastModified(receivedAt: responseTime)
            date = head.date(receivedAt: responseTime)?.timestamp ?? responseTime
            ageValue = head.age ?? 0
            if !ruling.hasExpires {
                expires = .absent
            } else {
                // A repeated Expires counts as invalid, an invalid one as past (RFC 9111 §4.2.1, §5.3).
                let parsed = ResponseHead.date(of: .expires, in: head.fields, receivedAt: responseTime)
                expires =
                    Reading.namesOtherZone(head.fields[.expires]) ? .invalid : parsed.map { .at($0) } ?? .invalid
            }
        }

        /// Whether an expiration date is given in another zone than GMT, UTC by name included: such a date is readable, but
        /// nothing may be taken for fresh by it (RFC 9111 §4.2).
        private static func namesOtherZone(_ expires: String?) -> Bool {
            expires?.loweringASCII().hasSuffix("utc") ?? false
        }

        static func == (left: Reading, right: Reading) -> Bool {
            left.target == right.target && left.method == right.method && left.nominated == right.nominated
                && left.head == right.head && left.requestTime == right.requestTime
                && left.responseTime == right.responseTime && left.contentDecoded == right.contentDecoded
                && left.givenLifetime == right.givenLifetime && left.targetedFields == right.targetedFields
        }
    }
}

extension ResponseHead {
    /// The entity tag; nil when missing, malformed or repeated.
    public var entityTag: EntityTag? {
        let values = fields.values(of: .eTag)
        return values.count == 1 ? values.first.flatMap { EntityTag($0) } : nil
    }

    /// The Last-Modified date; nil when missing, malformed or repeated.
    ///
    /// - Parameter receivedAt: when the response came, for two-digit years.
    public func lastModified(receivedAt: Timestamp) -> HTTPDate? {
        ResponseHead.date(of: .lastModified, in: fields, receivedAt: receivedAt)
    }
}
