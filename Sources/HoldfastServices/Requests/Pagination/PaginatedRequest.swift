// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A request for one page of another request's result; otherwise it is like that request.
public struct PaginatedRequest<Base: Request>: Request {
    public typealias Result = Base.Result

    /// The request whose result comes in pages.
    public let base: Base
    /// How this page is requested.
    public let step: Pagination<Base.Result>.Step
    /// Where the service's credentials belong; nil: nowhere that is known, so no URL of a page is asked.
    let home: URL?

    init(_ base: Base, step: Pagination<Base.Result>.Step, home: URL?) {
        self.base = base
        self.step = step
        self.home = home
    }

    public var url: (any UrlConvertible)? {
        if case .url(let url) = step.form { url } else { base.url }
    }

    public var usesSecureProtocol: Bool? {
        if case .url = step.form { nil } else { base.usesSecureProtocol }
    }

    public var routes: HttpRoute {
        get throws {
            guard case .url(let url) = step.form else { return try base.routes }
            guard home.map({ url.isSameOrigin(as: $0) }) ?? false else {
                throw ServiceError(
                    .badRequest,
                    "The next page is at another origin, which must not see this service's credentials; ask for it by a request "
                        + "and a service of its own.",
                    progress: .notSent
                )
            }
            return HttpRoute()
        }
    }

    public var query: HttpQuery {
        get throws {
            if case .query(let query) = step.form { try base.query + query } else { HttpQuery() }
        }
    }

    public var method: HttpMethod { base.method }
    public var header: HttpHeader { get throws { try base.header } }
    public var body: HttpBody { get throws { try base.body } }
    public var authorizationRequirement: AuthorizationRequirement { base.authorizationRequirement }
    public var acceptedStatusCodes: ClosedRange<Int> { base.acceptedStatusCodes }
    public var priority: RequestPriority { base.priority }
    public var timeout: Duration? { base.timeout }
    public var options: CallOptions { base.options }
    public var contentLimit: Int { base.contentLimit }

    public func prepare(_ request: URLRequest) async throws -> URLRequest { try await base.prepare(request) }

    public func receive(_ response: inout Response) async throws -> Base.Result { try await base.receive(&response) }

    public func accept(_ response: Response, content: Data) throws -> Base.Result {
        try base.accept(response, content: content)
    }

    public func decode(_ data: Data) throws -> Base.Result { try base.decode(data) }

    public func handle(_ error: any Error, response: Response) -> ErrorHandling {
        base.handle(error, response: response)
    }
}
