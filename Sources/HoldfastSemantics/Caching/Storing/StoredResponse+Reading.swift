// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension StoredResponse {
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
