// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension CallLogger: RequestHook {
    public func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result? {
        guard var message = message(request, urlRequest: urlRequest) else { return nil }
        message.addFields(of: urlRequest)
        if let body = content(of: request, urlRequest) { message.add(body.content, type: body.contentType) }
        write(message)
        return nil
    }

    public func onSuccess<R: Request>(
        _ request: R,
        _ urlRequest: URLRequest,
        result: R.Result,
        response: Response
    ) async {
        guard var message = ending(request, urlRequest: urlRequest) else { return }
        message.add(response)
        message.add(response.body, type: response.fields[.contentType])
        write(message)
    }

    public func onFailure<R: Request>(_ request: R, _ error: any Error) async {
        let url = (error as? ServiceError)?.response?.url
        guard includes(host: url?.host, operationName: operationName(of: request)) else { return }
        var message = message(operationName(of: request), credentials: request.options.credentialFields)
        if let body = try? request.body.encode() { message.meet(body.content, type: body.contentType) }
        message.add(error)
        write(message)
    }

    public func onCancel<R: Request>(_ request: R) {
        guard includes(host: nil, operationName: operationName(of: request)) else { return }
        var message = message(operationName(of: request), credentials: [])
        message.addCancellation()
        write(message)
    }

    private func message<R: Request>(_ request: R, urlRequest: URLRequest) -> CallMessage? {
        let name = operationName(of: request)
        guard includes(host: urlRequest.url?.host, operationName: name) else { return nil }
        let fields = (urlRequest.allHTTPHeaderFields ?? [:]).keys.compactMap { FieldName($0) }
        // A service may put its credential into any unknown field, and it is not known here which one.
        let unknown = fields.filter { !redaction.shownFields.contains($0) }
        var message = message(name, credentials: request.options.credentialFields + unknown)
        message.add(urlRequest)
        return message
    }

    private func ending<R: Request>(_ request: R, urlRequest: URLRequest) -> CallMessage? {
        guard var message = message(request, urlRequest: urlRequest) else { return nil }
        if let body = content(of: request, urlRequest) { message.meet(body.content, type: body.contentType) }
        return message
    }

    private func operationName<R: Request>(of request: R) -> String { CallLogger.operationName(of: request) }

    /// The name of a typed call in logs and for observers.
    static func operationName<R: Request>(of request: R) -> String {
        (request as? any EndpointRequest).map { CallLogger.name(of: $0) } ?? String(describing: R.self)
    }

    private static func name<Call: EndpointRequest>(of call: Call) -> String {
        "\(Call.Target.Service.self).\(Call.Target.self)"
    }

    /// The content as it was sent; if it is not in memory, only its type.
    private func content<R: Request>(of request: R, _ urlRequest: URLRequest) -> HttpBody.Encoded? {
        guard let data = urlRequest.httpBody else { return try? request.body.encode() }
        let type = urlRequest.value(forHTTPHeaderField: "Content-Type")
        return HttpBody.Encoded(contentType: type, content: .data(data))
    }
}
