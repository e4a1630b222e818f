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
    }

    let flags: Flags
    package let status: StatusCode
    package let requestTime: Timestamp
    package let responseTime: Timestamp
    let date: Timestamp
    let expires: Timestamp
    let lastModified: Timestamp?
    let ageValue: Int64
    let maxAge: Int64?
    let sMaxAge: Int64?
    let staleWhileRevalidate: Int64?
    let staleIfError: Int64?
    package let givenLifetime: Int64?
    /// Of the target list by which the directives were chosen (RFC 9213 §2.2).
    package let targetsHash: UInt64

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
        status = head.status
        self.requestTime = requestTime
        self.responseTime = responseTime
        date = head.date(receivedAt: responseTime)?.timestamp ?? responseTime
        lastModified = head.lastModified(receivedAt: responseTime)?.timestamp
        ageValue = head.age ?? 0
        maxAge = cacheControl.maxAge
        sMaxAge = cacheControl.sMaxAge
        staleWhileRevalidate = cacheControl.staleWhileRevalidate
        staleIfError = cacheControl.staleIfError
        self.givenLifetime = givenLifetime.map { max($0, 0) }
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

    /// The facts in ``encodedSize`` bytes: little-endian numbers, of which −1 (for a date: the lowest one) says that there is none.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(ResponseFacts.encodedSize)
        func append(_ number: UInt64) {
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
        append(UInt64(flags.rawValue) | UInt64(UInt32(truncatingIfNeeded: status.rawValue)) << 32)
        for instant in [requestTime, responseTime, date, expires] {
            append(UInt64(bitPattern: instant.millisecondsSinceEpoch))
        }
        append(UInt64(bitPattern: lastModified?.millisecondsSinceEpoch ?? .min))
        append(UInt64(bitPattern: ageValue))
        for seconds in [maxAge, sMaxAge, staleWhileRevalidate, staleIfError, givenLifetime] {
            append(UInt64(bitPattern: seconds ?? -1))
        }
        append(targetsHash)
        return bytes
    }

    /// Reads the encoded form; nil if there are not as many bytes.
    package init?(encoded bytes: UnsafeRawBufferPointer) {
        guard bytes.count == ResponseFacts.encodedSize else { return nil }
        func number(_ index: Int) -> Int64 {
            Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: Int64.self))
        }
        func instant(_ index: Int) -> Timestamp { Timestamp(millisecondsSinceEpoch: number(index)) }
        func seconds(_ index: Int) -> Int64? {
            let number = number(index)
            return number < 0 ? nil : number
        }
        flags = Flags(rawValue: UInt32(truncatingIfNeeded: number(0)))
        status = StatusCode(rawValue: Int(Int32(truncatingIfNeeded: number(0) >> 32)))
        requestTime = instant(1)
        responseTime = instant(2)
        date = instant(3)
        expires = instant(4)
        lastModified = number(5) == .min ? nil : instant(5)
        ageValue = max(0, min(number(6), CacheControl.maximumDeltaSeconds))
        maxAge = seconds(7)
        sMaxAge = seconds(8)
        staleWhileRevalidate = seconds(9)
        staleIfError = seconds(10)
        givenLifetime = seconds(11)
        targetsHash = UInt64(bitPattern: number(12))
    }
}
