// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// A one-shot body whose first bytes are kept, so that another attempt can send them again and continue with the source.
///
/// It holds up to its limit and one chunk. Once more than that has been read, the kept bytes are released and the content belongs
/// to the attempt that reads it: it is still sent, once. The source is read by this object's own task, since an attempt that is
/// given up must neither lose a chunk nor end the source by its cancellation.
final class ReplayableBody: Sendable {
    private let source: any ByteSource
    private let state: Mutex<ReplayState>

    /// A body that reads `source` and keeps up to `limit` bytes.
    init(_ source: any ByteSource, limit: Int) {
        self.source = source
        state = Mutex(ReplayState(limit: max(limit, 0)))
    }

    deinit {
        if !state.withLock({ $0.hasEnded }) { source.cancel() }
    }

    /// Whether the content can be sent from its start.
    var isWhole: Bool { state.withLock { $0.isWhole } }

    /// How many bytes are kept.
    var keptBytes: Int { state.withLock { $0.keptBytes } }

    /// The content from its start, for one attempt.
    func makeReader() -> any ByteSource {
        ReplayReader(self, number: state.withLock { $0.open() })
    }

    /// Releases what is kept for further attempts, since none will follow.
    func release() {
        perform(state.withLock { $0.release() })
    }

    fileprivate func next(for reader: Int) async throws -> ByteChunk? {
        try Task.checkCancellation()
        do {
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    perform(state.withLock { $0.read(reader, continuation: continuation) })
                    // The handler may have run before the reader waited.
                    if Task.isCancelled { perform(state.withLock { $0.interrupt(reader) }) }
                }
            } onCancel: {
                perform(state.withLock { $0.interrupt(reader) })
            }
        } catch is ReplayState.Committed {
            throw ServiceError(
                .other,
                "The request's content is longer than the part that is kept, and another attempt has sent it; raise "
                    + "`RetryRules.replayLimit`, or pass the body as a factory.",
                progress: .bodySent
            )
        }
    }

    fileprivate func close(_ reader: Int) {
        perform(state.withLock { $0.close(reader) })
    }

    private func perform(_ actions: [ReplayState.Action]) {
        for action in actions {
            switch action {
            case .resume(let continuation, let result): continuation.resume(with: result)
            case .cancelSource: source.cancel()
            case .pull:
                let source = source
                Task { [weak self] in
                    let result: Result<ByteChunk?, any Error>
                    do {
                        result = .success(try await source.next())
                    } catch {
                        result = .failure(error)
                    }
                    self?.received(result)
                }
            }
        }
    }

    private func received(_ result: Result<ByteChunk?, any Error>) {
        perform(state.withLock { $0.received(result) })
    }
}

/// The content as one attempt reads it.
private final class ReplayReader: ByteSource {
    private let body: ReplayableBody
    private let number: Int

    init(_ body: ReplayableBody, number: Int) {
        self.body = body
        self.number = number
    }

    deinit { body.close(number) }

    func next() async throws -> ByteChunk? {
        try await body.next(for: number)
    }

    func cancel() { body.close(number) }
}

/// The state of a one-shot body whose first bytes are kept; each change returns what to do once the lock is released.
///
/// Chunks are counted from the start of the content. What was dropped cannot be read again, so from then on the content belongs to
/// the one reader that took the last chunk. The source is asked for a chunk only if a reader waits for one, and never twice at
/// once, whatever happens to the reader meanwhile.
struct ReplayState {
    typealias Continuation = CheckedContinuation<ByteChunk?, any Error>

    /// Something to do outside the lock.
    enum Action {
        case pull
        case resume(Continuation, Result<ByteChunk?, any Error>)
        case cancelSource
    }

    private struct Reader {
        var position = 0
        var waiter: Continuation?
    }

    /// The content belongs to another attempt: part of it is gone.
    struct Committed: Error {}

    private enum Source {
        case idle, pulled
        case ended(Result<Void, any Error>)
    }

