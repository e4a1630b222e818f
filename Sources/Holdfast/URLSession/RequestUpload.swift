// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A request body in one of the two forms that URLSession can send: inside the request, or from a file.
struct RequestUpload: Sendable {
    /// The request with its content, or without any if there is a file.
    let request: URLRequest
    /// The file to upload, which is not empty.
    let file: UploadFile?
    /// Keeps a temporary file's name until the transfer has ended; nil if the name is not needed.
    let temporaryFile: TemporaryFile?

    private init(_ request: URLRequest, file: UploadFile? = nil, temporaryFile: TemporaryFile? = nil) {
        var request = request
        // Empty content is treated the same wherever it comes from; the code for bytes decides what follows.
        let isEmpty = file?.count == 0
        if isEmpty { request.httpBody = Data() }
        self.request = request
        self.file = isEmpty ? nil : file
        self.temporaryFile = isEmpty ? nil : temporaryFile
    }

    /// Whether anything follows the head.
    var hasContent: Bool {
        file != nil || request.httpBodyStream != nil || !(request.httpBody ?? Data()).isEmpty
    }

    #if !canImport(Darwin)
        /// The request with its content; the content of a file becomes a new stream of known length; for one task.
        ///
        /// Foundation knows no length for a stream, so libcurl would send it chunked. A Transfer-Encoding of white space prevents
        /// that and is not sent itself, so the length given here frames the content (RFC 9112 §6.2).
        var streamedRequest: URLRequest {
            guard let file else { return request }
            var request = request
            request.httpBodyStream = FileInputStream(file)
            request.setValue("\(file.count)", forHTTPHeaderField: "Content-Length")
            request.setValue(" ", forHTTPHeaderField: "Transfer-Encoding")
            return request
        }
    #endif

    /// Converts `body`; streams are read to their end, into memory up to `memoryLimit` bytes, then into a file.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent` if a stream fails or a file cannot be read,
    ///   `CancellationError`.
    static func prepare(
        _ request: URLRequest,
        body: RequestBody,
        memoryLimit: Int
    ) async throws -> RequestUpload {
        var request = request
        // The content says how long it is. Foundation on Linux would send the caller's Content-Length instead, or beside a chunked
        // stream, which allows request smuggling (RFC 9112 §6.1); and the caller's Transfer-Encoding without any content.
        request.setValue(nil, forHTTPHeaderField: "Content-Length")
        request.setValue(nil, forHTTPHeaderField: "Transfer-Encoding")
        #if !canImport(Darwin)
            // Foundation on Linux knows schemes in lower case only.
            if let url = request.url, let scheme = url.scheme, scheme != scheme.lowercased(),
                var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
            {
                parts.scheme = scheme.lowercased()
                request.url = parts.url ?? url
            }
            let timeout = URLSessionTransport.allowed(request.timeoutInterval)
            if timeout != request.timeoutInterval { request.timeoutInterval = timeout }
        #endif
        if case .requestStream = body.form {
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
                return RequestUpload(request, file: try await UploadFile.open(url))
            } catch {
                throw TransferFailure.unreadableBody.error(cause: error, progress: .notSent)
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
            // URLSession opens it again, by its name.
            return RequestUpload(request, file: opened, temporaryFile: file)
        #else
            // Everything needed is open: without a name, nothing is left behind, whenever the process ends.
            await file.remove()
            return RequestUpload(request, file: opened)
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

/// A stream that is longer or shorter than declared.
private struct LengthMismatch: Error, CustomStringConvertible {
    let declared: Int
    let read: Int

    var description: String { "a body declared as \(declared) bytes has at least \(read)" }
}

/// A file that is uploaded, opened and measured before anything is sent.
///
/// Either the announced length is sent or the exchange is aborted: a file that grows or shrinks meanwhile fails.
final class UploadFile: Sendable {
    /// Where it is, with symbolic links resolved.
    let url: URL
    /// Its length in bytes when it was opened.
    let count: Int
    private let files = POSIXFileSystem()
    private let file: OpenFile
    private let firstFailure = Mutex<(any Error)?>(nil)

    /// Opens a regular file. Blocks.
    private init(_ url: URL) throws {
        guard url.isFileURL else { throw URLError(.unsupportedURL) }
        // Links are resolved here: the file system follows none, and Foundation on Linux uses the length of a link as that of its
        // file.
        self.url = url.resolvingSymlinksInPath()
        let path = self.url.path
        // Opening something that is not a file may have effects of its own.
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
    static func open(_ url: URL) async throws -> UploadFile {
        try await BlockingWork.run { try UploadFile(url) }
    }

    /// Why it could not be read to its end as it was when it was opened.
    var failure: (any Error)? { firstFailure.withLock { $0 } }

    /// Reads the bytes from `offset` on, as many as fit into `buffer`. Blocks.
    ///
    /// - Returns: how many were read, 0 at the end; nil if the file has changed or cannot be read, see ``failure``.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Int? {
        let wanted = min(buffer.count, count - offset)
        guard wanted > 0 else { return 0 }
        do {
            let bytes = try files.read(file, from: offset, count: wanted)
            // The last bytes are sent only if no more have come; otherwise, part of the file would be taken for the whole.
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

    var description: String { "a file of \(count) bytes changed its length while it was being sent" }
}

// Linux only: Apple's URLSession uploads files by itself.
#if !canImport(Darwin)
    internal import Foundation

    /// The content of a file in a form that Foundation on Linux reads without trapping: synchronously, when libcurl asks for it.
    ///
    /// Foundation's own upload from a file reads ahead on another thread and traps if the exchange ends meanwhile. A failure is
    /// reported by a read that returns -1, and Foundation then aborts the exchange. Foundation uses it from one queue.
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

        // True even if the next read will fail: Foundation takes false for a normal end.
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

    /// Another stream, opened only when its first bytes are requested: Foundation on Linux opens a request's stream before it has a
    /// connection, and an opened stream cannot be distinguished from one that was read.
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
