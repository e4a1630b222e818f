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
/// Hands the response to the caller: the first of the three closures of ``ServiceProtocol``.
public typealias responseReturnBlock = @Sendable (_ response: HTTPURLResponse) -> Void

// swift-format-ignore: TypeNamesShouldBeCapitalized
/// Hands bytes to the caller, nil for none: the second of the three closures of ``ServiceProtocol``.
public typealias dataReturnBlock = @Sendable (_ data: Data?) -> Void

// swift-format-ignore: TypeNamesShouldBeCapitalized
/// Ends the call: the third of the three closures of ``ServiceProtocol``.
public typealias requestCompleteBlock = @Sendable () -> Void

/// A service that lives in this process, has no instances, and answers through three closures.
///
/// **Choose.** For services that were written for this form; new code is better served by ``InProcessService``, which is
/// `async`, has instances and can break the contract below in no way. **Use.** ``ServiceRouter/register(_:)-(ServiceProtocol.Type)``.
/// **Implement.** Keep no state, or keep it behind a lock: there are no guarantees for how, when, on what thread or how often
/// a service is called. Blocking is allowed, since a service is called on a thread outside the pool that runs tasks.
///
/// The contract of each call: `responseReturn` once, then `dataReturn` any number of times, then `requestComplete` once; each
/// from any thread, but one after the other. A caller is never left waiting and is told nothing twice when a service breaks it:
/// ``ServiceContractViolation/Rule`` says what happens instead.
public protocol ServiceProtocol: Sendable {
    /// The name by which a router finds the service: the first path component of `http://pmapi/<identifier>/…`. Exact,
    /// case counts.
    static var serviceIdentifier: String { get }

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - request: the very request that was sent; its content is in `httpBody`.
    ///   - response: a template with status 200 and the request's URL; to be returned as it is, or to make another one from.
    ///   - responseReturn: hands the response to the caller. To be called once, before the others.
    ///   - dataReturn: hands bytes to the caller, who sees them as they come. May be left out, or called again and again.
    ///   - requestComplete: ends the call. To be called once, after all others.
    static func performRequest(
        _ request: URLRequest,
        response: HTTPURLResponse,
        responseReturn: @escaping responseReturnBlock,
        dataReturn: @escaping dataReturnBlock,
        requestComplete: @escaping requestCompleteBlock
    )

    /// Called once the service was registered with a router; does nothing by default.
    static func registered()

    /// Called once the service was unregistered from a router; does nothing by default. Calls in flight may still be running.
    static func unregistered()
}

extension ServiceProtocol {
    public static func registered() {}
    public static func unregistered() {}
}
