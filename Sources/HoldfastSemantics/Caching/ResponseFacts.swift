// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the rules of freshness and reuse need to know of a stored response, as numbers and flags (RFC 9111 §4.2, RFC 5861).
///
/// They are read from the fields once, and stored with the response, so that a decision reads none.
package struct ResponseFacts: Sendable, Hashable {
    /// What a response says or has.
    struct Flags: OptionSet, Sendable, Hashable {
        let rawValue: UInt32

        static let noStore = Flags(rawValue: 1 << 0)
        /// `no-cache` for the whole response.
        static let noCache = Flags(rawValue: 1 << 1)
        static let mustRevalidate = Flags(rawValue: 1 << 2)
        static let proxyRevalidate = Flags(rawValue: 1 << 3)
        static let mustUnderstand = Flags(rawValue: 1 << 4)
        /// `private`, also for some fields.
        static let `private` = Flags(rawValue: 1 << 5)
        static let `public` = Flags(rawValue: 1 << 6)
        static let immutable = Flags(rawValue: 1 << 7)
        static let entityTag = Flags(rawValue: 1 << 8)
        /// A Date field, readable or not.
        static let date = Flags(rawValue: 1 << 9)
        static let retryAfter = Flags(rawValue: 1 << 10)
        static let allowsNegativeCaching = Flags(rawValue: 1 << 11)
        /// An Expires field that applies.
        static let expires = Flags(rawValue: 1 << 12)
        /// One that is no date.
        static let invalidExpires = Flags(rawValue: 1 << 13)
        static let contentDecoded = Flags(rawValue: 1 << 14)
        static let age = Flags(rawValue: 1 << 15)
    }

    let flags: Flags
    private let statusNumber: Int32
    package let requestTime: Timestamp
    package let responseTime: Timestamp
    let date: Timestamp
    let expires: Timestamp
    let ageValue: Int64
    // Stored as they are encoded, since facts are copied on each hit.
    private let storedLastModified: Timestamp
    private let storedMaxAge: Int64
    private let storedSMaxAge: Int64
    private let storedStaleWhileRevalidate: Int64
    private let storedStaleIfError: Int64
    private let storedGivenLifetime: Int64
    /// Of the target list by which the directives were chosen (RFC 9213 §2.2).
    package let targetsHash: UInt64

    package var status: StatusCode { StatusCode(rawValue: Int(statusNumber)) }
    var lastModified: Timestamp? { storedLastModified == .distantPast ? nil : storedLastModified }
    var maxAge: Int64? { storedMaxAge < 0 ? nil : storedMaxAge }
    var sMaxAge: Int64? { storedSMaxAge < 0 ? nil : storedSMaxAge }
    var staleWhileRevalidate: Int64? { storedStaleWhileRevalidate < 0 ? nil : storedStaleWhileRevalidate }
    var staleIfError: Int64? { storedStaleIfError < 0 ? nil : storedStaleIfError }
    package var givenLifetime: Int64? { storedGivenLifetime < 0 ? nil : storedGivenLifetime }

    package var contentDecoded: Bool { flags.contains(.contentDecoded) }

    var hasValidator: Bool { flags.contains(.entityTag) || lastModified != nil }

    /// Reads the fields.
    init(
        _ head: ResponseHead,
        requestTime: Timestamp,
        responseTime: Timestamp,
        contentDecoded: Bool,
        givenLifetime: Int64?,
        targetedFields: [FieldName]
    ) {
        let ruling = RulingCacheControl(head.fields, targets: targetedFields)
        let cacheControl = ruling.cacheControl
        var flags: Flags = []
        func set(_ flag: Flags, _ condition: Bool) { if condition { flags.insert(flag) } }
        set(.noStore, cacheControl.noStore)
        set(.noCache, cacheControl.noCache == .unqualified)
        set(.mustRevalidate, cacheControl.mustRevalidate)
        set(.proxyRevalidate, cacheControl.proxyRevalidate)
        set(.mustUnderstand, cacheControl.mustUnderstand)
        set(.private, cacheControl.private != .absent)
        set(.public, cacheControl.public)
        set(.immutable, cacheControl.immutable)
        set(.entityTag, head.entityTag != nil)
        set(.date, head.fields.contains(.date))
        set(.retryAfter, head.fields.contains(.retryAfter))
        set(.allowsNegativeCaching, head.allowsNegativeCaching)
        set(.contentDecoded, contentDecoded)
        set(.age, head.fields.contains(.age))
        var expires = Timestamp.distantPast
        if ruling.hasExpires {
            // A repeated Expires counts as invalid, an invalid one as past (RFC 9111 §4.2.1, §5.3).
            let parsed = ResponseHead.date(of: .expires, in: head.fields, receivedAt: responseTime)
            flags.insert(.expires)
            set(.invalidExpires, parsed == nil || ResponseFacts.namesOtherZone(head.fields[.expires]))
            expires = parsed?.timestamp ?? .distantPast
        }
        self.flags = flags
        self.expires = expires
        statusNumber = Int32(clamping: head.status.rawValue)
        self.requestTime = requestTime
        self.responseTime = responseTime
        date = head.date(receivedAt: responseTime)?.timestamp ?? responseTime
        storedLastModified = head.lastModified(receivedAt: responseTime)?.timestamp ?? .distantPast
        ageValue = head.age ?? 0
        storedMaxAge = cacheControl.maxAge ?? -1
        storedSMaxAge = cacheControl.sMaxAge ?? -1
        storedStaleWhileRevalidate = cacheControl.staleWhileRevalidate ?? -1
        storedStaleIfError = cacheControl.staleIfError ?? -1
        storedGivenLifetime = givenLifetime.map { max($0, 0) } ?? -1
        targetsHash = ResponseFacts.hash(targetedFields)
    }

    /// Whether an expiration date has another zone than GMT, including UTC by name: such a date can be read, but must not make
    /// a response fresh (RFC 9111 §4.2).
    private static func namesOtherZone(_ expires: String?) -> Bool {
        expires?.loweringASCII().hasSuffix("utc") ?? false
    }

    /// A number for a target list; FNV-1a of its names in lower case.
    package static func hash(_ targets: [FieldName]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for name in targets {
            for byte in name.canonicalName.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            hash = (hash ^ 0xFF) &* 0x100_0000_01B3
        }
        return hash
    }
}

