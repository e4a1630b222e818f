// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Exchanges
internal import Foundation
internal import Harness

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The requests of one thread, created before the clock starts.
///
/// Each thread has its own requests; with shared ones the threads would wait for each other's reference counts.
struct Asking: Sendable {
    let resources: [Resource]
    let requests: [URLRequest]
    private let order: [Int32]

    /// Creates requests for the first `count` resources, in an order that is the same in every run.
    init(_ count: Int, length: Int, thread: Int, kind: HitCase.Kind = .plain) {
        resources = (0..<count).map { Resource($0, length: length) }
        requests = resources.compactMap(\.request).map { kind.edited($0) }
        var numbers = SeededNumbers(seed: UInt64(thread) + 1)
        var length = 1_024
        while length < count { length *= 2 }
        order = (0..<length).map { _ in Int32(Int.random(in: 0..<count, using: &numbers)) }
    }

    /// The resource to request at a place.
    ///
    /// - Parameter bound: only the first resources up to this number.
    func number(_ place: Int, of bound: Int = .max) -> Int {
        let number = Int(order[place & (order.count - 1)])
        return number < bound ? number : number % bound
    }
}

extension HitCase.Kind {
    static let credential = "Bearer " + String(repeating: "0123456789abcdef", count: 8)

    /// A request as a call of this kind sends it.
    func edited(_ request: URLRequest) -> URLRequest {
        var request = request
        switch self {
        case .plain, .hooked, .edited, .uniform50k, .uniform1M: break
        case .authorized, .usual: request.setValue(Self.credential, forHTTPHeaderField: "Authorization")
        case .cookies: request.setValue("session=0123456789abcdef", forHTTPHeaderField: "Cookie")
        case .directives: request.setValue("max-age=3600", forHTTPHeaderField: "Cache-Control")
        case .fullDecision: request.cachePolicy = .returnCacheDataElseLoad
        }
        return request
    }
}
