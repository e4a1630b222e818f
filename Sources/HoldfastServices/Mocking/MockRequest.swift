// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast
public import HoldfastSemantics
internal import HoldfastStorage

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

extension RequestBody {
    /// All bytes; content that can be read only once is consumed.
    func allBytes(of request: URLRequest) async throws -> Data {
        switch form {
        case .none: Data()
        case .bytes(let bytes): bytes.withUnsafeBytes { Data($0) }
        case .file(let url): try Data(contentsOf: url)
        case .factory(_, let make): try await ResponseBody(try await make()).data()
        case .oneShot(_, let source): try await ResponseBody(source).data()
        case .requestStream: request.httpBodyStream.map { RequestBody.bytes(in: $0) } ?? Data()
        }
    }

    private static func bytes(in stream: InputStream) -> Data {
        stream.open()
        defer { stream.close() }
        var all = Data()
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = stream.read(&buffer, maxLength: buffer.count)
            guard count > 0 else { return all }
            all += buffer[..<count]
        }
    }
}
