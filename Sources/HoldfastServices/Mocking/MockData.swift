// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast
public import HoldfastSemantics

/// A canned response, and the requests it is for.
public struct MockData: Sendable {
    /// The content of a mock's response; new kinds may be added.
    public struct Content: Sendable {
        enum Kind: Sendable {
            case bytes(Data)
            case file(URL)
        }

        let kind: Kind

        /// No content.
        public static let empty = Content(kind: .bytes(Data()))
        /// Bytes.
        public static func data(_ data: Data) -> Content { Content(kind: .bytes(data)) }
        /// Text, as UTF-8.
        public static func text(_ text: String) -> Content { Content(kind: .bytes(Data(text.utf8))) }
        /// A file, read again for each request.
        public static func file(_ url: URL) -> Content { Content(kind: .file(url)) }
    }

    /// The URL, in its canonical form. A URL without a query matches any query and none; one with a query matches that query,
    /// in any order of names.
    public let target: TargetURI
    /// The method; nil means any.
    public let method: HttpMethod?
    /// Fields that a request must have, each with this value.
    public let requestFields: HttpHeader
    /// The status of the response.
    public let status: StatusCode
    /// The fields of the response.
    public let fields: HttpHeader
    /// The content of the response.
    public let content: Content

    /// Creates a mock for requests to a URL.
    ///
    /// - Parameters:
    ///   - url: an absolute http or https URL; user information and fragment are ignored.
    ///   - method: nil, the default, means any.
    ///   - requestFields: fields that a request must also have; none by default.
    ///   - status: 200 by default.
    ///   - fields: none by default.
    ///   - content: empty by default; not sent in response to HEAD.
    /// - Throws: `ServiceError` `.badRequest` if the URL is invalid, or the status is not final (200 to 599).
    public init(
        _ url: any UrlConvertible,
        method: HttpMethod? = nil,
        requestFields: HttpHeader = [:],
        status: Int = 200,
        fields: HttpHeader = [:],
        content: Content = .empty
    ) throws {
        do {
            target = QueryOptions(sortsNames: true).applied(to: try TargetURI(mapping: url.urlText))
        } catch {
            throw ServiceError(
                .badRequest,
                "The URL of a mock is not an absolute http or https URL: \(error)",
                progress: .notSent
            )
        }
        guard (200...599).contains(status) else {
            throw ServiceError(
                .badRequest,
                "The status of a mock is \(status); give it a final one, 200 to 599.",
                progress: .notSent
            )
        }
        self.method = method
        self.requestFields = requestFields
        self.status = StatusCode(rawValue: status)
        self.fields = fields
        self.content = content
    }

    /// Whether this mock matches a request, and how specific it is: a query counts most, then each field, then the method.
    func fit(_ target: TargetURI, method: HttpMethod, header: HttpHeader) -> Fit? {
        guard target.origin == self.target.origin, target.path == self.target.path,
            self.target.query == nil || self.target.query == target.query,
            self.method == nil || self.method == method,
            requestFields.allSatisfy({ header[$0.name] == requestFields[$0.name] })
        else { return nil }
        return Fit(
            hasQuery: self.target.query != nil,
            fieldCount: Set(requestFields.map(\.name)).count,
            hasMethod: self.method != nil
        )
    }

    /// How specific a matching mock is.
    struct Fit: Comparable {
        let hasQuery: Bool
        let fieldCount: Int
        let hasMethod: Bool

        private var rank: (Int, Int, Int) { (hasQuery ? 1 : 0, fieldCount, hasMethod ? 1 : 0) }

        static func < (left: Fit, right: Fit) -> Bool { left.rank < right.rank }
    }
}
