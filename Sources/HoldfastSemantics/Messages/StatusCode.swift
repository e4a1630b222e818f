// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The status code of a response (RFC 9110 §15).
///
/// Numbers outside 100 to 599 are kept as they are, so that nothing is lost; ``isValid`` is false for them.
public struct StatusCode: RawRepresentable, Sendable, Hashable, Comparable, ExpressibleByIntegerLiteral,
    CustomStringConvertible
{
    /// The number.
    public let rawValue: Int

    /// Accepts any number.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Accepts any number.
    public init(_ rawValue: Int) { self.rawValue = rawValue }

    /// Accepts any number.
    public init(integerLiteral value: Int) { rawValue = value }

    /// The number as text.
    public var description: String { String(rawValue) }

    /// Whether the number is within 100 to 599.
    public var isValid: Bool { rawValue >= 100 && rawValue <= 599 }

    /// 1xx: an interim response.
    public var isInformational: Bool { rawValue >= 100 && rawValue <= 199 }

    /// 2xx.
    public var isSuccessful: Bool { rawValue >= 200 && rawValue <= 299 }

    /// 3xx.
    public var isRedirection: Bool { rawValue >= 300 && rawValue <= 399 }

    /// 4xx.
    public var isClientError: Bool { rawValue >= 400 && rawValue <= 499 }

    /// 5xx.
    public var isServerError: Bool { rawValue >= 500 && rawValue <= 599 }

    /// 2xx to 5xx: the response that ends an exchange (RFC 9110 §15).
    public var isFinal: Bool { rawValue >= 200 && rawValue <= 599 }

    /// Whether a cache may estimate a freshness lifetime for it (RFC 9110 §15.1).
    ///
    /// 206 is on the RFC's list, but its parts are not whole responses; other rules apply to storing them.
    public var isHeuristicallyCacheable: Bool {
        switch rawValue {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether the left number is smaller.
    public static func < (left: StatusCode, right: StatusCode) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// The registered status codes and their reason phrases (RFC 9110 §15 and its registry).
extension StatusCode {
    /// 100 Continue.
    public static let `continue` = StatusCode(100)
    /// 101 Switching Protocols.
    public static let switchingProtocols = StatusCode(101)
    /// 103 Early Hints.
    public static let earlyHints = StatusCode(103)
    /// 200 OK.
    public static let ok = StatusCode(200)
    /// 201 Created.
    public static let created = StatusCode(201)
    /// 202 Accepted.
    public static let accepted = StatusCode(202)
    /// 203 Non-Authoritative Information.
    public static let nonAuthoritativeInformation = StatusCode(203)
    /// 204 No Content.
    public static let noContent = StatusCode(204)
    /// 205 Reset Content.
    public static let resetContent = StatusCode(205)
    /// 206 Partial Content.
    public static let partialContent = StatusCode(206)
    /// 300 Multiple Choices.
    public static let multipleChoices = StatusCode(300)
    /// 301 Moved Permanently.
    public static let movedPermanently = StatusCode(301)
    /// 302 Found.
    public static let found = StatusCode(302)
    /// 303 See Other.
    public static let seeOther = StatusCode(303)
    /// 304 Not Modified.
    public static let notModified = StatusCode(304)
    /// 307 Temporary Redirect.
    public static let temporaryRedirect = StatusCode(307)
    /// 308 Permanent Redirect.
    public static let permanentRedirect = StatusCode(308)
    /// 400 Bad Request.
    public static let badRequest = StatusCode(400)
    /// 401 Unauthorized.
    public static let unauthorized = StatusCode(401)
    /// 402 Payment Required.
    public static let paymentRequired = StatusCode(402)
    /// 403 Forbidden.
    public static let forbidden = StatusCode(403)
    /// 404 Not Found.
    public static let notFound = StatusCode(404)
    /// 405 Method Not Allowed.
    public static let methodNotAllowed = StatusCode(405)
    /// 406 Not Acceptable.
    public static let notAcceptable = StatusCode(406)
    /// 407 Proxy Authentication Required.
    public static let proxyAuthenticationRequired = StatusCode(407)
    /// 408 Request Timeout.
    public static let requestTimeout = StatusCode(408)
    /// 409 Conflict.
    public static let conflict = StatusCode(409)
    /// 410 Gone.
    public static let gone = StatusCode(410)
    /// 411 Length Required.
    public static let lengthRequired = StatusCode(411)
    /// 412 Precondition Failed.
    public static let preconditionFailed = StatusCode(412)
    /// 413 Content Too Large.
    public static let contentTooLarge = StatusCode(413)
    /// 414 URI Too Long.
    public static let uriTooLong = StatusCode(414)
    /// 415 Unsupported Media Type.
    public static let unsupportedMediaType = StatusCode(415)
    /// 416 Range Not Satisfiable.
    public static let rangeNotSatisfiable = StatusCode(416)
    /// 417 Expectation Failed.
    public static let expectationFailed = StatusCode(417)
    /// 421 Misdirected Request.
    public static let misdirectedRequest = StatusCode(421)
    /// 422 Unprocessable Content.
    public static let unprocessableContent = StatusCode(422)
    /// 425 Too Early.
    public static let tooEarly = StatusCode(425)
    /// 426 Upgrade Required.
    public static let upgradeRequired = StatusCode(426)
    /// 428 Precondition Required.
    public static let preconditionRequired = StatusCode(428)
    /// 429 Too Many Requests.
    public static let tooManyRequests = StatusCode(429)
    /// 431 Request Header Fields Too Large.
    public static let requestHeaderFieldsTooLarge = StatusCode(431)
    /// 451 Unavailable For Legal Reasons.
    public static let unavailableForLegalReasons = StatusCode(451)
    /// 500 Internal Server Error.
    public static let internalServerError = StatusCode(500)
    /// 501 Not Implemented.
    public static let notImplemented = StatusCode(501)
    /// 502 Bad Gateway.
    public static let badGateway = StatusCode(502)
    /// 503 Service Unavailable.
    public static let serviceUnavailable = StatusCode(503)
    /// 504 Gateway Timeout.
    public static let gatewayTimeout = StatusCode(504)
    /// 505 HTTP Version Not Supported.
    public static let httpVersionNotSupported = StatusCode(505)
    /// 506 Variant Also Negotiates.
    public static let variantAlsoNegotiates = StatusCode(506)
    /// 507 Insufficient Storage.
    public static let insufficientStorage = StatusCode(507)
    /// 508 Loop Detected.
    public static let loopDetected = StatusCode(508)
    /// 511 Network Authentication Required.
    public static let networkAuthenticationRequired = StatusCode(511)

    /// The registered phrase, or one word for the class if the code is not registered.
    ///
    /// It is for people; nothing may depend on it (RFC 9110 §15).
    public var reasonPhrase: String {
        StatusCode.phrases[rawValue] ?? classPhrase
    }

    /// Whether the code is registered, so that its meaning is known beyond its class.
    public var isRegistered: Bool { StatusCode.phrases[rawValue] != nil }

    private var classPhrase: String {
        switch rawValue {
        case 100...199: "Informational"
        case 200...299: "Successful"
        case 300...399: "Redirection"
        case 400...499: "Client Error"
        case 500...599: "Server Error"
        default: "Unknown"
        }
    }

    private static let phrases: [Int: String] = [
        100: "Continue",
        101: "Switching Protocols",
        102: "Processing",
        103: "Early Hints",
        200: "OK",
        201: "Created",
        202: "Accepted",
        203: "Non-Authoritative Information",
        204: "No Content",
        205: "Reset Content",
        206: "Partial Content",
        300: "Multiple Choices",
        301: "Moved Permanently",
        302: "Found",
        303: "See Other",
        304: "Not Modified",
        307: "Temporary Redirect",
        308: "Permanent Redirect",
        400: "Bad Request",
        401: "Unauthorized",
        402: "Payment Required",
        403: "Forbidden",
        404: "Not Found",
        405: "Method Not Allowed",
        406: "Not Acceptable",
        407: "Proxy Authentication Required",
        408: "Request Timeout",
        409: "Conflict",
        410: "Gone",
        411: "Length Required",
        412: "Precondition Failed",
        413: "Content Too Large",
        414: "URI Too Long",
        415: "Unsupported Media Type",
        416: "Range Not Satisfiable",
        417: "Expectation Failed",
        421: "Misdirected Request",
        422: "Unprocessable Content",
        425: "Too Early",
        426: "Upgrade Required",
        428: "Precondition Required",
        429: "Too Many Requests",
        431: "Request Header Fields Too Large",
        451: "Unavailable For Legal Reasons",
        500: "Internal Server Error",
        501: "Not Implemented",
        502: "Bad Gateway",
        503: "Service Unavailable",
        504: "Gateway Timeout",
        505: "HTTP Version Not Supported",
        506: "Variant Also Negotiates",
        507: "Insufficient Storage",
        508: "Loop Detected",
        511: "Network Authentication Required",
    ]
}
