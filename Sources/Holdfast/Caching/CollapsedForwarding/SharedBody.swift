// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// One body that several readers follow, each at its own pace.
///
/// It is pulled only as fast as the fastest reader asks. The last bytes stay in memory up to a bound; who is further behind
/// reads from the entry that is being written. Where none is being written any more the slowest reader sets the pace, and one
/// that stands still for too long is given up.
final class SharedBody: Sendable {
    private struct State {
        var body: SharedBodyState
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var pump: CheckedContinuation<Void, Never>?
        /// Tells one rest of the pump from the next.
        var rest = 0
        /// Whether the pump waits for the slowest reader to move on.
        var isBlocked = false
        var stall: Stall?
        /// The rest of the pump that has lasted too long.
        var overdueRest = 0

        mutating func takePump() -> CheckedContinuation<Void, Never>? {
            defer { pump = nil }
            return pump
        }
    }

    /// Readers that keep all others from going on.
    private struct Stall {
        let offset: Int
        let readers: Set<Int>
        let since: MonotonicInstant
    }

    private static let windowLimit = 1 << 20
    private static let chunkSize = 64 << 10
    private static let longestStall = Duration.seconds(30)

    /// The body's length, if known.
    let length: Int?
    private let upstream: any ByteSource
    private let storing: StoringBody?
    private let written: (any StoredBody)?
    private let clock: any HoldfastClock
    private let allowance: Int
    private let state: Mutex<State>

    /// - Parameters:
    ///   - storing: the entry being written, where there is one.
    ///   - allowance: how many bytes may still be fetched for the store after the last reader left.
    init(
        _ upstream: any ByteSource,
        length: Int?,
        storing: StoringBody?,
        allowance: Int,
        clock: any HoldfastClock,
        windowLimit: Int = SharedBody.windowLimit
    ) {
        self.upstream = upstream
        self.length = length
        self.storing = storing
        written = storing?.written
        self.clock = clock
        self.allowance = allowance
        state = Mutex(State(body: SharedBodyState(limit: windowLimit)))
    }

    /// Keeps places for so many readers; before the pump starts.
    ///
    /// - Parameter goesOn: whether the body is fetched to its end without readers.
    func open(readers: Int, goesOn: Bool) {
        state.withLock { $0.body.open(readers: readers, goesOn: goesOn) }
    }

    /// Lets the body be fetched to its end for the store, readers or none.
    func goOn() {
        change { $0.open(readers: 0, goesOn: true) }
    }

    /// Keeps a place at the beginning for a reader to come; false where the beginning is no longer at hand.
    func reserveSeat() -> Bool {
        let canFollow = canFollow
        return state.withLock { $0.body.reserve(canFollow: canFollow) }
    }

    /// Gives a reserved place up.
    func releaseSeat() {
        change { $0.release() }
    }

    /// Takes a reserved place.
    ///
    /// - Parameter delivered: is told how many bytes were handed out.
    func reader(delivered: @escaping @Sendable (Int) -> Void) -> any ByteSource {
        SharedBodyReader(self, id: state.withLock { $0.body.seat() }, delivered: delivered)
    }

    // MARK: The pump

    /// Fetches the body on behalf of all readers, until its end, its failure, or the last reader's leaving.
    func pump() async {
        while true {
            let canFollow = canFollow
            switch state.withLock({ $0.body.demand(canFollow: canFollow) }) {
            case .pull:
                do {
                    guard let chunk = try await upstream.next() else { return wake { $0.end(.success(())) } }
                    let canFollow = self.canFollow
                    wake { $0.add(chunk, canFollow: canFollow) }
                } catch {
                    return wake { $0.end(.failure(error)) }
                }
            case .rest:
                await rest(beginRest().ticket)
            case .blocked:
                await restOrExpel()
            case .stop:
                upstream.cancel()
                return wake { $0.end(.failure(CancellationError())) }
            }
        }
    }

    private var canFollow: Bool { written != nil && storing?.canBeFollowed ?? false }

    private func beginRest(blocked: Bool = false) -> (ticket: Int, stall: Stall?) {
        let now = clock.now
        return state.withLock { state in
            state.rest += 1
            guard blocked else { return (state.rest, nil) }
            state.isBlocked = true
            let slowest = state.body.slowest
            if state.stall?.offset != slowest?.offset {
                state.stall = slowest.map { Stall(offset: $0.offset, readers: $0.readers, since: now) }
            }
            return (state.rest, state.stall)
        }
    }