extension ResponseFacts {
    /// The length of the encoded form.
    package static let encodedSize = 104

    /// The facts in ``encodedSize`` bytes: little-endian numbers, of which −1 (for a date: the lowest) says that there is none.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(ResponseFacts.encodedSize)
        func append(_ number: UInt64) {
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
        append(UInt64(flags.rawValue) | UInt64(UInt32(bitPattern: statusNumber)) << 32)
        for instant in [requestTime, responseTime, date, expires, storedLastModified] {
            append(UInt64(bitPattern: instant.millisecondsSinceEpoch))
        }
        for seconds in [
            ageValue, storedMaxAge, storedSMaxAge, storedStaleWhileRevalidate, storedStaleIfError, storedGivenLifetime,
        ] {
            append(UInt64(bitPattern: seconds))
        }
        append(targetsHash)
        return bytes
    }

    /// Reads the encoded form; nil if there are fewer bytes.
    package init?(encoded bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= ResponseFacts.encodedSize else { return nil }
        func number(_ index: Int) -> Int64 {
            Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: Int64.self))
        }
        func instant(_ index: Int) -> Timestamp { Timestamp(millisecondsSinceEpoch: number(index)) }
        flags = Flags(rawValue: UInt32(truncatingIfNeeded: number(0)))
        statusNumber = Int32(truncatingIfNeeded: number(0) >> 32)
        requestTime = instant(1)
        responseTime = instant(2)
        date = instant(3)
        expires = instant(4)
        storedLastModified = instant(5)
        ageValue = max(0, min(number(6), CacheControl.maximumDeltaSeconds))
        storedMaxAge = number(7)
        storedSMaxAge = number(8)
        storedStaleWhileRevalidate = number(9)
        storedStaleIfError = number(10)
        storedGivenLifetime = number(11)
        targetsHash = UInt64(bitPattern: number(12))
    }
}
