// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

/// One call of a ``WebServiceProxy``, as a request.
struct Invocation<Value: Sendable>: SharedFieldsBearing {
    typealias Result = Value

    let method: HttpMethod
    /// The URL without the arguments, or the error if there is none.
    let target: Swift.Result<String, WebServiceError>
    let arguments: [String: (any QueryArgumentConvertible)?]
    /// The proxy's own fields.
    let sharedFields: HttpHeader
    /// The content's type, if the call has one.
    let header: HttpHeader
    let body: HttpBody
    let options: CallOptions
    let timeout: Duration?
    let contentLimit: Int
    let handler: ResponseHandler<Value>
    /// Whether the handler is the proxy's own, so that its errors get the call's details; errors of other handlers stay
    /// unchanged.
    let decodesItself: Bool

    var url: (any UrlConvertible)? { try? target.get() }

    var routes: HttpRoute {
        get throws {
            _ = try target.get()
            return HttpRoute()
        }
    }

    var query: HttpQuery {
        get throws {
            guard arguments[""] == nil else {
                throw WebServiceError(refusing: "An argument has an empty name. Give it a name, or leave it out.")
            }
            return HttpQuery(arguments)
        }
    }

    func accept(_ response: Response, content: Data) throws -> Value {
        guard acceptedStatusCodes.contains(response.status.rawValue) else {
            throw ServiceError.unacceptableStatus(response, expected: acceptedStatusCodes)
        }
        do {
            return try handler(content, response.proxyContentType)
        } catch {
            let own = decodesItself ? error as? DecodingError : nil
            let cause: any Error = own?.naming(method, response: response, content: content, type: Value.self) ?? error
            throw ServiceError.decodingFailed(as: Value.self, cause: cause, response)
        }
    }

    func decode(_ data: Data) throws -> Value { try handler(data, nil) }
}

extension Response {
    /// The media type of the content in lower case, without parameters.
    var proxyContentType: String? {
        guard let value = fields[.contentType] else { return nil }
        let type = value.prefix { $0 != ";" && $0 != "," }.trimmingCharacters(in: .whitespaces).lowercased()
        return type.isEmpty ? nil : type
    }
}

/// Puts a path below a base URL.
enum ProxyTarget {
    /// The text of the URL: the path below the base, then the base's query and the path's.
    ///
    /// Base and path are joined by one slash, and the path may begin with it. Dot segments are resolved (RFC 3986 §5.2.4).
    /// Percent-escapes stay, and invalid characters are escaped, "#" too.
    ///
    /// - Throws: if the path is invalid, or leads above the base. The error does not repeat the text, which may contain
    ///   credentials.
    static func text(base: URL, path: String) throws(WebServiceError) -> String {
        guard ["http", "https"].contains(base.scheme?.lowercased()), base.host?.isEmpty == false else {
            throw WebServiceError(refusing: "The base URL has no server. Use an http or https URL with a host.")
        }
        let text = base.absoluteString.utf8.prefix { $0 != UInt8(ascii: "#") }
        let place = text.prefix { $0 != UInt8(ascii: "?") }
        let bytes = Array(path.utf8)
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw WebServiceError(refusing: "The path contains a control character, such as a line break. Remove it.")
        }
        let ownPath = bytes.prefix { $0 != UInt8(ascii: "?") }
        let ownQuery = bytes[ownPath.endIndex...].dropFirst()
        var result = String(decoding: place, as: UTF8.self)
        if !ownPath.isEmpty {
            let segments = try segments(of: ownPath)
            if result.utf8.last == UInt8(ascii: "/") { result.removeLast() }
            result += "/" + segments.map { PercentCoding.repair($0) }.joined(separator: "/")
        }
        let queries = [
            String(decoding: text[place.endIndex...].dropFirst(), as: UTF8.self),
            PercentCoding.repair(ownQuery),
        ].filter { !$0.isEmpty }
        return queries.isEmpty ? result : result + "?" + queries.joined(separator: "&")
    }

    /// The segments of a path, without dot segments.
    private static func segments(of path: ArraySlice<UInt8>) throws(WebServiceError) -> [ArraySlice<UInt8>] {
        guard !path.contains(UInt8(ascii: "\\")) else {
            throw WebServiceError(refusing: "The path contains a backslash. Use slashes, or send the backslash as %5C.")
        }
        guard !path.starts(with: "//".utf8), !hasScheme(path) else {
            throw WebServiceError(
                refusing:
                    "The path is a complete URL, but calls only go below the base URL. Create a proxy for the other "
                    + "server, or put \"./\" before a path whose first segment has a colon."
            )
        }
        let slash = UInt8(ascii: "/")
        let relative = path.first == slash ? path.dropFirst() : path
        var kept: [ArraySlice<UInt8>] = []
        var endsInDots = false
        for segment in relative.split(separator: slash, omittingEmptySubsequences: false) {
            let plain = PercentCoding.decode(segment, plusIsSpace: false)
            endsInDots = plain == "." || plain == ".."
            if !endsInDots {
                guard !climbsWhenDecoded(plain) else { throw climbing }
                kept.append(segment)
            } else if plain == ".." {
                guard kept.popLast() != nil else { throw climbing }
            }
        }
        return endsInDots ? kept + [[]] : kept
    }

    private static var climbing: WebServiceError {
        WebServiceError(
            refusing: "The path leads above the base URL with \"..\". Remove that, or choose another base URL."
        )
    }

    /// Whether servers that decode before they split, or that know segment parameters, may see ".." in a segment.
    private static func climbsWhenDecoded(_ plain: String) -> Bool {
        let parts = plain.utf8.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
        return parts.contains { part in part.prefix { $0 != UInt8(ascii: ";") }.elementsEqual("..".utf8) }
    }

    /// Whether a text begins like an absolute URI (RFC 3986 §3.1), ignoring leading spaces.
    private static func hasScheme(_ path: ArraySlice<UInt8>) -> Bool {
        let text = path.drop { $0 == UInt8(ascii: " ") }
        let scheme = text.prefix(while: \.isSchemeCharacter)
        guard let first = scheme.first, scheme.endIndex < text.endIndex else { return false }
        return first.isLetter && text[scheme.endIndex] == UInt8(ascii: ":")
    }
}

/// The service behind a ``WebServiceProxy``: its URL and its errors.
struct ProxyService: HttpService {
    let baseURL: URL

    var apiUrl: any UrlConvertible { baseURL }

    func mapError(_ error: any Error) -> any Error {
        guard let error = error as? ServiceError else { return error }
        switch error.code {
        case .unacceptableStatus:
            guard let response = error.response else { return error }
            return WebServiceError(response, because: error)
        case .encodingFailed:
            return error.cause ?? error
        case .decodingFailed where error.response != nil:
            // From `accept`; a transport that cannot decode a content has no response, and its cause is its own affair.
            return error.cause ?? error
        default:
            return error.urlErrorOfSameMeaning ?? error
        }
    }
}