    /// Waits for a reader to ask, to move on or to leave.
    private func rest(_ ticket: Int) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let canFollow = self.canFollow
                let resumesNow = state.withLock { state in
                    switch state.body.demand(canFollow: canFollow) {
                    case .pull, .stop: return true
                    case .rest, .blocked: break
                    }
                    if Task.isCancelled || state.overdueRest == ticket { return true }
                    state.pump = continuation
                    return false
                }
                if resumesNow { continuation.resume() }
            }
        } onCancel: {
            endRest(ticket)
        }
    }

    /// Ends one rest of the pump, whether or not it has begun.
    private func endRest(_ ticket: Int) {
        let pump: CheckedContinuation<Void, Never>? = state.withLock { state in
            guard state.rest == ticket else { return nil }
            state.overdueRest = ticket
            return state.takePump()
        }
        pump?.resume()
    }

    /// Waits for the slowest readers to move on, and gives up those who have not for too long.
    private func restOrExpel() async {
        let (ticket, stall) = beginRest(blocked: true)
        defer { state.withLock { $0.isBlocked = false } }
        // A seat that is not taken yet stands for a reader that is about to come.
        guard let stall else { return await rest(ticket) }
        let end = stall.since.advanced(by: SharedBody.longestStall)
        if clock.now >= end {
            state.withLock { $0.stall = nil }
            return wake { $0.expel(stall.readers, at: stall.offset) }
        }
        let timer = Task { [self, clock] in
            do {
                try await clock.sleep(until: end)
                endRest(ticket)
            } catch {
                // The pump went on before.
            }
        }
        await rest(ticket)
        timer.cancel()
    }

    // MARK: Readers

    func next(_ reader: Int) async throws -> ByteChunk? {
        while true {
            let (step, pump): (SharedBodyState.Step, CheckedContinuation<Void, Never>?) = state.withLock { state in
                let step = state.body.step(reader)
                return (step, state.isBlocked ? state.takePump() : nil)
            }
            pump?.resume()
            switch step {
            case .chunk(let chunk): return chunk
            case .behind(let offset, let count):
                if let chunk = try await behind(reader, offset, count) { return chunk }
            case .ended(let ending):
                try ending.get()
                return nil
            case .wait: try await wait(reader)
            case .expelled:
                throw ServiceError(
                    .other,
                    "This reader of a shared response stood still too long and was left behind; send the call again.",
                    progress: .bytesReceived
                )
            }
        }
    }

    /// Bytes that are no longer in memory, from the entry that is being written.
    private func behind(_ reader: Int, _ offset: Int, _ count: Int) async throws -> ByteChunk? {
        guard let written else { return nil }
        let chunk: ByteChunk
        do throws(StoreError) {
            chunk = try await written.read(from: offset, upTo: min(count, SharedBody.chunkSize))
        } catch {
            if error.code == .cancelled { throw CancellationError() }
            throw ServiceError(
                .other,
                "The response is no longer being stored, and this reader is too far behind; send the call again.",
                cause: error,
                progress: .bytesReceived
            )
        }
        guard !chunk.isEmpty else {
            throw ServiceError(.other, "A stored body ended early; send the call again.", progress: .bytesReceived)
        }
        let pump = state.withLock { state in
            state.body.advance(reader, by: chunk.count)
            return state.isBlocked ? state.takePump() : nil
        }
        pump?.resume()
        return chunk
    }

    private func wait(_ reader: Int) async throws {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let (resumesNow, pump): (Bool, CheckedContinuation<Void, Never>?) = state.withLock { state in
                    guard !Task.isCancelled, state.body.wants(reader) else { return (true, nil) }
                    state.waiting[reader] = continuation
                    return (false, state.takePump())
                }
                pump?.resume()
                if resumesNow { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: reader) }?.resume()
        }
        try Task.checkCancellation()
    }

    func leave(_ reader: Int) {
        change { $0.leave(reader) }
        state.withLock { $0.waiting.removeValue(forKey: reader) }?.resume()
    }

    /// Somebody is gone: the last one ends the transfer, unless the store may have the rest.
    private func change(_ change: (inout SharedBodyState) -> Void) {
        let isStoring = storing?.isStoring ?? false
        let (stops, pump): (Bool, CheckedContinuation<Void, Never>?) = state.withLock { state in
            change(&state.body)
            var stops = false
            if !state.body.hasReaders, state.body.ending == nil, !(state.body.goesOn && isStoring) {
                let rest = length.map { $0 - state.body.end }
                let finishes = isStoring && rest.map { $0 <= allowance } ?? false
                state.body.abandon(goesOn: finishes)
                stops = !finishes
            }
            return (stops, state.takePump())
        }
        if stops { upstream.cancel() }
        pump?.resume()
    }

    /// The pump has news for all readers.
    private func wake(_ change: (inout SharedBodyState) -> Void) {
        let waiting = state.withLock { state in
            change(&state.body)
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume() }
    }
}
