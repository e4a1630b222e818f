// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Carries requests through a pipeline of this process, whose transport is the origin itself.
struct PipelineCourier: CaseCourier {
    private let following: Pipeline
    private let handingUp: Pipeline

    init(_ origin: CaseOrigin, clock: ManualClock, mode: ConformanceMode?) {
        let cache = mode.map { HTTPCache(store: MemoryStore(capacity: 1 << 20), options: $0.options) }
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        // The origin answers in no time, and a pause of its own moves the clock.
        configuration.attemptTimeout = nil
        following = Pipeline(transport: origin, cache: cache, configuration: configuration)
        configuration.redirects = .returnToCaller
        handingUp = Pipeline(transport: origin, cache: cache, configuration: configuration)
    }

    func receive(_ request: URLRequest, returnsRedirects: Bool) async -> ReceivedResponse {
        let interim = InterimLog()
        var options = CallOptions()
        options.onInterimResponse = { interim.append(InterimHead($0)) }
        var received = ReceivedResponse()
        do {
            let pipeline = returnsRedirects ? handingUp : following
            let response = try await pipeline.send(request, options: options)
            received.body = String(decoding: try await response.body.collect().array, as: UTF8.self)
            received.status = response.status.rawValue
            received.fields = response.fields
        } catch {
            received.failure = String(describing: error)
        }
        received.interim = interim.heads
        return received
    }

    func settle() async {
        await following.drain()
        await handingUp.drain()
    }
}

extension ConformanceMode {
    /// The options of a cache in this mode.
    var options: CacheOptions { self == .shared ? .shared : .private }
}

/// The interim responses of one call, from whatever thread they come on.
private final class InterimLog: Sendable {
    private let received = Mutex<[InterimHead]>([])

    var heads: [InterimHead] { received.withLock { $0 } }

    func append(_ head: InterimHead) {
        received.withLock { $0.append(head) }
    }
}
