// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Remembers what it was told.
final class RecordingRequestHook: RequestHook {
    private struct State {
        var scheduled = 0
        var successes = 0
        var failures: [String] = []
    }

    private let state = Mutex(State())

    var scheduled: Int { state.withLock { $0.scheduled } }
    var successes: Int { state.withLock { $0.successes } }
    /// The types of the errors, and their codes where they have some.
    var failures: [String] { state.withLock { $0.failures } }

    func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result? {
        state.withLock { $0.scheduled += 1 }
        return nil
    }

    func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result) async {
        state.withLock { $0.successes += 1 }
    }

    func onFailure(_ error: any Error) async {
        let word = (error as? ServiceError)?.code.description ?? "\(type(of: error))"
        state.withLock { $0.failures.append(word) }
    }
}
