// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What a session's configuration asks for each request, as far as the loading system leaves it to the protocol.
struct InterceptionSettings: Sendable {
    /// What tells one configuration's settings from another's.
    struct Identity: Hashable, Sendable {
        let headers: [String: String]
        let cookieStorage: ObjectIdentifier?
        let setsCookies: Bool
        let acceptsCookies: Bool
        let requestTimeout: TimeInterval
        let resourceTimeout: TimeInterval
        let cachePolicy: UInt
        let following: [ObjectIdentifier]
    }

    let identity: Identity
    /// The protocol classes behind the intercepting one: they load what it cannot.
    let following: [URLProtocol.Type]
    private let fields: SessionFields
    private let fieldsOfHops: SessionFields
    private let cookieStorage: HTTPCookieStorage?
    private let cachePolicy: URLRequest.CachePolicy

    init(_ configuration: URLSessionConfiguration) {
        following = (configuration.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }
        fields = SessionFields(configuration)
        fieldsOfHops = SessionFields(configuration, choosesCookies: true)
        cookieStorage = configuration.httpCookieStorage
        cachePolicy = configuration.requestCachePolicy
        identity = Identity(
            headers: SessionFields.texts(configuration.httpAdditionalHeaders),
            cookieStorage: configuration.httpCookieStorage.map { ObjectIdentifier($0) },
            setsCookies: configuration.httpShouldSetCookies,
            acceptsCookies: configuration.httpCookieAcceptPolicy != .never,
            requestTimeout: configuration.timeoutIntervalForRequest,
            resourceTimeout: configuration.timeoutIntervalForResource,
            cachePolicy: configuration.requestCachePolicy.rawValue,
            following: following.map { ObjectIdentifier($0) }
        )
    }

    /// The request with all that the session would have added; what it says itself stands.
    func complete(_ request: URLRequest) -> URLRequest {
        var request = request
        for line in fields.fields(for: request) {
            request.setValue(line.value, forHTTPHeaderField: line.name.rawName)
        }
        // Those of the transport may be other sessions'.
        request.httpShouldHandleCookies = false
        let defaultTimeout: TimeInterval = 60
        if request.timeoutInterval == defaultTimeout { request.timeoutInterval = identity.requestTimeout }
        if request.cachePolicy == .useProtocolCachePolicy { request.cachePolicy = cachePolicy }
        return request
    }

    /// The time a whole call may take up to its head; nil: no limit but the pipeline's.
    func callTimeout(within own: Duration?) -> Duration? {
        // A week, Foundation's default, is no limit that anybody asked for.
        let week: TimeInterval = 604_800
        guard identity.resourceTimeout > 0, identity.resourceTimeout < week else { return own }
        let asked = Duration.seconds(identity.resourceTimeout)
        return own.map { min($0, asked) } ?? asked
    }

    /// The session's cookies, for a request as its caller made it.
    func cookies(for request: URLRequest) -> SessionCookies {
        SessionCookies(cookieStorage, acceptsCookies: identity.acceptsCookies, fields, fieldsOfHops, for: request)
    }
}
