// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    private import Dispatch
    internal import Foundation
    internal import Holdfast
    internal import HoldfastStorage
    private import Synchronization

    /// A file read in pieces, off the cooperative pool.
    final class FileContent: ByteSource {
        private static let queue = DispatchQueue(label: "holdfast.async-http-client.files", attributes: .concurrent)
        private static let pieceLength = 128 << 10

        private let file: Mutex<FileHandle?>

        private init(_ file: FileHandle) {
            self.file = Mutex(file)
        }

        /// The length of a file in bytes.
        static func length(of url: URL) async throws -> Int {
            try await offPool {
                let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
                guard attributes[.type] as? FileAttributeType == .typeRegular, let size = attributes[.size] as? NSNumber
                else { throw CocoaError(.fileReadUnknown) }
                return size.intValue
            }
        }

        /// Opens a file.
        static func open(_ url: URL) async throws -> FileContent {
            try await offPool { FileContent(try FileHandle(forReadingFrom: url)) }
        }

        func next() async throws -> ByteChunk? {
            try Task.checkCancellation()
            guard let file = file.withLock({ $0 }) else { throw CancellationError() }
            let data = try await FileContent.offPool { try file.read(upToCount: FileContent.pieceLength) }
            guard let data, !data.isEmpty else { return nil }
            return ByteChunk(copying: data)
        }

        func cancel() {
            // The last one who holds the handle closes it, so a read that is under way ends in good order.
            file.withLock { $0 = nil }
        }

        private static func offPool<Value: Sendable>(
            _ work: @escaping @Sendable () throws -> Value
        ) async throws -> Value {
            try await withCheckedThrowingContinuation { continuation in
                queue.async { continuation.resume(with: Result(catching: work)) }
            }
        }
    }
#endif
