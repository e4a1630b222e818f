// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
private import Synchronization

/// The progress of the content of one call's response, from the network or from a cache: set it as ``CallOptions/progress``.
///
/// ```swift
/// let progress = TransferProgress()
/// var options = CallOptions()
/// options.progress = progress
/// async let file = client.download(for: request, options: options)
/// for await update in progress.updates { print(update.fractionCompleted ?? 0) }
/// ```
///
/// Use it for one call. Content from a cache in memory arrives at once: there is one update. So does stored content that the
/// call's acceptance reads. If an attempt's content is rejected and the attempt is repeated, the progress starts at 0 again.
public final class TransferProgress: Sendable {
    /// The progress at one time.
    public struct Update: Sendable, Hashable {
        /// The bytes that the caller has received so far.
        public var completed: Int
        /// The bytes of the whole content; nil if the response does not say.
        public var total: Int?

        /// An update, for tests of code that shows it.
        public init(completed: Int, total: Int?) {
            self.completed = completed
            self.total = total
        }

        /// The share that has arrived, 0 to 1; nil if the total is unknown.
        public var fractionCompleted: Double? {
            total.map { $0 > 0 ? min(1, Double(completed) / Double($0)) : 1 }
        }
    }

    /// The newest update, for one reader: a slow reader misses some, but never the last. Ends with the content, or when it is
    /// dropped.
    public let updates: AsyncStream<Update>
    /// The same as Foundation's `Progress`, to show it or to add it to another one; cancelling it does nothing.
    public let foundation = Progress(totalUnitCount: -1)

    private let continuation: AsyncStream<Update>.Continuation
    private let state = Mutex(Update(completed: 0, total: nil))
    private let begun = Atomic(false)

    /// The progress of a call that has not begun.
    public init() {
        (updates, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        foundation.isCancellable = false
    }

    deinit { continuation.finish() }

    /// The current progress.
    public var current: Update { state.withLock { $0 } }

    /// The call has failed, so no content comes any more.
    func fail() {
        end(isWhole: false)
    }

    /// Whether content that is reported here has already arrived.
    var hasBegun: Bool { begun.load(ordering: .relaxed) }

    fileprivate func begin(total: Int?) {
        begun.store(true, ordering: .relaxed)
        change { $0 = Update(completed: 0, total: total) }
    }

    fileprivate func add(_ count: Int) {
        change { $0.completed += count }
    }

    fileprivate func end(isWhole: Bool) {
        if isWhole { change { $0.total = $0.completed } }
        continuation.finish()
    }

    private func change(_ change: (inout Update) -> Void) {
        state.withLock { state in
            change(&state)
            continuation.yield(state)
        }
        // Outside the lock, since observers run in it; again if it has changed meanwhile, so that the newest is set last.
        var shown: Update
        repeat {
            shown = current
            foundation.totalUnitCount = shown.total.map { Int64($0) } ?? -1
            foundation.completedUnitCount = Int64(shown.completed)
        } while shown != current
    }
}

extension Response {
    /// The response, whose content is reported to `progress` as it is read.
    func reporting(to progress: TransferProgress) -> Response {
        progress.begin(total: body.length ?? (contentDecoded ? nil : head.contentLength))
        guard let source = body.source else {
            progress.add(body.length ?? 0)
            progress.end(isWhole: true)
            return self
        }
        var response = self
        let watched = WatchedBody(
            source,
            received: { progress.add($0.count) },
            ended: { _, end in progress.end(isWhole: end.isWhole) }
        )
        response.body = ResponseBody(watched, length: body.length)
        return response
    }
}
