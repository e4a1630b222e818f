// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// Linux only: Apple's URLSession uploads files by itself.
#if !canImport(Darwin)
    internal import Foundation

    /// The content of a file as Foundation on Linux reads it without trapping: at once, when libcurl asks for it.
    ///
    /// Foundation's own upload from a file reads ahead on another thread and traps when the exchange ends meanwhile. A failure
    /// is told by a read that returns -1, upon which Foundation breaks the exchange off. Foundation uses it from one queue.
    final class FileInputStream: InputStream {
        private let file: UploadFile
        private var position = 0
        private var status = Stream.Status.notOpen

        /// A stream from the start of `file`.
        init(_ file: UploadFile) {
            self.file = file
            super.init(data: Data())
        }

        override var streamStatus: Stream.Status { status }

        override var streamError: (any Error)? { file.failure }

        // True also where the next read will fail: Foundation takes false for a good end.
        override var hasBytesAvailable: Bool { position < file.count }

        override func open() {
            status = .open
        }

        override func close() {
            status = .closed
        }

        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
            let buffer = UnsafeMutableRawBufferPointer(start: buffer, count: max(length, 0))
            guard status != .error, let count = file.read(into: buffer, at: position) else {
                status = .error
                return -1
            }
            position += count
            if position == file.count { status = .atEnd }
            return count
        }
    }

    /// Another stream, opened only when its first bytes are asked for: Foundation on Linux opens a request's stream before it has a
    /// connection, and one that was opened cannot be told from one that was read.
    final class LateInputStream: InputStream {
        private let stream: InputStream
        private var status = Stream.Status.notOpen

        init(_ stream: InputStream) {
            self.stream = stream
            super.init(data: Data())
        }

        override var streamStatus: Stream.Status { status }

        override var streamError: (any Error)? { nil }

        override var hasBytesAvailable: Bool {
            stream.streamStatus == .notOpen ? status == .open : stream.hasBytesAvailable
        }

        override func open() {
            status = .open
        }

        override func close() {
            status = .closed
            if stream.streamStatus != .notOpen { stream.close() }
        }

        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
            if stream.streamStatus == .notOpen { stream.open() }
            let count = stream.read(buffer, maxLength: length)
            if count < 0 { status = .error }
            if count == 0 { status = .atEnd }
            return count
        }
    }
#endif
