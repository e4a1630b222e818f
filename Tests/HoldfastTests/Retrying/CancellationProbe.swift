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

/// Counts the suspension points that a call comes to, and cancels it at one of them, where it then hangs until it notices.
final class CancellationProbe: Sendable {
    private struct State {
        var count = 0
        var call: Task<Response, any Error>?
        var places: [String] = []
    }

    /// The point to cancel at; nil: none, to count them.
    let target: Int?
    private let never = CountWatch()
    private let state = Mutex(State())

    init(target: Int?) {
        self.target = target
    }

    /// How many points were reached.
    var count: Int { state.withLock { $0.count } }
    /// What the points were.
    var places: [String] { state.withLock { $0.places } }

    /// Takes the call to cancel.
    func watch(_ call: Task<Response, any Error>) {
        state.withLock { $0.call = call }
    }

    /// A suspension point; whether it is the one.
    func arrive(_ place: String) -> Bool {
        let call: Task<Response, any Error>? = state.withLock { state in
            state.count += 1
            state.places.append(place)
            return state.count == target ? state.call : nil
        }
        call?.cancel()
        return call != nil
    }

    /// A suspension point that hangs if it is the one.
    func pass(_ place: String) async throws {
        if arrive(place) { try await never.wait(for: 1) }
        await Task.yield()
    }
}

/// A clock whose waits are over at once, but for the one that the call is cancelled in, and for timers that should not ring.
struct ProbedClock: HoldfastClock {
    let probe: CancellationProbe
    let manual = ManualClock()

    /// A clock that stands `start` after its origin.
    init(_ probe: CancellationProbe, at start: MonotonicInstant) {
        self.probe = probe
        manual.advance(by: start.sinceOrigin)
    }

    var now: MonotonicInstant { manual.now }
    var timestamp: Timestamp { manual.timestamp }

    func sleep(until deadline: MonotonicInstant) async throws {
        let isChosen = probe.arrive("sleep")
        guard isChosen || now.duration(to: deadline) >= .seconds(50) else { return await Task.yield() }
        try await manual.sleep(until: deadline)
    }
}

/// A source whose reads are suspension points.
final class ProbedSource: ByteSource {
    private let probe: CancellationProbe
    private let state: Mutex<(left: Int, isOver: Bool)>

    init(_ probe: CancellationProbe, chunks: Int) {
        self.probe = probe
        state = Mutex((chunks, false))
    }

    /// Whether it was read to its end or told to end.
    var isOver: Bool { state.withLock { $0.isOver } }

    func next() async throws -> ByteChunk? {
        // Its reader is a task of the body's own, which a cancelled call does not wait for, so this one does not hang.
        if probe.arrive("read") { await Task.yield() }
        return state.withLock { state in
            state.left -= 1
            if state.left < 0 { state.isOver = true }
            return state.left < 0 ? nil : ByteChunk(copying: [1, 2, 3])
        }
    }

    func cancel() {
        state.withLock { $0.isOver = true }
    }
}

/// Reads the content and answers by a script, with a suspension point at each step.
final class ProbedTransport: Transport {
    let enforcesDeadline: Bool
    private let probe: CancellationProbe
    private let script: Mutex<ArraySlice<Int>>

    /// - Parameter script: the statuses to answer with; 0 breaks the connection.
    init(_ probe: CancellationProbe, script: [Int], enforcesDeadline: Bool) {
        self.probe = probe
        self.enforcesDeadline = enforcesDeadline
        self.script = Mutex(script[...])
    }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        try await probe.pass("send")
        if case .factory(_, let make) = body.form {
            let source = try await make()
            while try await source.next() != nil {}
        }
        try await probe.pass("head")
        switch script.withLock({ $0.popFirst() }) {
        case nil: return Response(status: .ok)
        case 0: throw ServiceError(.connectionLost, "broken", progress: .bodySent)
        case let status?: return Response(status: StatusCode(rawValue: status))
        }
    }
}
