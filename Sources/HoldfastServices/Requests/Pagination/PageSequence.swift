// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// The pages of a result, each requested by its own call when the reader asks for it.
///
/// Ends after the last page, or with an error if a page fails. If you leave the loop early, nothing more is sent. Each
/// iteration starts with the first page. If a page gives itself as the next one, the sequence ends with an error.
public struct PageSequence<Base: Request, Service: HttpService>: AsyncSequence, Sendable {
    public typealias Element = Base.Result
    public typealias Failure = Service.RequestError

    let base: Base
    let pagination: Pagination<Base.Result>
    let client: ServiceClient<Service>

    /// The most pages that are asked for; an API that never comes to an end is not followed for ever.
    static var mostPages: Int { 100_000 }

    public func makeAsyncIterator() -> Iterator { Iterator(pages: self, step: pagination.first) }

    /// Requests one page after the other.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pages: PageSequence
        /// How the next page is asked for; nil where there is none.
        fileprivate var step: Pagination<Base.Result>.Step?
        private var number = 0
        /// The pages that were asked for, as far as they name themselves: by a URL, or by a cursor.
        private var asked: Set<Pagination<Base.Result>.Step> = []
        private var failure: (any Error)?

        fileprivate init(pages: PageSequence, step: Pagination<Base.Result>.Step?) {
            self.pages = pages
            self.step = step
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Service.RequestError) -> Base.Result? {
            try await next()
        }

        public mutating func next() async throws(Service.RequestError) -> Base.Result? {
            if let failure {
                self.failure = nil
                throw pages.client.service.mapError(failure)
            }
            guard let step else { return nil }
            self.step = nil
            let page = try await pages.client.response(
                to: PaginatedRequest(pages.base, step: step, home: try? pages.client.url(of: pages.base))
            )
            advance(after: page, step)
            return page.value
        }

        private mutating func advance(after page: DecodedResponse<Base.Result>, _ current: Pagination<Base.Result>.Step)
        {
            do {
                guard let next = try pages.pagination.next(page, number) else { return }
                number += 1
                asked.insert(current.sent)
                let isKnown = asked.contains(next.sent)
                guard !isKnown, number < PageSequence.mostPages else {
                    let message =
                        isKnown
                        ? "A page names one that was read already as the next; look at how the API says that there are no more "
                            + "pages."
                        : "There are more than \(PageSequence.mostPages) pages; ask for larger ones, or for fewer."
                    throw ServiceError(.protocolError, message, response: page.response)
                }
                step = next
            } catch {
                failure = error
            }
        }
    }
}

extension Request {
    /// The result page by page: `for try await page in request.pages(.numbered(chunk: 50), with: client)`.
    ///
    /// - Parameters:
    ///   - pagination: how the API divides the result.
    ///   - client: the client of the service.
    /// - Returns: the pages; nothing is sent until the first one is read.
    public func pages<Service>(
        _ pagination: Pagination<Result>,
        with client: ServiceClient<Service>
    ) -> PageSequence<Self, Service> {
        PageSequence(base: self, pagination: pagination, client: client)
    }
}

/// A request for a part of another request's result, by whose name it goes.
protocol PageRequest: Request {
    associatedtype Base: Request
    var base: Base { get }
}

/// A request for one page of another request's result; otherwise it is like that request.
public struct PaginatedRequest<Base: Request>: Request, PageRequest {
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

    public var url: (any UrlConvertible)? { if case .url(let url) = step.form { url } else { base.url } }

    public var usesSecureProtocol: Bool? { if case .url = step.form { nil } else { base.usesSecureProtocol } }

    public var routes: HttpRoute {
        get throws {
            guard case .url(let url) = step.form else { return try base.routes }
            guard home.map({ url.isSameOrigin(as: $0) }) ?? false else {
                throw ServiceError.badRequest(
                    "The next page is at another origin, which must not see this service's credentials; ask for it by a request "
                        + "and a service of its own."
                )
            }
            return HttpRoute()
        }
    }

    public var query: HttpQuery {
        get throws { if case .query(let query) = step.form { try base.query + query } else { HttpQuery() } }
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
