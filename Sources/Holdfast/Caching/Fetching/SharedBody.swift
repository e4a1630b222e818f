// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// One body that several readers follow, each at its own pace.
///
/// It is read only as fast as the fastest reader asks. The last bytes stay in memory up to a limit; readers further behind read
/// from the entry that is being written. If no entry is being written any more, the slowest reader sets the pace, and one that
/// stops for too long is dropped.
final class SharedBody: Sendable {
    private struct State {
        var body: SharedBodyState
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var pump: CheckedContinuation<Void, Never>?
        /// Distinguishes the pauses of the pump.
        var rest = 0
        /// Whether the pump waits for the slowest reader to continue.
        var isBlocked = false
        var stall: Stall?
        /// The pause of the pump that has lasted too long.
        var overdueRest = 0
        /// Gives up the rest that is fetched for the store alone, if it takes too long.
        var giveUp: Task<Void, Never>?

        mutating func takePump() -> CheckedContinuation<Void, Never>? {
            defer { pump = nil }
            return pump
        }
    }

    /// Readers that keep all others from continuing.
    private struct Stall {
        let offset: Int
        let readers: Set<Int>
        let since: MonotonicInstant
    }

    private static let windowLimit = 1 << 20
    private static let chunkSize = 64 << 10
    private static let longestStall = Duration.seconds(30)
    /// How long it may take to fetch the rest for the store alone: an origin that is silent must not hold its connection.
    private static let longestFinish = Duration.seconds(5)

    /// The body's length, if known.
    let length: Int?
    private let upstream: any ByteSource
    private let storing: StoringBody?
    private let written: (any StoredBody)?
    private let clock: any HoldfastClock
    private let allowance: Int
    private let state: Mutex<State>

    /// - Parameters:
    ///   - storing: the entry being written, if there is one.
    ///   - allowance: how many bytes may still be fetched for the store after the last reader has left.
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

    /// Reserves this many readers; call it before the pump starts.
    ///
    /// - Parameter goesOn: whether the body is fetched to its end without readers.
    func open(readers: Int, goesOn: Bool) {
        state.withLock { $0.body.open(readers: readers, goesOn: goesOn) }
    }

    /// Lets the body be fetched to its end for the store, even without readers.
    func goOn() {
        state.withLock { $0.giveUp.take() }?.cancel()
        change { $0.open(readers: 0, goesOn: true) }
    }

    /// Reserves a reader that will start at the beginning; false if the beginning is no longer available, or if bytes are missing
    /// that are only fetched for the store, which may be given up.
    func reserveReader() -> Bool {
        let canFollow = canFollow
        return state.withLock { $0.giveUp == nil && $0.body.reserve(canFollow: canFollow) }
    }

    /// Gives up a reserved reader.
    func releaseReader() {
        change { $0.release() }
    }

    /// Uses a reserved reader.
    func reader() -> any ByteSource {
        SharedBodyReader(self, id: state.withLock { $0.body.addReader() })
    }

    // MARK: The pump

