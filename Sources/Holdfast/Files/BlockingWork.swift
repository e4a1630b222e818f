// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// Runs file calls, which may block, on threads that may be blocked: four at most, so that slow disks hold up one another only.
package enum BlockingWork {
    private static let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "holdfast.files"
        queue.maxConcurrentOperationCount = 4
        // Calls wait for it; an Apple system's own choice would be the background, which it may hold back.
        queue.qualityOfService = .userInitiated
        return queue
    }()

    /// Runs `work` on one of the threads, some time.
    package static func enqueue(_ work: @escaping @Sendable () -> Void) {
        queue.addOperation(work)
    }

    /// Runs `work` on one of the threads and waits for it.
    package static func run<Success: Sendable>(
        _ work: @escaping @Sendable () throws -> Success
    ) async throws -> Success {
        try await withCheckedThrowingContinuation { continuation in
            enqueue { continuation.resume(with: Result { try work() }) }
        }
    }
}
