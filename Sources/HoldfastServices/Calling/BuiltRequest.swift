// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A typed request, ready to be sent.
struct BuiltRequest: Sendable {
    /// The head; the content is in `body`.
    var urlRequest: URLRequest
    var body: RequestBody
    /// The content type that the encoder gave, for when the head is built again.
    var contentType: String?
    /// Fields that hold a credential, besides Authorization and Cookie.
    var credentialFields: [FieldName] = []
    /// Whether the service, or the request itself, gave it a credential.
    var bearsCredential = false

    /// The request as hooks see it: with its content, if that is in memory.
    func showing(_ urlRequest: URLRequest) -> URLRequest {
        guard case .bytes(let bytes) = body.form else { return urlRequest }
        var shown = urlRequest
        shown.httpBody = bytes.data
        return shown
    }
}

/// A head without its content type, before `prepare`.
private struct DraftedRequest {
    var urlRequest: URLRequest
    var header: HttpHeader
    /// The fields that the service adds to each of its calls, its credential included.
    var ofService: HttpHeader
    /// The fields of the request itself.
    var own: HttpHeader
    var bearsCredential: Bool

    /// The head with all fields; a name that occurs several times, in whatever case, becomes one line.
    func completed(contentType: String?) -> URLRequest {
        var header = header
        if let contentType, !header.contains(.contentType) { header[.contentType] = contentType }
        var urlRequest = urlRequest
        for line in header { urlRequest.setValue(header[line.name], forHTTPHeaderField: line.name.rawName) }
        return urlRequest
    }
}

extension ServiceClient {
    /// Builds a request: URL, scheme, method, route, query, header and body, with `prepare` as the last step.
    func build<R: Request>(_ request: R) async throws -> BuiltRequest {
        let draft = try await draft(request)
        let encoded = try ServiceError.encoding("The content of \(R.self)") { try request.body.encode() }
        let completed = draft.completed(contentType: encoded.contentType)
        var prepared = try await request.prepare(completed)
        var body = encoded.content
        if prepared.httpBody != nil || prepared.httpBodyStream != nil {
            body = .carried(by: prepared)
            // A stream has to stay where the transport looks for it.
            if prepared.httpBodyStream == nil { prepared.httpBody = nil }
        }
        guard RequestMethod(validating: prepared.httpMethod ?? "GET") != nil else {
            throw ServiceError.badRequest(
                "The request's method is invalid (RFC 9110 §9.1). Use a token such as PATCH, without spaces or line breaks."
            )
        }
        if !body.isNone, ["GET", "HEAD", "TRACE"].contains(prepared.httpMethod ?? "GET") {
            throw ServiceError.badRequest(
                "A GET, HEAD or TRACE request has no content (RFC 9110 §9.3); send it by POST, or as query arguments."
            )
        }
        return BuiltRequest(
            urlRequest: prepared,
            body: body,
            contentType: encoded.contentType,
            credentialFields: CredentialFields.names(
                ofService: draft.ofService,
                own: draft.own,
                added: prepared.fieldsAdded(to: completed.allHTTPHeaderFields ?? [:])
            ),
            bearsCredential: draft.bearsCredential || prepared.value(forHTTPHeaderField: "Authorization") != nil
        )
    }

    /// The head of a request with its current fields; the content stays as it was built.
    func head<R: Request>(of request: R, contentType: String?) async throws -> URLRequest {
        let draft = try await draft(request)
        return try await request.prepare(draft.completed(contentType: contentType))
    }

    private func draft<R: Request>(_ request: R) async throws -> DraftedRequest {
        var urlRequest = URLRequest(url: try url(of: request))
        urlRequest.httpMethod = request.method.rawValue
        urlRequest.networkServiceType = request.priority.networkServiceType
        let isWithout = request.authorizationRequirement == .none
        let shared = (request as? any SharedFieldsBearing)?.sharedFields ?? HttpHeader()
        var ofService = service.header + (try await service.asyncHeader) + shared
        var header = ofService
        let credential = isWithout ? nil : try await service.authorization.line
        if isWithout { header[.authorization] = nil }
        if let credential {
            header[credential.name] = credential.value
            ofService[credential.name] = credential.value
        }
        let own = try request.header
        header = header + own
        if request.authorizationRequirement == .required, credential == nil, header[.authorization] == nil,
            pipeline.configuration.authorization?.covers(urlRequest) != true
        {
            throw ServiceError(
                .authorizationFailed,
                "This request requires a credential, and the service has none. Log in first.",
                progress: .notSent
            )
        }
        return DraftedRequest(
            urlRequest: urlRequest,
            header: header,
            ofService: ofService,
            own: own,
            bearsCredential: credential != nil || ofService.contains { $0.name.mayHoldCredential }
        )
    }

