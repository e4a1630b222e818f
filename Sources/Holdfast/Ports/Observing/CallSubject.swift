// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// What a call asks for, as far as those who observe it need to know: no field, no content, no principal.
public struct CallSubject: Sendable {
    /// Every event of a call bears it, so it is one reference.
    private final class Content: Sendable {
        let method: RequestMethod
        let url: RedactedURL?
        let operationName: String?

        init(_ method: RequestMethod, _ url: RedactedURL?, _ operationName: String?) {
            self.method = method
            self.url = url
            self.operationName = operationName
        }
    }

    private let content: Content

    /// A subject of one's own, for tests of observers.
    public init(method: RequestMethod, url: RedactedURL?, operationName: String? = nil) {
        content = Content(method, url, operationName)
    }

    /// The subject of a request.
    init(_ request: URLRequest, _ context: CallContext, operationName: String?) {
        let url = request.url.map { RedactedURL($0) }
        self.init(method: context.method(of: request), url: url, operationName: operationName)
    }

    /// The method of the request, or of the hop of it that is being made.
    public var method: RequestMethod { content.method }
    /// The URL, which prints without credentials.
    public var url: RedactedURL? { content.url }
    /// What the caller calls the operation: ``CallOptions/operationName``.
    public var operationName: String? { content.operationName }
}
