// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast
public import HoldfastSemantics

/// A canned answer: which requests it is for, and what they get.
public struct MockData: Sendable {
    /// What a mock answers with; new kinds may be added.
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
        /// A file, read anew for each request.
        public static func file(_ url: URL) -> Content { Content(kind: .file(url)) }
    }

    /// The URL, in its canonical spelling. One without a query is for requests with any query and with none; one with a query is
    /// for that query, whatever the order of its names.
    public let target: TargetURI
    /// The method; nil: any.
    public let method: HttpMethod?
    /// Fields that a request must have, each with this value.
    public let requestFields: HttpHeader
    /// The status of the answer.
    public let status: StatusCode
    /// The fields of the answer.
    public let fields: HttpHeader
    /// The content of the answer.
    public let content: Content

    /// A mock of requests to a URL.
    ///
    /// - Parameters:
    ///   - url: an absolute http or https URL; user information and fragment are ignored.
    ///   - method: nil, the default: any.
    ///   - requestFields: what a request must have beside; nothing by default.
    ///   - status: 200 by default.
    ///   - fields: none by default.
    ///   - content: empty by default; not sent in answer to HEAD.
    /// - Throws: `ServiceError` `.badRequest` where the URL is none, or the status is not final (200 to 599).
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

    /// Whether this is for a request, and how much of it the mock names: a query counts most, then each field, then the method.
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

    /// How specific a mock is that fits.
    struct Fit: Comparable {
        let hasQuery: Bool
        let fieldCount: Int
        let hasMethod: Bool

        private var rank: (Int, Int, Int) { (hasQuery ? 1 : 0, fieldCount, hasMethod ? 1 : 0) }

        static func < (left: Fit, right: Fit) -> Bool { left.rank < right.rank }
    }
}
