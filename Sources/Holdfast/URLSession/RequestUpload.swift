// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A request body in one of the two shapes URLSession can send: inside the request, or from a file.
struct RequestUpload: Sendable {
    /// The request with its content, or, when there is a file, without any.
    let request: URLRequest
    /// The file to upload, which is not empty.
    let file: UploadFile?
    /// Keeps a temporary file's name until the transfer has ended; nil where the name is not needed.
    let temporaryFile: TemporaryFile?

    private init(_ request: URLRequest, file: UploadFile? = nil, temporaryFile: TemporaryFile? = nil) {
        self.request = request
        self.file = file
        self.temporaryFile = temporaryFile
    }

    private init(_ request: URLRequest, from file: UploadFile, temporaryFile: TemporaryFile? = nil) {
        guard file.count == 0 else {
            self.init(request, file: file, temporaryFile: temporaryFile)
            return
        }
        // No content is no content, wherever it comes from; what follows from that is settled for bytes.
        var request = request
        request.httpBody = Data()
        self.init(request)
    }

    /// Whether anything follows the head.
    var hasContent: Bool {
        file != nil || request.httpBodyStream != nil || !(request.httpBody ?? Data()).isEmpty
    }

    #if !canImport(Darwin)
        /// The request with its content, that of a file as a new stream of known length; for one task.
        ///
        /// Foundation knows no length of a stream and lets libcurl send it chunked. A Transfer-Encoding of white space keeps
        /// libcurl from that and is not sent itself, so the length given here frames the content (RFC 9112 §6.2).
        var streamedRequest: URLRequest {
            guard let file else { return request }
            var request = request
            request.httpBodyStream = FileInputStream(file)
            request.setValue("\(file.count)", forHTTPHeaderField: "Content-Length")
            request.setValue(" ", forHTTPHeaderField: "Transfer-Encoding")
            return request
        }
    #endif

    /// Brings `body` into shape; streams are read to their end, into memory up to `memoryLimit` bytes, then into a file.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent` when a stream fails or a file cannot be read,
    ///   `CancellationError`.
    static func prepare(
        _ request: URLRequest,
        body: RequestBody,
        memoryLimit: Int
    ) async throws -> RequestUpload {
        var request = request
        if case .requestStream = body.form {
            // A stream goes out chunked. Foundation on Linux would send a Content-Length of the caller's beside it, which is
            // how requests are smuggled (RFC 9112 §6.1).
            request.setValue(nil, forHTTPHeaderField: "Content-Length")
            #if !canImport(Darwin)
                if let stream = request.httpBodyStream { request.httpBodyStream = LateInputStream(stream) }
            #endif
            return RequestUpload(request)
        }
        request.httpBody = nil
        request.httpBodyStream = nil
        switch body.form {
        case .none, .requestStream:
            return RequestUpload(request)
        case .bytes(let bytes):
            request.httpBody = Data(bytes)
            return RequestUpload(request)
        case .file(let url):
            do {
                return RequestUpload(request, from: try await UploadFile.open(url))
            } catch {
                throw TransferFailure.unreadableFile(error)
            }
        case .oneShot(let length, let source):
            return try await collect(source, length: length, into: request, memoryLimit: memoryLimit)
        case .factory(let length, let make):
            do {
                return try await collect(try await make(), length: length, into: request, memoryLimit: memoryLimit)
            } catch let error as ServiceError {
                throw error
            } catch {
                throw unreadable(error)
            }
        }
    }

    private static func collect(
        _ source: any ByteSource,
        length: Int?,
        into request: URLRequest,
        memoryLimit: Int
    ) async throws -> RequestUpload {
        do {
            var request = request
            var data = Data()
            var file: TemporaryFile?
            var count = 0
            while let chunk = try await source.next() {
                count += chunk.count
                if let file {
                    try await file.append(chunk)
                } else if chunk.count <= memoryLimit - data.count {
                    chunk.withUnsafeBytes { data.append(contentsOf: $0) }
                } else {
                    file = try await TemporaryFile.containing([ByteChunk(copying: data), chunk])
                    data = Data()
                }
                if let length, count > length { break }
            }
            if let length, count != length { throw LengthMismatch(declared: length, read: count) }
            if let file { return try await upload(request, from: file) }
            request.httpBody = data
            return RequestUpload(request)
        } catch {
            source.cancel()
            throw unreadable(error)
        }
    }

