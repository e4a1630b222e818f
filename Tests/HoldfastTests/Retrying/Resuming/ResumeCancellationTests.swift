// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("RETRY §1 row 46, E10: a resume ends with its reader, at once, and leaves nothing", .timeLimit(.minutes(20)))
struct ResumeCancellationTests {
    /// Where the reader waits when it is cancelled.
    enum Point: CaseIterable, Sendable {
        case firstBody, wait, send, firstBytesOfRest, rest

        var courses: [BreakingOrigin.Course] {
            switch self {
            case .firstBody: [.stalls(after: 10)]
            case .wait: [.breaks(after: 10)]
            case .send: [.breaks(after: 10), .silent]
            case .firstBytesOfRest: [.breaks(after: 10), .stalls(after: 0)]
            case .rest: [.breaks(after: 10), .stalls(after: 10)]
            }
        }
    }

    enum Way: CaseIterable, Sendable {
        case task, body
    }

    let clock = ManualClock()

    @Test(
        "CancellationError without moving the clock; no sleeper, body, token or slot is left",
        arguments: Point.allCases,
        Way.allCases
    )
    func cancelled(_ point: Point, _ way: Way) async throws {
        for enforcesDeadline in [true, false] {
            let governor = governor()
            let account = governor.account(for: .get(), now: clock.now)
            let origin = BreakingOrigin(point.courses, enforcesDeadline: enforcesDeadline)
            let transport = ResumingTransport(origin, governor: governor)
            let response = try await transport.send(.get(), body: .none, context: CallContext(clock: clock))
            let reader = Task { try await response.body.collect() }
            let sleepers = clock.waits.count
            if point != .firstBody {
                try await clock.waitForSleeps(sleepers + 1)
                if point != .wait { clock.advance(by: .seconds(1)) }
            }
            if point != .wait { try await origin.standstills.wait(for: 1) }
            let now = clock.now
            switch way {
            case .task: reader.cancel()
            case .body: response.body.discard()
            }
            await #expect(throws: CancellationError.self) { try await reader.value }
            #expect(clock.now == now)
            #expect(await settles { clock.sleeperCount == 0 })
            response.body.discard()
            #expect(origin.openBodies == 0)
            await #expect(throws: CancellationError.self) { try await response.body.source?.next() }
            #expect(origin.requests.count == (point == .firstBody || point == .wait ? 1 : 2))
            // Where the rest had begun, the resume was a success, which gives its token back too.
            #expect(account.status(now: clock.now).balance == 2)
        }
    }

    @Test("A response that comes after its resume was abandoned is released")
    func late() async throws {
        let origin = BreakingOrigin([.breaks(after: 10), .stalls(after: 10)])
        let response = try await ResumingTransport(LateTransport(origin), governor: governor())
            .send(.get(), body: .none, context: CallContext(clock: clock))
        let reader = Task { try await response.body.collect() }
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(1))
        #expect(await settles { origin.requests.count == 2 })
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
        #expect(await settles { origin.openBodies == 0 && clock.sleeperCount == 0 })
    }

    @Test("A dropped body releases the rest that it reads from")
    func dropped() async throws {
        let origin = BreakingOrigin([.breaks(after: 10)])
        weak var rest: ResumingBody?
        do {
            let clock = ManualClock(autoAdvances: true)
            let response = try await ResumingTransport(origin, governor: governor())
                .send(.get(), body: .none, context: CallContext(clock: clock))
            rest = response.body.source as? ResumingBody
            for _ in 0..<3 { _ = try await rest?.next() }
            #expect(rest != nil)
            #expect(origin.ranges == [nil, "bytes=10-"])
        }
        #expect(await settles { rest == nil })
    }

    private func governor() -> RetryGovernor {
        var rules = RetryRules(backoff: Backoff(jitter: .none))
        rules.budget = .tokens(capacity: 2, transient: 1, timeout: 1, throttling: 1, reward: 1)
        return RetryGovernor(rules)
    }

    private func settles(_ condition: () -> Bool) async -> Bool {
        for _ in 0..<20_000 {
            if condition() { return true }
            await Task.yield()
        }
        return false
    }
}

/// Answers a resume only once it was cancelled.
private struct LateTransport: Transport {
    let origin: BreakingOrigin
    var enforcesDeadline: Bool { true }

    init(_ origin: BreakingOrigin) {
        self.origin = origin
    }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let response = try await origin.send(request, body: body, context: context)
        if origin.requests.count > 1 { try? await CountWatch().wait(for: 1) }
        return response
    }
}
