// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// Passes a body to the caller and, chunk by chunk, to the store; commits at the end.
///
/// If the body fails, is cancelled or is released before its end, what can be completed later is kept, otherwise nothing.
/// After a store failure, only the caller's bytes continue.
final class StoringBody: ByteSource {
    /// What happens to an entry when its body has ended.
    enum Ending: Sendable {
        case commit
        case commitAs(EntryDescription)
        case abandon
    }

    private let upstream: any ByteSource
    private let writer: any EntryWriter
    private let ending: @Sendable (_ received: Int, _ isWhole: Bool) -> Ending
    private let finish: @Sendable (any EntryWriter, EntryDescription?) async -> CacheReason?
    private let fail: @Sendable (StoreError) async -> Void
    private let background: BackgroundTasks
    private struct State {
        var received = 0
        var isStoring = true
        var isGivenUp = false
        var isAppending = false
        var isCancelled = false
    }
    private let state = Mutex(State())
    private let reading = OneReader()

    /// - Parameters:
    ///   - ending: decides what happens to the entry, given the number of received bytes and whether the body ended properly.
    ///   - finish: commits the writer; called at most once.
    ///   - fail: called with the store failure that ended the storing.
    init(
        _ upstream: any ByteSource,
        writer: any EntryWriter,
        background: BackgroundTasks,
        ending: @escaping @Sendable (_ received: Int, _ isWhole: Bool) -> Ending,
        finish: @escaping @Sendable (any EntryWriter, EntryDescription?) async -> CacheReason?,
        fail: @escaping @Sendable (StoreError) async -> Void
    ) {
        self.upstream = upstream
        self.writer = writer
        self.background = background
        self.ending = ending
        self.finish = finish
        self.fail = fail
    }

    deinit { leave(after: stopStoring()) }

    /// Whether the bytes still go to the store.
    var isStoring: Bool { state.withLock { $0.isStoring } }

    /// Whether the stored part of the body can still be read: until storing is given up.
    var canBeFollowed: Bool { state.withLock { !$0.isGivenUp } }

    /// The entry as it is being written.
    var written: any StoredBody { writer.follow() }

    func next() async throws -> ByteChunk? {
        // Chunks that two tasks append could change places in the store.
        try reading.begin()
        defer { reading.end() }
        let chunk: ByteChunk?
        do {
            chunk = try await upstream.next()
        } catch {
            if error.isCancellation {
                leave(after: stopStoring())
            } else {
                await end(isWhole: false)
            }
            throw error
        }
        guard let chunk else {
            await end(isWhole: true)
            return nil
        }
        if beginsAppending() {
            do throws(StoreError) {
                try await writer.append(chunk)
                leave(after: endAppending(chunk.count))
            } catch {
                if stopStoring() != nil { giveUp() }
                await fail(error)
            }
        }
        return chunk
    }

    func cancel() {
        let received: Int? = state.withLock { state in
            state.isCancelled = true
            // Whether the bytes being appended count is only known after the append.
            guard state.isStoring, !state.isAppending else { return nil }
            state.isStoring = false
            return state.received
        }
        leave(after: received)
        upstream.cancel()
    }

    private func beginsAppending() -> Bool {
        state.withLock { state in
            state.isAppending = state.isStoring
            return state.isStoring
        }
    }

    /// How many bytes are stored, if the reader has left meanwhile.
    private func endAppending(_ count: Int) -> Int? {
        state.withLock { state in
            state.isAppending = false
            state.received += count
            guard state.isStoring, state.isCancelled else { return nil }
            state.isStoring = false
            return state.received
        }
    }

    /// Keeps what can be completed later of a body whose reader has left.
    private func leave(after received: Int?) {
        guard let received else { return }
        switch ending(received, false) {
        case .commit, .abandon: giveUp()
        case .commitAs(let description):
            state.withLock { $0.isGivenUp = true }
            // A cancelled reader waits for nothing.
            _ = background.spawn { [finish, writer] in _ = await finish(writer, description) }
        }
    }

    /// How many bytes were stored; nil if the storing had already ended.
    private func stopStoring() -> Int? {
        state.withLock { state in
            guard state.isStoring else { return nil }
            state.isStoring = false
            return state.received
        }
    }

    private func end(isWhole: Bool) async {
        guard let received = stopStoring() else { return }
        switch ending(received, isWhole) {
        case .commit: _ = await finish(writer, nil)
        case .commitAs(let description):
            state.withLock { $0.isGivenUp = true }
            _ = await finish(writer, description)
        case .abandon: giveUp()
        }
    }

    private func giveUp() {
        state.withLock { $0.isGivenUp = true }
        writer.abandon()
    }
}
