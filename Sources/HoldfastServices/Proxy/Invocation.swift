// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

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
            let cause: any Error = own?.of(method, response, content, as: Value.self) ?? error
            throw ServiceError.decodingFailed(as: Value.self, cause: cause, response)
        }
    }

    func decode(_ data: Data) throws -> Value {
        try handler(data, nil)
    }
}

extension Response {
    /// The media type of the content in lower case, without parameters.
    var proxyContentType: String? {
        guard let value = fields[.contentType] else { return nil }
        let type = value.prefix { $0 != ";" && $0 != "," }.trimmingCharacters(in: .whitespaces).lowercased()
        return type.isEmpty ? nil : type
    }
}
