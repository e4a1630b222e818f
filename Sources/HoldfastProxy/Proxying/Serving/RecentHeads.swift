// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    private import Synchronization

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// What was made of the targets of late: a hot target is read once, and not for each request.
    ///
    /// Holds GET requests of short targets, and lets all of them go when there are too many.
    final class RecentHeads: Sendable {
        /// A head, and a request for it without fields.
        struct Made: Sendable {
            let head: ExactRequestHead
            let request: URLRequest
            /// Whether a cache would key it by another target than the one that is sent.
            let isKeyedOtherwise: Bool
        }

        private let made = Mutex<[String: Made]>([:])
        private static let count = 1_024
        private static let length = 512

        /// What a target of a GET comes to.
        ///
        /// - Parameter make: reads it where it is not known.
        func made(
            _ method: RequestMethod,
            _ target: String,
            _ make: () throws(ProxyRefusal) -> ExactRequestHead
        ) throws(ProxyRefusal) -> Made {
            let isHeld = method == .get && target.utf8.count <= RecentHeads.length
            if isHeld, let known = made.withLock({ $0[target] }) { return known }
            let head = try make()
            let new = Made(
                head: head,
                request: head.makeRequest(),
                isKeyedOtherwise: TargetRules.hasDotSegments(head.requestTarget)
            )
            guard isHeld else { return new }
            made.withLock { made in
                if made.count >= RecentHeads.count { made.removeAll(keepingCapacity: true) }
                made[target] = new
            }
            return new
        }
    }
#endif
