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
    ///
    init(_ count: Int, length: Int, thread: Int, face: HitCase.Face = .send) {
        resources = (0..<count).map { Resource($0, length: length) }
        requests = resources.compactMap(\.request).map { request in
            face.edited(request)
        }
        var numbers = SeededNumbers(seed: UInt64(thread) + 1)
        order = (0..<1_024).map { _ in Int32(Int.random(in: 0..<count, using: &numbers)) }
    }

    /// The resource to request at a place.
    ///
    /// - Parameter bound: only the first resources up to this number.
    func number(_ place: Int, of bound: Int = .max) -> Int {
        let number = Int(order[place & 1_023])
        return number < bound ? number : number % bound
    }
}

extension HitCase.Face {
    /// A request as a call of this kind sends it.
    func edited(_ request: URLRequest) -> URLRequest {
        var request = request
        switch self {
        case .send, .data: break
        case .authorized:
            let token = String(repeating: "0123456789abcdef", count: 8)
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        case .cookies: request.setValue("session=0123456789abcdef", forHTTPHeaderField: "Cookie")
        case .directives: request.setValue("max-age=3600", forHTTPHeaderField: "Cache-Control")
        case .judged: request.cachePolicy = .returnCacheDataElseLoad
        }
        return request
    }
}
