// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A response as a cache holds it, all but its content.
///
/// What judgement asks again and again (directives, dates, validators) is read once, when the value is made.
public struct StoredResponse: Sendable, Hashable {
    /// The target URI of the request it answered.
    public let target: TargetURI

    /// The method of the request it answered.
    public let method: RequestMethod

    /// The request values its Vary nominates.
    public let nominated: NominatedFields

    /// Status and fields, stripped for storage by ``FieldUpdate/storable(_:contentDecoded:mode:targetedFields:)``.
    public let head: ResponseHead

    /// When its request was sent.
    public let requestTime: Timestamp

    /// When its head came.
    public let responseTime: Timestamp

    /// Whether the transport had undone a content coding, so that the bytes are not those the origin tagged.
    public let contentDecoded: Bool

    /// The lifetime in seconds that the call which got it gave it, for want of the server's; nil where none did.
    public let givenLifetime: Int64?

    /// Why the origin must confirm it before it is used again, whatever its freshness; nil where it need not.
    public private(set) var confirmationReason: CacheReason?

    /// Which bytes of its content are stored, where some may be missing; nil: all (RFC 9111 §3.3).
    public var ranges: StoredRanges?

    /// The targeted fields that rule in the place of its Cache-Control and Expires where it has one of them.
    public let targetedFields: [FieldName]

    /// Its Cache-Control, or the targeted field in its place (RFC 9213 §2.2).
    public let cacheControl: CacheControl

    /// Its entity tag; weak when the content was decoded, nil when missing, malformed or repeated.
    public let entityTag: EntityTag?

    /// Its Last-Modified; nil when missing, malformed or repeated.
    public let lastModified: HTTPDate?

    /// When the origin made it: its Date, or the time of receipt where that is missing (RFC 9110 §6.6.1).
    public let date: Timestamp

    let expires: Expiry
    let ageValue: Int64

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
        self.target = target
        self.method = method
        self.nominated = nominated
        self.head = head
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.contentDecoded = contentDecoded
        self.givenLifetime = givenLifetime.map { max($0, 0) }
        confirmationReason = needsConfirmation ? .softPurged : nil
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
                StoredResponse.namesOtherZone(head.fields[.expires]) ? .invalid : parsed.map { .at($0) } ?? .invalid
        }
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

    /// Whether an expiration date is given in another zone than GMT, UTC by name included: such a date is readable, but
    /// nothing may be taken for fresh by it (RFC 9111 §4.2).
    private static func namesOtherZone(_ expires: String?) -> Bool {
        expires?.loweringASCII().hasSuffix("utc") ?? false
    }

    /// Whether the origin can be asked if it still holds (RFC 9111 §4.3.1).
    public var hasValidator: Bool { entityTag != nil || lastModified != nil }
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
