// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastStorage
private import Synchronization

/// The bytes of a file, chunk by chunk: all of them as they were when the snapshot was taken, or an error.
///
/// Reads on threads for blocking work, because a file may be on a slow disk. The file is open from the first chunk to the last,
/// and closed when the source is cancelled or released.
final class FileSource: ByteSource {
    private struct State {
        var file: SnapshotReader?
        var offset = 0
        var isCancelled = false
        var waiting: CheckedContinuation<ByteChunk?, any Error>?
    }

    private static let chunkSize = 256 << 10
    private let snapshot: FileSnapshot
    private let state = Mutex(State())

    init(_ snapshot: FileSnapshot) {
        self.snapshot = snapshot
    }

    func next() async throws -> ByteChunk? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    if !state.isCancelled { state.waiting = continuation }
                    return state.isCancelled
                }
                if isCancelled { return continuation.resume(throwing: CancellationError()) }
                BlockingWork.enqueue {
                    let result = Result { try self.read() }
                    self.state.withLock { $0.waiting.take() }?.resume(with: result)
                }
            }
        } onCancel: {
            cancel()
        }
    }

    func cancel() {
        let (file, waiting) = state.withLock { state in
            state.isCancelled = true
            return (state.file.take(), state.waiting.take())
        }
        waiting?.resume(throwing: CancellationError())
        // Closes the file, once a read in progress has released it too.
        withExtendedLifetime(file) {}
    }

    /// The next chunk; never called twice at a time, because a source has one reader.
    private func read() throws -> ByteChunk? {
        let (opened, offset) = state.withLock { ($0.file, $0.offset) }
        // The end was reached, and the file closed then.
        if opened == nil, offset > 0, offset == snapshot.size { return nil }
        let file = try opened ?? snapshot.openFile()
        let count = min(FileSource.chunkSize, snapshot.size - offset)
        let bytes = try file.bytes(from: offset, count: count)
        let isLast = offset + count == snapshot.size
        if isLast { try file.checkUnchanged() }
        state.withLock { state in
            state.offset = offset + count
            state.file = isLast || state.isCancelled ? nil : file
        }
        return bytes.isEmpty ? nil : ByteChunk(bytes)
    }
}
