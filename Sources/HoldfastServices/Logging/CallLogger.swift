// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Logs what is sent and what comes back, through a closure and without credentials.
///
/// As a `ServiceHook`, among the hooks of a pipeline or a service, it sees the call when it is scheduled and when it ends. As a
/// ``RequestHook``, among a service's `requestHooks`, it sees the typed call and knows its name. Use it as only one of the two.
/// Each message is one text of several lines: what happened, then header fields, then content if ``bodyLimit`` allows it.
///
/// These are hidden: Authorization, Cookie, Set-Cookie, Proxy fields, the call's `credentialFields`, the user in a URL, and
/// every argument, field and JSON property whose name is secret by ``redaction``. Their values are hidden wherever else they
/// occur in the same message. Content is shown if it is JSON or a form and in memory; streams and files are never read.
public struct CallLogger: Sendable {
    /// Which calls are logged; all by default.
    public var filter: Filter = .all
    /// What is hidden.
    public var redaction = Redaction()
    /// The most characters of content to show; 0, the default: none.
    public var bodyLimit = 0
    /// Whether header fields are shown; true by default.
    public var showsFields = true
    /// The most characters of a URL or a field's value to show, at least 16; 512 by default.
    public var textLimit = 512

    private let write: @Sendable (String) -> Void

    /// Creates a logger that calls `write` with its messages, on whatever task a call runs.
    public init(_ write: @escaping @Sendable (String) -> Void) { self.write = write }

    /// Which calls are logged.
    public struct Filter: Sendable {
        /// What a filter decides by.
        public struct Subject: Sendable {
            /// The host, in lower case; nil if unknown, as for a typed call that failed without a response.
            public let host: String?
            /// The name of the call: `MyService.CheckStatus` for an endpoint, `MyRequest` for another request; if the logger is
            /// a `ServiceHook`, the call's `CallOptions.operationName`.
            public let operationName: String?
        }

        let isIncluded: @Sendable (Subject) -> Bool

        /// Creates a filter from a closure.
        public init(_ isIncluded: @escaping @Sendable (Subject) -> Bool) { self.isIncluded = isIncluded }

        /// All calls.
        public static let all = Filter { _ in true }

        /// Calls to these hosts and their subdomains; if the host is unknown, the call is logged.
        public static func hosts(_ hosts: String...) -> Filter {
            let hosts = hosts.map { $0.lowercased() }
            return Filter { subject in
                guard let host = subject.host else { return true }
                return hosts.contains { host == $0 || host.hasSuffix(".\($0)") }
            }
        }

        /// Typed calls by name: of a service, such as `MyService`, of one of its endpoints, such as `MyService.CheckStatus`, or
        /// of a request, such as `MyRequest`.
        public static func operations(_ names: String...) -> Filter {
            Filter { subject in
                guard let operation = subject.operationName else { return false }
                return names.contains { operation == $0 || operation.hasPrefix("\($0).") }
            }
        }
    }

    /// Writes a message with what `add` adds to it, if the call is to be logged.
    private func log(_ message: CallMessage?, add: (inout CallMessage) -> Void) {
        guard var message else { return }
        add(&message)
        write(message.text)
    }

    /// A message to build; nil if the call is not to be logged.
    private func message(
        _ title: String,
        host: String?,
        operationName: String?,
        credentials: [FieldName]
    ) -> CallMessage? {
        let subject = Filter.Subject(host: host?.lowercased(), operationName: operationName)
        guard filter.isIncluded(subject) else { return nil }
        return CallMessage(self, title: title, credentials: Set(credentials))
    }
}

extension CallLogger: ServiceHook {
    public func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        log(message(request, context: context)) { message in
            message.addFields(of: request)
            message.add(context.body, type: request.contentType)
        }
        return nil
    }

    public func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws
    {
        log(ending(request, context: context)) { $0.add(response) }
    }

    public func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        log(ending(request, context: context)) { $0.add(error) }
        return nil
    }

    public func onCancel(_ request: URLRequest, _ context: CallContext) {
        log(ending(request, context: context)) { $0.addCancellation() }
    }

    private func message(_ request: URLRequest, context: CallContext) -> CallMessage? {
        let (id, name) = (context.callID.description, context.options.operationName)
        var message = message(
            name.map { "\(id) \($0)" } ?? id,
            host: request.url?.host,
            operationName: name,
            credentials: context.options.credentialFields
        )
        message?.add(request)
        return message
    }

    private func ending(_ request: URLRequest, context: CallContext) -> CallMessage? {
        var message = message(request, context: context)
        message?.meet(context.body, type: request.contentType)
        return message
    }
}

extension CallLogger: RequestHook {
    public func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result? {
        log(message(request, urlRequest: urlRequest)) { message in
            message.addFields(of: urlRequest)
            if let body = content(of: request, sentAs: urlRequest) { message.add(body.content, type: body.contentType) }
        }
        return nil
    }

    public func onSuccess<R: Request>(
        _ request: R,
        _ urlRequest: URLRequest,
        result: R.Result,
        response: Response
    ) async {
        log(message(request, urlRequest: urlRequest)) { message in
            if let body = content(of: request, sentAs: urlRequest) {
                message.meet(body.content, type: body.contentType)
            }
            message.add(response)
        }
    }

    public func onFailure<R: Request>(_ request: R, _ error: any Error) async {
        let name = CallLogger.operationName(of: request)
        let host = (error as? ServiceError)?.response?.url?.host
        let credentials = request.options.credentialFields
        log(message(name, host: host, operationName: name, credentials: credentials)) { message in
            if let body = try? request.body.encode() { message.meet(body.content, type: body.contentType) }
            message.add(error)
        }
    }

    public func onCancel<R: Request>(_ request: R) {
        let name = CallLogger.operationName(of: request)
        log(message(name, host: nil, operationName: name, credentials: [])) { $0.addCancellation() }
    }

    private func message<R: Request>(_ request: R, urlRequest: URLRequest) -> CallMessage? {
        let name = CallLogger.operationName(of: request)
        let fields = (urlRequest.allHTTPHeaderFields ?? [:]).keys.compactMap { FieldName($0) }
        // A service may put its credential into any unknown field, and it is not known here which one.
        let unknown = fields.filter { !redaction.shownFields.contains($0) }
        let credentials = request.options.credentialFields + unknown
        var message = message(name, host: urlRequest.url?.host, operationName: name, credentials: credentials)
        message?.add(urlRequest)
        return message
    }

    /// The content as it was sent; if it is not in memory, only its type.
    private func content<R: Request>(of request: R, sentAs urlRequest: URLRequest) -> HttpBody.Encoded? {
        guard let data = urlRequest.httpBody else { return try? request.body.encode() }
        return HttpBody.Encoded(contentType: urlRequest.contentType, content: .data(data))
    }

    /// The name of a typed call in logs and for observers.
    static func operationName<R: Request>(of request: R) -> String {
        if let page = request as? any PageRequest { return operationName(of: page.base) }
        return (type(of: request) as? any EndpointRequest.Type)?.callName ?? String(describing: R.self)
    }
}

extension EndpointRequest {
    fileprivate static var callName: String { "\(Target.Service.self).\(Target.self)" }
}

extension URLRequest {
    fileprivate var contentType: String? { value(forHTTPHeaderField: "Content-Type") }
}