    /// The URL a request goes to.
    func url<R: Request>(of request: R) throws -> URL {
        try url(of: request, route: try request.routes, query: try request.query)
    }

    private func url<R: Request>(of request: R, route: HttpRoute, query: HttpQuery) throws -> URL {
        try ServiceURL.make(
            base: (request.url ?? service.apiUrl).urlText,
            isSecure: request.usesSecureProtocol,
            isSecureByDefault: service.usesSecureProtocol,
            route: route,
            query: query
        )
    }

    /// The call of a request that could not be built, with as much of its URL as is valid.
    func subject<R: Request>(of request: R) -> CallSubject {
        let url = (try? url(of: request)) ?? (try? url(of: request, route: HttpRoute(), query: HttpQuery()))
        return CallSubject(
            method: request.method,
            url: url.map { RedactedURL($0) },
            operationName: CallLogger.operationName(of: request)
        )
    }
}

extension RequestPriority {
    /// The service type for the platform; Foundation on Linux has none for urgent requests.
    fileprivate var networkServiceType: URLRequest.NetworkServiceType {
        switch self {
        case .utility: .background
        case .default: .default
        case .userInitiated:
            #if canImport(Darwin)
                .responsiveData
            #else
                .default
            #endif
        }
    }
}

extension BuiltRequest {
    /// The same request to another URL, as after a 307 (RFC 9110 §15.4); nil if it cannot be sent again.
    ///
    /// - credentialFields: the fields to remove, besides Authorization and Cookie, if the origin changes.
    func redirected(
        to url: URL,
        withholding credentialFields: [FieldName]
    ) -> (request: BuiltRequest, isForeign: Bool)? {
        guard body.isReplayable, let text = urlRequest.url?.absoluteString, let target = try? TargetURI(text) else {
            return nil
        }
        let head = RequestHead(
            method: RequestMethod(rawValue: urlRequest.httpMethod ?? "GET"),
            target: target,
            fields: HeaderFields(urlRequest.allHTTPHeaderFields ?? [:])
        )
        let answer = ResponseHead(status: .temporaryRedirect, fields: ["Location": url.absoluteString])
        guard let redirection = Redirection.next(after: answer, to: head) else { return nil }
        var following = self
        following.urlRequest.url = URL(string: redirection.location)
        following.urlRequest.leaveBehind(redirection, from: head.fields, credentialFields: credentialFields)
        return (following, redirection.crossesOrigin)
    }
}

/// Decides which fields of a typed call are credentials, however they came into the request.
///
/// A credential determines the cache partition, is removed when a redirect leaves the origin, and is not logged. The same list
/// of harmless fields applies to what hooks and `PipelineConfiguration.authorization` add.
enum CredentialFields {
    /// The names of the fields that hold a credential, besides those of `CallOptions.credentialFields`, and besides
    /// Authorization and Cookie, which always do.
    ///
    /// - Parameters:
    ///   - ofService: what each call gets: a service's `header`, `asyncHeader` and `authorization`, or a proxy's `headers`.
    ///   - own: the request's own fields; a credential if the name suggests it.
    ///   - added: the names of the fields that `prepare` or `configure` added or changed, such as a signature.
    static func names(ofService: HttpHeader, own: HttpHeader, added: [String]) -> [FieldName] {
        let given = ofService.map(\.name) + added.compactMap { FieldName($0) }
        let named = own.map(\.name).filter { secrets.isSecret($0.rawName) }
        return Set(given + named)
            .filter { $0 != .authorization && $0 != .cookie && $0.mayHoldCredential }
            .sorted { $0.canonicalName < $1.canonicalName }
    }

    private static let secrets = Redaction()
}

/// A request with fields that all requests of its kind get, like those of a service.
protocol SharedFieldsBearing: Request {
    var sharedFields: HttpHeader { get }
}
