// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastStorage
private import Synchronization

/// The bytes of a downloaded file; opened when they are first read.
final class DownloadedBytes: ByteSource {
    private struct State {
        var reader: ReadableFile?
        var offset = 0
        /// The file has been closed.
        var isAtEnd = false
        var isCancelled = false
    }

    private static let chunkSize = 64 << 10
    private let path: String
    private let state = Mutex(State())

    init(_ url: URL) {
        path = url.path
    }

    func next() async throws -> ByteChunk? {
        try Task.checkCancellation()
        let (known, offset, isAtEnd) = try state.withLock { state in
            guard !state.isCancelled else { throw CancellationError() }
            return (state.reader, state.offset, state.isAtEnd)
        }
        if isAtEnd { return nil }
        let path = path
        let (reader, bytes) = try await BlockingWork.run {
            let reader = try known ?? ReadableFile(path)
            return (reader, try reader.read(from: offset, count: DownloadedBytes.chunkSize))
        }
        return try state.withLock { state in
            guard !state.isCancelled else { throw CancellationError() }
            state.reader = bytes.isEmpty ? nil : reader
            state.isAtEnd = bytes.isEmpty
            state.offset = offset + bytes.count
            return bytes.isEmpty ? nil : ByteChunk(bytes)
        }
    }

    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            state.reader = nil
        }
    }
}
