// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

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

    private init(_ request: URLRequest, from file: UploadFile, _ temporaryFile: TemporaryFile? = nil) {
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
            return try await collect(source, length, into: request, memoryLimit)
        case .factory(let length, let make):
            do {
                return try await collect(try await make(), length, into: request, memoryLimit)
            } catch let error as ServiceError {
                throw error
            } catch {
                throw unreadable(error)
            }
        }
    }

    private static func collect(
        _ source: any ByteSource,
        _ length: Int?,
        into request: URLRequest,
        _ memoryLimit: Int
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
            return RequestUpload(request, from: opened, file)
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
            "The request body could not be read, so nothing was sent; see the cause and mend the body's source.",
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