    /// Fetches the body for all readers, until its end, its failure, or until the last reader has left.
    func pump() async {
        defer { state.withLock { $0.giveUp }?.cancel() }
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

    /// Waits for a reader to ask, to continue or to leave.
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

    /// Ends one pause of the pump, whether or not it has begun.
    private func endRest(_ ticket: Int) {
        let pump: CheckedContinuation<Void, Never>? = state.withLock { state in
            guard state.rest == ticket else { return nil }
            state.overdueRest = ticket
            return state.takePump()
        }
        pump?.resume()
    }

    /// Waits for the slowest readers to continue, and drops those that have stopped for too long.
    private func restOrExpel() async {
        let (ticket, stall) = beginRest(blocked: true)
        defer { state.withLock { $0.isBlocked = false } }
        // A reserved place stands for a reader that is about to come.
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
                // The pump continued earlier.
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
                if let chunk = try await behind(reader, offset: offset, count: count) { return chunk }
            case .ended(let ending):
                try ending.get()
                return nil
            case .wait: try await wait(reader)
            case .expelled:
                throw ServiceError(
                    .other,
                    "This reader of a shared response was too slow and was dropped. Send the request again.",
                    progress: .bytesReceived
                )
            }
        }
    }

    /// Bytes that are no longer in memory, from the entry that is being written.
    private func behind(_ reader: Int, offset: Int, count: Int) async throws -> ByteChunk? {
        guard let written else { return nil }
        let chunk: ByteChunk
        do throws(StoreError) {
            chunk = try await written.read(from: offset, upTo: min(count, SharedBody.chunkSize))
        } catch {
            if error.code == .cancelled { throw CancellationError() }
            throw ServiceError(
                .other,
                "This reader of a shared response was too slow, and the response is no longer being stored. Send the request again.",
                cause: error,
                progress: .bytesReceived
            )
        }
        guard !chunk.isEmpty else {
            throw ServiceError(.other, "A stored body ended early. Send the request again.", progress: .bytesReceived)
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

    /// A reader has left: the last one ends the transfer, unless the store may have the rest.
    private func change(_ change: (inout SharedBodyState) -> Void) {
        let isStoring = storing?.isStoring ?? false
        let (stops, pump): (Bool, CheckedContinuation<Void, Never>?) = state.withLock { state in
            change(&state.body)
            var stops = false
            if !state.body.hasReaders, state.body.ending == nil, !(state.body.goesOn && isStoring) {
                let rest = length.map { $0 - state.body.end }
                let finishes = isStoring && rest.map { $0 <= allowance } ?? false
                state.body.abandon(goesOn: finishes)
                // Most readers leave with the last byte, before the end is known.
                if finishes, rest != 0 { state.giveUp = giveUp(at: clock.now.advanced(by: SharedBody.longestFinish)) }
                stops = !finishes
            }
            return (stops, state.takePump())
        }
        if stops { upstream.cancel() }
        pump?.resume()
    }

    /// Ends the transfer at that time, unless it is over.
    private func giveUp(at end: MonotonicInstant) -> Task<Void, Never> {
        Task { [weak self, clock] in
            guard (try? await clock.sleep(until: end)) != nil, let self else { return }
            let pump = state.withLock { state in
                state.body.abandon(goesOn: false)
                return state.takePump()
            }
            upstream.cancel()
            pump?.resume()
        }
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

/// One reader's side of a ``SharedBody``; releasing it means leaving.
final class SharedBodyReader: ByteSource {
    private let body: SharedBody
    private let id: Int
    private let hasLeft = Atomic(false)
    private let reading = OneReader()

    init(_ body: SharedBody, id: Int) {
        self.body = body
        self.id = id
    }

    deinit {
        cancel()
    }

    func next() async throws -> ByteChunk? {
        try reading.begin()
        defer { reading.end() }
        if hasLeft.load(ordering: .acquiring) { throw CancellationError() }
        try Task.checkCancellation()
        do {
            return try await body.next(id)
        } catch {
            // A reader that has left no longer has a place.
            throw hasLeft.load(ordering: .acquiring) ? CancellationError() : error
        }
    }

    func cancel() {
        if !hasLeft.exchange(true, ordering: .acquiringAndReleasing) { body.leave(id) }
    }
}

/// The position of each reader of a ``SharedBody``, and the bytes in memory.
struct SharedBodyState: Sendable {
    /// What is available at a reader's position.
    enum Step {
        case chunk(ByteChunk)
        /// The bytes are no longer in memory: this many of them, from this offset, are only in the entry.
        case behind(offset: Int, count: Int)
        case ended(Result<Void, any Error>)
        case wait
        /// The reader stopped for too long.
        case expelled
    }

    /// What the pump should do next.
    enum Demand: Hashable {
        case pull
        case rest
        case blocked
        case stop
    }

    private struct Place {
        var chunk = 0
        var offset = 0
    }

    /// The most bytes in memory, except for the last chunk.
    private let limit: Int
    private var window: ArraySlice<ByteChunk> = []
    /// The number of the window's first chunk, and the offset of its first byte.
    private var firstChunk = 0
    private(set) var start = 0
    private(set) var end = 0
    private(set) var ending: Result<Void, any Error>?
    private var places: [Int: Place] = [:]
    private var reserved: Int
    private var lastReader = 0
    private var wanting: Set<Int> = []
    /// Whether the rest is fetched although nobody reads.
    private(set) var goesOn: Bool
    private(set) var isStopped = false

    init(limit: Int, reserved: Int = 0, goesOn: Bool = false) {
        self.limit = limit
        self.reserved = reserved
        self.goesOn = goesOn
    }

    /// Reserves places for those who waited for the head.
    mutating func open(readers: Int, goesOn: Bool) {
        reserved += readers
        self.goesOn = self.goesOn || goesOn
    }

    var hasReaders: Bool { reserved > 0 || !places.isEmpty }

    /// Reserves a place for a later reader; false if the bytes from the beginning are no longer available.
    mutating func reserve(canFollow: Bool) -> Bool {
        if case .failure? = ending { return false }
        guard !isStopped, start == 0 || canFollow else { return false }
        reserved += 1
        return true
    }

    mutating func release() {
        reserved -= 1
    }

    mutating func addReader() -> Int {
        reserved -= 1
        lastReader += 1
        places[lastReader] = Place()
        return lastReader
    }

    mutating func leave(_ reader: Int) {
        places[reader] = nil
        wanting.remove(reader)
    }

    /// Nobody reads any more: either the rest is fetched anyway, or nothing more.
    mutating func abandon(goesOn: Bool) {
        if goesOn { self.goesOn = true } else { isStopped = true }
    }

    mutating func add(_ chunk: ByteChunk, canFollow: Bool) {
        window.append(chunk)
        end += chunk.count
        wanting = []
        _ = makeRoom(canFollow: canFollow)
    }

    mutating func end(_ ending: Result<Void, any Error>) {
        if self.ending == nil { self.ending = ending }
        wanting = []
    }

    mutating func demand(canFollow: Bool) -> Demand {
        // Without readers, the bytes are only for the entry.
        if goesOn, !canFollow, !hasReaders { isStopped = true }
        if isStopped { return .stop }
        guard goesOn && canFollow || !wanting.isEmpty else { return .rest }
        return makeRoom(canFollow: canFollow) ? .pull : .blocked
    }

    /// Whether there is nothing for `reader` yet; it then counts as asking for more.
    mutating func wants(_ reader: Int) -> Bool {
        guard let place = places[reader], place.offset == end, ending == nil else { return false }
        wanting.insert(reader)
        return true
    }

    /// What `reader` gets next.
    mutating func step(_ reader: Int) -> Step {
        guard var place = places[reader] else { return .expelled }
        if place.offset < start { return .behind(offset: place.offset, count: start - place.offset) }
        if place.chunk < firstChunk { place.chunk = firstChunk }
        let index = window.startIndex + (place.chunk - firstChunk)
        guard index < window.endIndex else {
            return ending.map { .ended($0) } ?? .wait
        }
        let chunk = window[index]
        place.chunk += 1
        place.offset += chunk.count
        places[reader] = place
        return .chunk(chunk)
    }

    /// Records that `reader` got bytes from the entry instead.
    mutating func advance(_ reader: Int, by count: Int) {
        places[reader]?.offset += count
    }

    /// The readers that are furthest behind, and their position.
    var slowest: (offset: Int, readers: Set<Int>)? {
        guard let offset = places.values.map(\.offset).min() else { return nil }
        return (offset, Set(places.filter { $0.value.offset == offset }.keys))
    }

    /// Drops those of `readers` that are still at `offset`.
    mutating func expel(_ readers: Set<Int>, at offset: Int) {
        for reader in readers where places[reader]?.offset == offset { leave(reader) }
    }

    /// Drops bytes that all have read, or can read elsewhere; returns whether there is room now.
    private mutating func makeRoom(canFollow: Bool) -> Bool {
        while end - start >= limit, let first = window.first {
            let needed = reserved > 0 ? 0 : slowest?.offset ?? .max
            guard canFollow || start + first.count <= needed else { return false }
            window.removeFirst()
            firstChunk += 1
            start += first.count
        }
        return true
    }
}
