// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The name of a header field: a token, compared without regard to case (RFC 9110 §5.1).
///
/// The original spelling is kept for sending; equality and hashing use only the lower-case form.
public struct FieldName: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name in its original spelling.
    public let rawName: String

    /// The name in lower case, as used for equality, hashing and keys.
    public let canonicalName: String

    /// A hash of the lower-case form (FNV-1a), so that most comparisons of names compare two numbers.
    private let nameHash: UInt64

    /// Creates a name; nil if the text is not a token (RFC 9110 §5.6.2).
    ///
    /// - Parameter name: any text; the cost is linear in its length.
    public init?(_ name: String) {
        var name = name
        let read: (hash: UInt64, hasUpperCase: Bool)? = name.withUTF8 { bytes in
            guard !bytes.isEmpty else { return nil }
            var hash: UInt64 = 0xCBF2_9CE4_8422_2325
            var hasUpperCase = false
            for byte in bytes {
                guard byte.isTokenCharacter else { return nil }
                if byte.isUpperCaseLetter { hasUpperCase = true }
                hash = (hash ^ UInt64(byte.lowerCased)) &* 0x100_0000_01B3
            }
            return (hash, hasUpperCase)
        }
        guard let read else { return nil }
        nameHash = read.hash
        rawName = name
        canonicalName = read.hasUpperCase ? name.loweringASCII() : name
    }

    /// A name that was stored, so that it has been checked.
    init(stored name: String) { self = FieldName(name) ?? FieldName.unreadable }

    static let unreadable: FieldName = "Unreadable"

    /// Whether this is a name in some spelling.
    ///
    /// - Parameter bytes: the ASCII bytes of the spelling.
    func isSpelled(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var name = canonicalName
        return name.withUTF8 { UnsafeRawBufferPointer($0).isLowerCase(of: bytes) }
    }

    /// Whether this is a name in some spelling.
    package func isSpelled(_ text: String) -> Bool {
        var name = canonicalName
        return name.withUTF8 { UnsafeRawBufferPointer($0).isLowerCase(of: text) }
    }

    /// Creates a name from a literal in source code.
    ///
    /// - Precondition: the literal is a token; use `init?(_:)` for anything that is not a literal.
    public init(stringLiteral name: StaticString) {
        let text = name.description
        guard let valid = FieldName(text) else {
            stopProgram("\"\(text)\" is not a field name; write a token such as \"X-Request-ID\"")
        }
        self = valid
    }

    /// The name in its original spelling.
    public var description: String { rawName }

    /// Whether two names are the same field, ignoring case.
    public static func == (left: FieldName, right: FieldName) -> Bool {
        left.nameHash == right.nameHash && left.canonicalName == right.canonicalName
    }

    /// Feeds a value that equal names share to the hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(nameHash)
    }
}

extension UInt8 {
    /// tchar of RFC 9110 §5.6.2.
    package var isTokenCharacter: Bool {
        // A bit for each: letters, digits and !#$%&'*+-.^_`|~.
        let bits: UInt64 = self < 64 ? 0x03FF_6CFA_0000_0000 : self < 128 ? 0x57FF_FFFF_C7FF_FFFE : 0
        return bits >> UInt64(self & 63) & 1 == 1
    }

    package var isUpperCaseLetter: Bool {
        self >= UInt8(ascii: "A") && self <= UInt8(ascii: "Z")
    }

    package var isDigit: Bool {
        self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9")
    }

    package var isLetter: Bool {
        let folded = self | 0x20
        return folded >= UInt8(ascii: "a") && folded <= UInt8(ascii: "z")
    }

    /// What a scheme may contain after its first letter (RFC 3986 §3.1).
    package var isSchemeCharacter: Bool {
        isLetter || isDigit || "+-.".utf8.contains(self)
    }

    /// OWS of RFC 9110 §5.6.3.
    package var isOptionalWhitespace: Bool {
        self == UInt8(ascii: " ") || self == UInt8(ascii: "\t")
    }

