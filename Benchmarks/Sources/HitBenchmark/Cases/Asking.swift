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
    /// - Parameter directive: a Cache-Control field for the requests; nil: none.
    init(_ count: Int, length: Int, thread: Int, directive: String? = nil) {
        resources = (0..<count).map { Resource($0, length: length) }
        requests = resources.compactMap(\.request).map { request in
            var request = request
            if let directive { request.setValue(directive, forHTTPHeaderField: "Cache-Control") }
            return request
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
