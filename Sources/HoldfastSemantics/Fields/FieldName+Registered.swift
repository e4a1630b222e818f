// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The field names that caching, retries and redirects speak of.
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