    package var lowerCased: UInt8 {
        isUpperCaseLetter ? self | 0x20 : self
    }
}

extension UnsafeRawBufferPointer {
    /// Whether both are the same bytes.
    package func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        if baseAddress == other.baseAddress { return true }
        var offset = 0
        while count - offset >= 8 {
            if loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                != other.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            {
                return false
            }
            offset += 8
        }
        while offset < count {
            if self[offset] != other[offset] { return false }
            offset += 1
        }
        return true
    }

    /// Whether an ASCII text has these bytes in lower case.
    @inline(__always)
    func isLowerCase(of text: UnsafeRawBufferPointer) -> Bool {
        guard text.count == count else { return false }
        var index = 0
        while index < count, text[index].lowerCased == self[index] { index += 1 }
        return index == count
    }

    @inline(__always)
    func isLowerCase(of text: String) -> Bool {
        guard text.utf8.count == count else { return false }
        var text = text
        return text.withUTF8 { isLowerCase(of: UnsafeRawBufferPointer($0)) }
    }
}

extension String {
    /// Whether both are the same bytes: strings compare by Unicode equivalence, fields do not (RFC 9111 §4.1).
    package func hasSameBytes(as other: String) -> Bool {
        let answer: Bool?? = utf8.withContiguousStorageIfAvailable { bytes in
            other.utf8.withContiguousStorageIfAvailable { others in
                UnsafeRawBufferPointer(bytes).hasSameBytes(as: UnsafeRawBufferPointer(others))
            }
        }
        return (answer ?? nil) ?? utf8.elementsEqual(other.utf8)
    }

    /// Lowercases only A–Z: Unicode case mapping could turn another letter into an ASCII one.
    package func loweringASCII() -> String {
        var text = self
        return text.withUTF8 { bytes in
            guard bytes.contains(where: \.isUpperCaseLetter) else { return nil }
            return String(unsafeUninitializedCapacity: bytes.count) { folded in
                for index in bytes.indices { folded.initializeElement(at: index, to: bytes[index].lowerCased) }
                return bytes.count
            }
        } ?? self
    }
}