    private static func upload(_ request: URLRequest, from file: TemporaryFile) async throws -> RequestUpload {
        let opened = try await UploadFile.open(file.url)
        #if canImport(Darwin)
            // URLSession opens it once more, by its name.
            return RequestUpload(request, from: opened, temporaryFile: file)
        #else
            // All that is needed is open: without a name nothing is left behind, wherever the process ends.
            await file.remove()
            return RequestUpload(request, from: opened)
        #endif
    }

    private static func unreadable(_ error: any Error) -> any Error {
        if error is CancellationError { return error }
        return ServiceError(
            .badRequest,
            "The request body could not be read, so nothing was sent. See the cause, and check where the body comes from.",
            cause: error,
            progress: .notSent
        )
    }
}

/// A stream that is longer or shorter than it was said to be.
private struct LengthMismatch: Error, CustomStringConvertible {
    let declared: Int
    let read: Int

    var description: String { "a body declared as \(declared) bytes has \(read) or more" }
}

/// A file on its way into a request, opened and measured before anything is sent.
///
/// What was announced is sent or the exchange is broken off: a file that grows or shrinks meanwhile fails.
final class UploadFile: Sendable {
    /// Where it lies, symbolic links being followed.
    let url: URL
    /// Its length in bytes when it was opened.
    let count: Int
    private let files: any FileSystem
    private let file: OpenFile
    private let firstFailure = Mutex<(any Error)?>(nil)

    /// Opens a regular file. Blocks.
    private init(_ url: URL, on files: any FileSystem) throws {
        guard url.isFileURL else { throw URLError(.unsupportedURL) }
        // Links are followed here: the file system follows none, and Foundation on Linux takes the length of a link for that of
        // its file.
        self.url = url.resolvingSymlinksInPath()
        self.files = files
        let path = self.url.path
        // Opening what is no file may have effects of its own.
        guard try files.attributes(of: path).kind == .file else { throw URLError(.fileIsDirectory) }
        file = try files.open(path, .read)
        do {
            count = try files.size(of: file)
        } catch {
            // Nobody else will: an initializer that throws has no deinitializer.
            files.close(file)
            throw error
        }
    }

    deinit { files.close(file) }

    /// Opens a regular file, off the cooperative pool.
    static func open(_ url: URL, on files: any FileSystem = POSIXFileSystem()) async throws -> UploadFile {
        try await BlockingWork.run { try UploadFile(url, on: files) }
    }

    /// Why it could not be read to its end as it was when it was opened.
    var failure: (any Error)? { firstFailure.withLock { $0 } }

    /// Reads the bytes from `offset` on, as many as `buffer` takes. Blocks.
    ///
    /// - Returns: how many were read, 0 at the end; nil when the file is not what it was, or cannot be read, see ``failure``.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Int? {
        let wanted = min(buffer.count, count - offset)
        guard wanted > 0 else { return 0 }
        do {
            let bytes = try files.read(file, from: offset, count: wanted)
            // The last bytes leave only when no more have come, or a part of the file would pass for the whole.
            let isLast = offset + wanted == count
            guard bytes.count == wanted, try !isLast || files.size(of: file) == count else {
                throw ChangedFile(count: count)
            }
            buffer.copyBytes(from: bytes)
            return wanted
        } catch {
            firstFailure.withLock { $0 = $0 ?? error }
            return nil
        }
    }
}

/// A file that grew or shrank while it was sent.
private struct ChangedFile: Error, CustomStringConvertible {
    let count: Int

    var description: String { "a file of \(count) bytes changed its length while it was sent" }
}

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
