// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

/// Why a ``ServiceMock`` refused a request, or was not satisfied at the end.
public struct MockFailure: LocalizedError, Sendable, CustomStringConvertible {
    /// The kind of failure; new ones may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word.
        public let description: String

        private init(_ description: String) { self.description = description }

        /// A request was received and none was expected.
        public static let noExpectation = Code("no-expectation")
        /// Another endpoint was expected.
        public static let wrongType = Code("wrong-type")
        /// Another method was expected.
        public static let wrongMethod = Code("wrong-method")
        /// Another path was expected.
        public static let wrongPath = Code("wrong-path")
        /// Other input was expected, or `validate` refused the request.
        public static let wrongInput = Code("wrong-input")
        /// Expected requests were not received.
        public static let unmetExpectations = Code("unmet-expectations")
    }

    /// The kind of failure.
    public let code: Code
    /// What was expected and what was received.
    public let message: String
    /// What `validate` threw.
    public let cause: (any Error)?

    init(_ code: Code, message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    public var errorDescription: String? { message }
    public var description: String { "\(code): \(message)" + (cause.map { " (\($0))" } ?? "") }

    /// The failure in the causes of an error, such as a `ServiceError` or an ``EndpointError``.
    public init?(in error: any Error) {
        var next: (any Error)? = error
        // Chains of causes are short, but this is not guaranteed.
        for _ in 0..<16 {
            switch next {
            case let failure as MockFailure:
                self = failure
                return
            case let error as ServiceError: next = error.cause
            case let error as EndpointError: next = error.cause
            default: return nil
            }
        }
        return nil
    }
}

/// One request that a ``ServiceMock`` expects, and the response to it.
struct MockExpectation: Sendable {
    /// What is expected, in words.
    let title: String
    let respond: MockResponse
    let check: @Sendable (_ request: MockRequest, _ call: MockedCall?) throws(MockFailure) -> Void

    /// Expects a request by method and path.
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
                throw MockFailure(.wrongMethod, message: "Expected \(title), but received \(request.title).")
            }
            guard MockExpectation.path(of: request, is: path) else {
                let came =
                    path.contains("://") ? "\(request.title) to \(request.url?.host ?? "no host")" : request.title
                throw MockFailure(.wrongPath, message: "Expected \(title), but received \(came).")
            }
            try MockExpectation.validate(request, title: title, validate: validate)
        }
    }

    /// Expects a call of an endpoint.
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
                        "Expected \(title), but received \(request.title), and its call is unknown. Create the client with "
                        + "mock.client(of:), or expect it by method and path."
                )
            }
            guard call.target == ObjectIdentifier(Target.self) else {
                throw MockFailure(
                    .wrongType,
                    message: "Expected \(title), but received \(call.name), as \(request.title)."
                )
            }
            if let path, !MockExpectation.isSame(path, as: call.path) {
                throw MockFailure(.wrongPath, message: "Expected \(title), but received it at \(call.path).")
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
                message: "\(title) was received, but `validate` refused it; see the cause.",
                cause: error
            )
        }
    }

    /// Matches a URL if it has a scheme, a whole path if it begins with a slash, and otherwise the last segments.
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

    /// Whether two endpoint paths are the same; a leading slash makes no difference, because both are below the service's URL.
    private static func isSame(_ path: String, as other: String) -> Bool {
        func rest(_ path: String) -> Substring { path.hasPrefix("/") ? path.dropFirst() : path[...] }
        return rest(path) == rest(other)
    }
}

/// What is known about the typed call that a request belongs to.
struct MockedCall: Sendable {
    let name: String
    let target: ObjectIdentifier?
    let path: String
    let coding: EndpointCoding?
}

extension EndpointInput {
    /// Compares the expected input with the received one.
    fileprivate func check(_ request: MockRequest, coding: EndpointCoding, title: String) throws(MockFailure) {
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
            throw MockFailure(.wrongInput, message: "\(title) was received with other input than expected.")
        }
    }
}

extension HttpBody {
    /// Whether this is the content of a request, ignoring how JSON is written and which boundary is used.
    fileprivate func isSame(as request: MockRequest) throws -> Bool {
        let encoded = try encode()
        let expected: Data
        switch encoded.content.form {
        case .bytes(let bytes): expected = bytes.data
        case .none: expected = Data()
        // Files are not read here: `validate` can check what was received.
        default: return true
        }
        if expected == request.content { return true }
        let type = request.fields[.contentType]
        if let first = HttpBody.boundary(in: encoded.contentType), let second = HttpBody.boundary(in: type) {
            // Each byte becomes one character, so that different bytes are different texts.
            let text = String(data: expected, encoding: .isoLatin1)?.replacing(first, with: second)
            return text == String(data: request.content, encoding: .isoLatin1)
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