    private let limit: Int
    private var readers: [Int: Reader] = [:]
    private var readerCount = 0
    private var kept: [ByteChunk] = []
    /// How many earlier chunks were kept and are gone.
    private var droppedCount = 0
    private var source = Source.idle
    /// The only reader that may continue; nil while nothing is gone.
    private var owner: Int?
    private var isReleased = false

    /// How many bytes are kept.
    private(set) var keptBytes = 0

    init(limit: Int) { self.limit = limit }

    /// Whether a new reader would get all of the content.
    var isWhole: Bool {
        if case .ended(.failure) = source { return false }
        return owner == nil && droppedCount == 0
    }

    /// Whether the source will not be read any further.
    var hasEnded: Bool {
        if case .ended = source { return true }
        return false
    }

    /// The number of a new reader, which begins at the start.
    mutating func open() -> Int {
        readerCount += 1
        readers[readerCount] = Reader()
        return readerCount
    }

    /// A reader wants the next bytes.
    mutating func read(_ number: Int, continuation: Continuation) -> [Action] {
        guard let reader = readers[number] else {
            return [.resume(continuation, .failure(CancellationError()))]
        }
        guard reader.waiter == nil else { return [.resume(continuation, .failure(ServiceError.secondReader))] }
        readers[number]?.waiter = continuation
        return serve(number)
    }

    /// The call that waits in `next()` is over: its reader may ask again.
    mutating func interrupt(_ number: Int) -> [Action] {
        guard let waiter = readers[number]?.waiter else { return [] }
        readers[number]?.waiter = nil
        return [.resume(waiter, .failure(CancellationError()))]
    }

    /// A reader needs nothing more.
    mutating func close(_ number: Int) -> [Action] {
        guard let reader = readers.removeValue(forKey: number) else { return [] }
        var actions: [Action] = []
        if let waiter = reader.waiter { actions.append(.resume(waiter, .failure(CancellationError()))) }
        let nobodyFollows = (isReleased && readers.isEmpty) || owner == number
        if nobodyFollows, !hasEnded { actions.append(.cancelSource) }
        if nobodyFollows { drop() } else if isReleased { trim() }
        return actions
    }

    /// The source has returned a chunk, ended, or failed.
    mutating func received(_ result: Result<ByteChunk?, any Error>) -> [Action] {
        switch result {
        case .success(let chunk?):
            source = .idle
            kept.append(chunk)
            keptBytes += chunk.count
        case .success(nil): source = .ended(.success(()))
        case .failure(let error): source = .ended(.failure(error))
        }
        return readers.keys.sorted().flatMap { serve($0) }
    }

    /// No further attempt will follow, so nothing is kept for one.
    mutating func release() -> [Action] {
        isReleased = true
        if readers.isEmpty {
            drop()
            return hasEnded ? [] : [.cancelSource]
        }
        trim()
        return []
    }

    private mutating func serve(_ number: Int) -> [Action] {
        guard let reader = readers[number], let waiter = reader.waiter else { return [] }
        if let owner, owner != number {
            readers[number]?.waiter = nil
            return [.resume(waiter, .failure(Committed()))]
        }
        if reader.position - droppedCount < kept.count {
            let chunk = kept[reader.position - droppedCount]
            readers[number]?.waiter = nil
            readers[number]?.position += 1
            if keptBytes > limit, reader.position + 1 == droppedCount + kept.count { owner = number }
            trim()
            return [.resume(waiter, .success(chunk))]
        }
        switch source {
        case .pulled: return []
        case .idle:
            source = .pulled
            return [.pull]
        case .ended(let end):
            readers[number]?.waiter = nil
            return [.resume(waiter, end.map { nil })]
        }
    }

    /// Drops what only a later attempt would need, if none can follow.
    private mutating func trim() {
        if isReleased, owner == nil, readers.count == 1 { owner = readers.keys.first }
        guard let owner, let passed = readers[owner].map({ $0.position - droppedCount }), passed > 0 else { return }
        keptBytes -= kept[..<passed].reduce(0) { $0 + $1.count }
        kept.removeFirst(passed)
        droppedCount += passed
    }

    private mutating func drop() {
        kept = []
        keptBytes = 0
        owner = owner ?? 0
    }
}
