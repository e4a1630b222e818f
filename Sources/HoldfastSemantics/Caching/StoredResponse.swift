// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A response as a cache stores it, without its content.
///
/// Values that are often needed for decisions (directives, dates, validators) are read once, when the value is made.
public struct StoredResponse: Sendable, Hashable {
    /// What is read once and never changes, behind one reference, since candidates are copied often.
    private let reading: Reading

    /// Why the origin must confirm it before it is used again, even if it is fresh; nil if it need not.
    public private(set) var confirmationReason: CacheReason?

    /// Which bytes of its content are stored, if some may be missing; nil: all (RFC 9111 §3.3).
    public var ranges: StoredRanges?

    /// The order of its request among all requests of the cache: a later request is more recent, whatever the clock said.
    /// ``Admission`` sets it; by default it follows from ``requestTime``.
    public var requestOrder: HybridTimestamp

    /// The target URI of its request.
    public var target: TargetURI { reading.target }

    /// The method of its request.
    public var method: RequestMethod { reading.method }

    /// The request values that its Vary nominates.
    public var nominated: NominatedFields { reading.nominated }

    /// Status and fields, stripped for storage by ``FieldUpdate/storable(_:contentDecoded:mode:targetedFields:ignoredCookies:)``.
    public var head: ResponseHead { reading.head }

    /// When its request was sent.
    public var requestTime: Timestamp { reading.requestTime }

    /// When its head arrived.
    public var responseTime: Timestamp { reading.responseTime }

    /// Whether the transport decoded a content coding, so that the bytes are not those that the origin tagged.
    public var contentDecoded: Bool { reading.contentDecoded }

    /// The lifetime in seconds that the call gave it because the server gave none; nil if the call gave none either.
    public var givenLifetime: Int64? { reading.givenLifetime }

    /// The targeted fields that replace its Cache-Control and Expires if it has one of them.
    public var targetedFields: [FieldName] { reading.targetedFields }

    /// Its Cache-Control, or the targeted field in its place (RFC 9213 §2.2).
    public var cacheControl: CacheControl { reading.cacheControl }

    /// Its entity tag; weak if the content was decoded, nil if missing, malformed or repeated.
    public var entityTag: EntityTag? { reading.entityTag }

    /// Its Last-Modified; nil if missing, malformed or repeated.
    public var lastModified: HTTPDate? { reading.lastModified }

    /// When the origin created it: its Date, or the time of receipt without one (RFC 9110 §6.6.1).
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
            requestTime: requestTime,
            responseTime: responseTime,
            contentDecoded: contentDecoded,
            givenLifetime: givenLifetime,
            targetedFields: targetedFields
        )
        confirmationReason = needsConfirmation ? .softPurged : nil
        requestOrder = HybridTimestamp(requestTime)
    }

    /// This response under other nominated values, for a Vary that an update brought.
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

    /// Whether the origin must confirm it before it is used again, even if it is fresh.
    public var needsConfirmation: Bool { confirmationReason != nil }

    /// This response, marked by a person so that the origin must confirm it before it is used again (RFC 9111 §4.4: "invalidate").
    public var needingConfirmation: StoredResponse { needingConfirmation(.softPurged) }

    /// This response, marked so that the origin must confirm it before it is used again.
    ///
    /// - Parameter reason: why; it replaces an earlier reason.
    public func needingConfirmation(_ reason: CacheReason) -> StoredResponse {
        var marked = self
        marked.confirmationReason = reason
        return marked
    }

    /// Whether the origin can be asked to validate it (RFC 9111 §4.3.1).
    public var hasValidator: Bool { entityTag != nil || lastModified != nil }

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

    /// A stored response whose fields have been read, once.
    ///
    /// Only its inputs are compared; the rest follows from them.
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

        /// Whether an expiration date has another zone than GMT, including UTC by name: such a date can be read, but must not make
        /// a response fresh (RFC 9111 §4.2).
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
