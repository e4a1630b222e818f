// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

/// One request that a ``ServiceMock`` expects, and its answer.
struct MockExpectation: Sendable {
    /// What is expected, in words.
    let title: String
    let respond: MockResponse
    let check: @Sendable (_ request: MockRequest, _ call: MockedCall?) throws(MockFailure) -> Void

    /// A request by method and path.
    init(
        _ method: HttpMethod,
        path: String,
        validate: (@Sendable (MockRequest) throws -> Void)?,
        respond: MockResponse
    ) {
        title = "\(method.rawValue) \(path)"
        self.respond = respond
        check = { [title] request, _ throws(MockFailure) in
            guard request.method == method else {
                throw MockFailure(.wrongMethod, message: "Expected \(title); \(request.title) came.")
            }
            guard MockExpectation.path(of: request, is: path) else {
                let came =
                    path.contains("://") ? "\(request.title) to \(request.url?.host ?? "no host")" : request.title
                throw MockFailure(.wrongPath, message: "Expected \(title); \(came) came.")
            }
            try MockExpectation.validate(request, title: title, validate: validate)
        }
    }

    /// A call of an endpoint.
    init<Target: Endpoint>(
        _ type: Target.Type,
        path: String?,
        input: EndpointInput?,
        validate: (@Sendable (MockRequest) throws -> Void)?,
        respond: MockResponse
    ) {
        title = "\(Target.self)" + (path.map { " at \($0)" } ?? "")
        self.respond = respond
        check = { [title] request, call throws(MockFailure) in
            guard let call else {
                throw MockFailure(
                    .wrongType,
                    message:
                        "Expected \(title); \(request.title) came, and which call it belongs to is not known: make the client by "
                        + "mock.client(of:), or expect it by method and path."
                )
            }
            guard call.target == ObjectIdentifier(Target.self) else {
                throw MockFailure(.wrongType, message: "Expected \(title); \(call.name) came, as \(request.title).")
            }
            if let path, !MockExpectation.isSame(path, call.path) {
                throw MockFailure(.wrongPath, message: "Expected \(title); it came at \(call.path).")
            }
            if let input, let coding = call.coding { try input.check(request, coding: coding, title: title) }
            try MockExpectation.validate(request, title: title, validate: validate)
        }
    }

    private static func validate(
        _ request: MockRequest,
        title: String,
        validate: (@Sendable (MockRequest) throws -> Void)?
    ) throws(MockFailure) {
        do {
            try validate?(request)
        } catch {
            throw MockFailure(
                .wrongInput,
                message: "\(title) came, and its `validate` refused it; see the cause.",
                cause: error
            )
        }
    }

    /// A URL where it has a scheme, a whole path where it begins with a slash, else the last segments of one.
    private static func path(of request: MockRequest, is path: String) -> Bool {
        let came = request.path.isEmpty ? "/" : request.path
        if let end = path.firstRange(of: "://")?.upperBound {
            let slash = path[end...].firstIndex(of: "/") ?? path.endIndex
            guard let expected = try? TargetURI(String(path[..<slash])),
                let url = try? TargetURI(request.url?.absoluteString ?? "")
            else { return false }
            return url.isSameOrigin(as: expected) && came == (slash == path.endIndex ? "/" : path[slash...])
        }
        if path.hasPrefix("/") || path.isEmpty { return came == (path.isEmpty ? "/" : path) }
        return came.hasSuffix("/" + path)
    }

    /// Whether two paths of endpoints are one: the first slash says nothing, since both begin at the service's URL.
    private static func isSame(_ first: String, _ second: String) -> Bool {
        func rest(_ path: String) -> Substring { path.hasPrefix("/") ? path.dropFirst() : path[...] }
        return rest(first) == rest(second)
    }
}

/// What is known of a request that comes from a typed call.
struct MockedCall: Sendable {
    let name: String
    let target: ObjectIdentifier?
    let path: String
    let coding: EndpointCoding?
}

extension EndpointInput {
    /// Compares with what came.
    fileprivate func check(
        _ request: MockRequest,
        coding: EndpointCoding,
        title: String
    ) throws(MockFailure) {
        let isSame: Bool
        do {
            let expected = try encode(coding)
            let base = coding.endpoint.baseURLOverride ?? coding.service.baseURL
            let query = HttpQuery(
                items: HttpQuery(encoded: base.query(percentEncoded: true) ?? "").items + expected.query.items
            )
            isSame = try query.encoded == request.query.encoded && expected.body.isSame(as: request)
        } catch {
            throw MockFailure(
                .wrongInput,
                message: "The input that \(title) expects cannot be encoded; see the cause.",
                cause: error
            )
        }
        guard isSame else {
            throw MockFailure(.wrongInput, message: "\(title) came with other input than was expected.")
        }
    }
}

extension HttpBody {
    /// Whether this is the content of a request, however its JSON is written and whatever its boundary.
    fileprivate func isSame(as request: MockRequest) throws -> Bool {
        let encoded = try encode()
        let expected: Data
        switch encoded.content.form {
        case .bytes(let bytes): expected = bytes.withUnsafeBytes { Data($0) }
        case .none: expected = Data()
        // Files are not read here: `validate` can look at what came.
        default: return true
        }
        if expected == request.content { return true }
        let type = request.fields[.contentType]
        if let first = HttpBody.boundary(in: encoded.contentType), let second = HttpBody.boundary(in: type) {
            let text = String(decoding: expected, as: UTF8.self).replacing(first, with: second)
            return text == String(decoding: request.content, as: UTF8.self)
        }
        guard let first = HttpBody.canonical(expected), let second = HttpBody.canonical(request.content) else {
            return false
        }
        return first == second
    }

    private static func boundary(in type: String?) -> String? {
        type.flatMap { $0.firstMatch(of: /boundary="?([^";]+)/) }.map { String($0.1) }
    }

    private static func canonical(_ content: Data) -> Data? {
        (try? JSONSerialization.jsonObject(with: content, options: .fragmentsAllowed)).flatMap { value in
            try? JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed])
        }
    }
}