/// The field names used for caching, retries and redirects.
extension FieldName {
    /// `Accept`.
    public static let accept: FieldName = "Accept"
    /// `Accept-Encoding`.
    public static let acceptEncoding: FieldName = "Accept-Encoding"
    /// `Accept-Language`.
    public static let acceptLanguage: FieldName = "Accept-Language"
    /// `Accept-Ranges`.
    public static let acceptRanges: FieldName = "Accept-Ranges"
    /// `Age`.
    public static let age: FieldName = "Age"
    /// `Allow`.
    public static let allow: FieldName = "Allow"
    /// `Authorization`.
    public static let authorization: FieldName = "Authorization"
    /// `Cache-Control`.
    public static let cacheControl: FieldName = "Cache-Control"
    /// `Cache-Group-Invalidation` (RFC 9875).
    public static let cacheGroupInvalidation: FieldName = "Cache-Group-Invalidation"
    /// `Cache-Groups` (RFC 9875).
    public static let cacheGroups: FieldName = "Cache-Groups"
    /// `Cache-Status` (RFC 9211).
    public static let cacheStatus: FieldName = "Cache-Status"
    /// `CDN-Cache-Control` (RFC 9213).
    public static let cdnCacheControl: FieldName = "CDN-Cache-Control"
    /// `Clear-Site-Data`.
    public static let clearSiteData: FieldName = "Clear-Site-Data"
    /// `Connection`.
    public static let connection: FieldName = "Connection"
    /// `Content-Disposition`.
    public static let contentDisposition: FieldName = "Content-Disposition"
    /// `Content-Encoding`.
    public static let contentEncoding: FieldName = "Content-Encoding"
    /// `Content-Language`.
    public static let contentLanguage: FieldName = "Content-Language"
    /// `Content-Length`.
    public static let contentLength: FieldName = "Content-Length"
    /// `Content-Location`.
    public static let contentLocation: FieldName = "Content-Location"
    /// `Content-Range`.
    public static let contentRange: FieldName = "Content-Range"
    /// `Content-Type`.
    public static let contentType: FieldName = "Content-Type"
    /// `Cookie`.
    public static let cookie: FieldName = "Cookie"
    /// `Date`.
    public static let date: FieldName = "Date"
    /// `ETag`.
    public static let eTag: FieldName = "ETag"
    /// `Expect`.
    public static let expect: FieldName = "Expect"
    /// `Expires`.
    public static let expires: FieldName = "Expires"
    /// `Host`.
    public static let host: FieldName = "Host"
    /// `Idempotency-Key`.
    public static let idempotencyKey: FieldName = "Idempotency-Key"
    /// `If-Match`.
    public static let ifMatch: FieldName = "If-Match"
    /// `If-Modified-Since`.
    public static let ifModifiedSince: FieldName = "If-Modified-Since"
    /// `If-None-Match`.
    public static let ifNoneMatch: FieldName = "If-None-Match"
    /// `If-Range`.
    public static let ifRange: FieldName = "If-Range"
    /// `If-Unmodified-Since`.
    public static let ifUnmodifiedSince: FieldName = "If-Unmodified-Since"
    /// `Keep-Alive`.
    public static let keepAlive: FieldName = "Keep-Alive"
    /// `Last-Modified`.
    public static let lastModified: FieldName = "Last-Modified"
    /// `Link`.
    public static let link: FieldName = "Link"
    /// `Location`.
    public static let location: FieldName = "Location"
    /// `No-Vary-Search`.
    public static let noVarySearch: FieldName = "No-Vary-Search"
    /// `Origin`.
    public static let origin: FieldName = "Origin"
    /// `Pragma`.
    public static let pragma: FieldName = "Pragma"
    /// `Proxy-Authenticate`.
    public static let proxyAuthenticate: FieldName = "Proxy-Authenticate"
    /// `Proxy-Authentication-Info`.
    public static let proxyAuthenticationInfo: FieldName = "Proxy-Authentication-Info"
    /// `Proxy-Authorization`.
    public static let proxyAuthorization: FieldName = "Proxy-Authorization"
    /// `Proxy-Connection`.
    public static let proxyConnection: FieldName = "Proxy-Connection"
    /// `Range`.
    public static let range: FieldName = "Range"
    /// `Referer`.
    public static let referer: FieldName = "Referer"
    /// `Retry-After`.
    public static let retryAfter: FieldName = "Retry-After"
    /// `Server`.
    public static let server: FieldName = "Server"
    /// `Set-Cookie`.
    public static let setCookie: FieldName = "Set-Cookie"
    /// `TE`.
    public static let te: FieldName = "TE"
    /// `Trailer`.
    public static let trailer: FieldName = "Trailer"
    /// `Transfer-Encoding`.
    public static let transferEncoding: FieldName = "Transfer-Encoding"
    /// `Upgrade`.
    public static let upgrade: FieldName = "Upgrade"
    /// `User-Agent`.
    public static let userAgent: FieldName = "User-Agent"
    /// `Vary`.
    public static let vary: FieldName = "Vary"
    /// `Via`.
    public static let via: FieldName = "Via"
    /// `Warning`, obsolete since RFC 9111 §5.5.
    public static let warning: FieldName = "Warning"
    /// `WWW-Authenticate`.
    public static let wwwAuthenticate: FieldName = "WWW-Authenticate"
}

/// Ends the program because of a mistake in its own code, never because of what came from elsewhere.
///
/// `preconditionFailure` would lose the message in a release build.
package func stopProgram(_ message: String) -> Never {
    fatalError(message)
}
