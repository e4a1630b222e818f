// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastStorage

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// The content of one sending of a request.
    enum OutgoingContent: Sendable {
        case bytes(ByteChunk)
        /// Nothing of it has been read.
        case source(any ByteSource, length: Int?)

        /// Opens a body; nothing is sent yet, and nothing of a stream is read.
        ///
        /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent`, or `CancellationError`.
        static func open(_ body: RequestBody, of request: URLRequest) async throws -> OutgoingContent {
            do {
                switch body.form {
                case .none: return .bytes(ByteChunk())
                case .bytes(let bytes): return .bytes(bytes)
                case .file(let url):
                    let file = try await FileContent.open(url)
                    return .source(file, length: file.length)
                case .factory(let length, let make): return .source(try await make(), length: length)
                case .oneShot(let length, let source): return .source(source, length: length)
                case .requestStream: return .source(StreamContent(request), length: nil)
                }
            } catch let error as CancellationError {
                throw error
            } catch {
                throw ServiceError(
                    .badRequest,
                    "The request body cannot be opened, so nothing was sent; see the cause, and check a file's path and rights.",
                    cause: error,
                    progress: .notSent
                )
            }
        }

        /// The length in bytes, if known.
        var length: Int? {
            switch self {
            case .bytes(let bytes): bytes.count
            case .source(_, let length): length
            }
        }

        /// Lets go of a source.
        func cancel() {
            if case .source(let source, _) = self { source.cancel() }
        }
    }
#endif
