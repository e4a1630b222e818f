// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// Where each reader of a ``SharedBody`` stands, and which bytes are in memory.
struct SharedBodyState: Sendable {
    /// What a reader finds at its place.
    enum Step {
        case chunk(ByteChunk)
        /// The bytes have left the memory: so many of them, from this offset, stand in the entry alone.
        case behind(offset: Int, count: Int)
        case ended(Result<Void, any Error>)
        case wait
        /// The reader stood still for too long.
        case expelled
    }

    /// What the pump does next.
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

    /// As many bytes stay in memory at most, but for the chunk that came last.
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

    /// Keeps places for those who waited for the head.
    mutating func open(readers: Int, goesOn: Bool) {
        reserved += readers
        self.goesOn = self.goesOn || goesOn
    }

    var hasReaders: Bool { reserved > 0 || !places.isEmpty }

    /// Keeps a place for one who comes later; false where the bytes from the beginning on are no longer at hand.
    mutating func reserve(canFollow: Bool) -> Bool {
        if case .failure? = ending { return false }
        guard !isStopped, start == 0 || canFollow else { return false }
        reserved += 1
        return true
    }

    mutating func release() {
        reserved -= 1
    }

    mutating func seat() -> Int {
        reserved -= 1
        lastReader += 1
        places[lastReader] = Place()
        return lastReader
    }

    mutating func leave(_ reader: Int) {
        places[reader] = nil
        wanting.remove(reader)
    }

    /// Nobody reads any more: the rest is fetched all the same, or nothing more.
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
        // Without readers the bytes are for the entry alone.
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

    /// `reader` got bytes from the entry instead.
    mutating func advance(_ reader: Int, by count: Int) {
        places[reader]?.offset += count
    }

    /// Those who are furthest behind, and where.
    var slowest: (offset: Int, readers: Set<Int>)? {
        guard let offset = places.values.map(\.offset).min() else { return nil }
        return (offset, Set(places.filter { $0.value.offset == offset }.keys))
    }

    /// Gives up those of `readers` who still stand at `offset`.
    mutating func expel(_ readers: Set<Int>, at offset: Int) {
        for reader in readers where places[reader]?.offset == offset { leave(reader) }
    }

    /// Drops what all have read, or can read elsewhere; whether there is room then.
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
