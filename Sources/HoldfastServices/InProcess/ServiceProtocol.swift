// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

// The seed's names.
// swift-format-ignore: TypeNamesShouldBeCapitalized
/// Gives the response to the caller: the first of the three closures of ``ServiceProtocol``.
public typealias responseReturnBlock = @Sendable (_ response: HTTPURLResponse) -> Void

// swift-format-ignore: TypeNamesShouldBeCapitalized
/// Gives bytes to the caller, nil for none: the second of the three closures of ``ServiceProtocol``.
public typealias dataReturnBlock = @Sendable (_ data: Data?) -> Void

// swift-format-ignore: TypeNamesShouldBeCapitalized
/// Ends the call: the third of the three closures of ``ServiceProtocol``.
public typealias requestCompleteBlock = @Sendable () -> Void

/// A service in this process that has no instances and answers through three closures.
///
/// **Choose.** For services that were written this way. New code should use ``InProcessService``, which is `async`, has
/// instances and cannot break the contract below. **Use.** ``ServiceRouter/register(_:)-(ServiceProtocol.Type)``.
/// **Implement.** Keep no state, or keep it behind a lock: nothing is guaranteed about when, on what thread or how often a
/// service is called. Blocking is allowed, because a service is called on a thread outside the pool that runs tasks.
///
/// The contract of each call: `responseReturn` once, then `dataReturn` any number of times, then `requestComplete` once; from
/// any thread, but one after the other. If a service breaks it, the caller is neither left waiting nor given two results:
/// ``ServiceContractViolation/Rule`` says what happens instead.
public protocol ServiceProtocol: Sendable {
    /// The name that the router finds the service by: the first path component of `http://pmapi/<identifier>/…`.
    /// Case-sensitive.
    static var serviceIdentifier: String { get }

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - request: the request that was sent; its content is in `httpBody`, or unread in the `httpBodyStream` that the
    ///     caller gave it, to which no limit applies.
    ///   - response: a template with status 200 and the request's URL; return it unchanged, or make another one from it.
    ///   - responseReturn: gives the response to the caller. Call it once, before the others.
    ///   - dataReturn: gives bytes to the caller, who gets them at once. May be called any number of times.
    ///   - requestComplete: ends the call. Call it once, after all others.
    static func performRequest(
        _ request: URLRequest,
        response: HTTPURLResponse,
        responseReturn: @escaping responseReturnBlock,
        dataReturn: @escaping dataReturnBlock,
        requestComplete: @escaping requestCompleteBlock
    )

    /// Called after the service was registered with a router; does nothing by default.
    static func registered()

    /// Called after the service was unregistered from a router; does nothing by default. Calls may still be in progress.
    static func unregistered()
}

extension ServiceProtocol {
    public static func registered() {}
    public static func unregistered() {}
}

/// The HTTP names that a ``ServiceProtocol`` uses.
public enum Http {
    /// The HTTP version in responses of services.
    public static let version = "HTTP/1.1"
    /// The default scheme of a router's URLs.
    public static let scheme = "http"

    /// The method of a request, as services distinguish them; closed, because ``unknown`` stands for all others.
    public enum Method: String, Sendable, Hashable, CaseIterable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case delete = "DELETE"
        /// Any other method; `RequestMethod` says which.
        case unknown = ""

        /// The method of a request; case-sensitive (RFC 9110 §9.1).
        public init(_ request: URLRequest) {
            self = Method(rawValue: request.httpMethod ?? "GET") ?? .unknown
        }

        /// The same method for requests; nil for ``unknown``.
        public var requestMethod: RequestMethod? { self == .unknown ? nil : RequestMethod(rawValue: rawValue) }
    }

    /// The status code of a service's response (RFC 9110 §15); any number can be one: `Http.StatusCode(rawValue: 429)`.
    public struct StatusCode: RawRepresentable, Sendable, Hashable, ExpressibleByIntegerLiteral,
        CustomStringConvertible
    {
        /// The number.
        public let rawValue: Int

        /// Takes any number; a response takes those from 200 to 599.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Takes any number.
        public init(integerLiteral value: Int) { rawValue = value }

        /// Converts the library's type.
        public init(_ status: HoldfastSemantics.StatusCode) { rawValue = status.rawValue }

        /// The same code as the library's type.
        public var statusCode: HoldfastSemantics.StatusCode { HoldfastSemantics.StatusCode(rawValue) }

        public var description: String { String(rawValue) }

        /// 200.
        public static let ok: StatusCode = 200
        /// 201.
        public static let created: StatusCode = 201
        /// 302.
        public static let found: StatusCode = 302
        /// 307.
        public static let temporaryRedirect: StatusCode = 307
        /// 400.
        public static let badRequest: StatusCode = 400
        /// 401.
        public static let unauthorized: StatusCode = 401
        /// 403.
        public static let forbidden: StatusCode = 403
        /// 404.
        public static let notFound: StatusCode = 404
        /// 405; its response must list the allowed methods in a field Allow (RFC 9110 §15.5.6).
        public static let methodNotAllowed: StatusCode = 405
        /// 409.
        public static let conflict: StatusCode = 409
        /// 500.
        public static let internalServerError: StatusCode = 500
        /// 501.
        public static let notImplemented: StatusCode = 501
        /// 504.
        public static let gatewayTimeout: StatusCode = 504
        /// 505: the version of HTTP is not supported.
        public static let notSupported: StatusCode = 505
    }
}

/// A service's breach of the contract of ``ServiceProtocol``'s three closures.
///
/// If the caller cannot get a complete response, it is the `cause` of the call's `ServiceError`. In every case it goes to
/// ``ServiceRouter/Configuration/onContractViolation`` and to the observers of the pipeline above, as an event
/// ``Holdfast/ServiceEvent/Name/serviceContractViolated`` whose detail is its ``description``.
public struct ServiceContractViolation: LocalizedError, Sendable, Hashable, CustomStringConvertible {
    /// A rule of the contract.
    public struct Rule: Sendable, Hashable, CustomStringConvertible {
        /// The rule, and what happened to the call that broke it.
        public let description: String

        private init(_ description: String) { self.description = description }

        /// `responseReturn` was called again: the first response is used, the second is ignored.
        public static let responseReturnedTwice = Rule(
            "responseReturn must be called once; the first response was used, and this one was ignored."
        )
        /// `dataReturn` was called before `responseReturn`: the bytes are ignored, and the call goes on.
        public static let dataBeforeResponse = Rule(
            "dataReturn must not be called before responseReturn; these bytes were ignored."
        )
        /// `requestComplete` was called before `responseReturn`: the call fails with `.protocolError`.
        public static let completedBeforeResponse = Rule(
            "requestComplete must not be called before responseReturn; the call failed."
        )
        /// A closure was called after `requestComplete`: it has no effect.
        public static let calledAfterCompletion = Rule(
            "No closure may be called after requestComplete; this call was ignored."
        )
        /// All three closures were released before `requestComplete` was called: the call, or its body if the response had
        /// already arrived, fails with `.protocolError`.
        public static let neverCompleted = Rule(
            "requestComplete must be called; the service released its closures without calling it, so the call failed."
        )
    }

    /// The service that broke it.
    public let serviceIdentifier: String
    /// The rule that was broken.
    public let rule: Rule

    /// Creates a violation of `rule`.
    public init(_ rule: Rule, serviceIdentifier: String) {
        self.rule = rule
        self.serviceIdentifier = serviceIdentifier
    }

    public var description: String { "Service \(serviceIdentifier): \(rule)" }
    public var errorDescription: String? { description }
}
