// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A request as a ``ServiceMock`` received it, below the whole pipeline.
public struct MockRequest: Sendable {
    /// The request.
    public let urlRequest: URLRequest
    /// Its content, read to the end.
    public let content: Data

    /// Its method.
    public var method: HttpMethod { HttpMethod(rawValue: urlRequest.httpMethod ?? "GET") }
    /// Its URL.
    public var url: URL? { urlRequest.url }
    /// Its header fields.
    public var fields: HeaderFields { HeaderFields(urlRequest.allHTTPHeaderFields ?? [:]) }
    /// Its path, percent-decoded, such as `/api/v1/status`.
    public var path: String { urlRequest.url.map { $0.path(percentEncoded: false) } ?? "" }
    /// Its query arguments.
    public var query: HttpQuery { HttpQuery(encoded: urlRequest.url?.query(percentEncoded: true) ?? "") }

    /// Its content, from JSON.
    public func decoded<Value: Decodable>(as type: Value.Type, by decoder: JSONDecoder = ServiceJSON.decoder()) throws
        -> Value
    {
        try decoder.decode(type, from: content)
    }

    /// Its method and path.
    var title: String { "\(method.rawValue) \(path)" }
}

/// The response of a ``ServiceMock``.
public struct MockResponse: Sendable {
    enum Outcome: Sendable {
        case response(status: Int, fields: HeaderFields, content: Data)
        case failure(any Error)
    }

    let outcome: Outcome

    /// A status, with optional fields and content.
    public static func status(
        _ status: Int,
        fields: HeaderFields = HeaderFields(),
        content: Data = Data()
    ) -> MockResponse {
        MockResponse(outcome: .response(status: status, fields: fields, content: content))
    }

    /// Content with a type.
    public static func content(
        _ content: String,
        type: String = "application/json",
        status: Int = 200,
        fields: HeaderFields = HeaderFields()
    ) -> MockResponse {
        MockResponse.content(Data(content.utf8), type: type, status: status, fields: fields)
    }

    /// Content with a type.
    public static func content(
        _ content: Data,
        type: String,
        status: Int = 200,
        fields: HeaderFields = HeaderFields()
    ) -> MockResponse {
        var fields = fields
        if !fields.contains(.contentType) { fields[.contentType] = type }
        return .status(status, fields: fields, content: content)
    }

    /// A value as JSON.
    ///
    /// - Throws: any error of the encoder.
    public static func json(
        _ value: some Encodable,
        encoder: JSONEncoder = ServiceJSON.encoder(),
        status: Int = 200,
        fields: HeaderFields = HeaderFields()
    ) throws -> MockResponse {
        .content(try encoder.encode(value), type: "application/json", status: status, fields: fields)
    }

    /// No response: the exchange fails, as if a connection broke.
    public static func failure(_ error: any Error) -> MockResponse { MockResponse(outcome: .failure(error)) }

    func answer(_ request: MockRequest) throws -> Response {
        switch outcome {
        case .response(let status, let fields, let content):
            Response(
                status: StatusCode(rawValue: status),
                fields: fields,
                body: ResponseBody(ByteChunk(copying: content)),
                url: request.url
            )
        case .failure(let error): throw error
        }
    }
}
