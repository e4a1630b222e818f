// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(FoundationNetworking)
    public import Foundation
    public import FoundationNetworking
#else
    public import Foundation
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
    ///   - request: the request that was sent; its content is in `httpBody`.
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
