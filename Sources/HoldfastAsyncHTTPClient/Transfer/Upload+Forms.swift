// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import Foundation
    internal import Holdfast
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    extension Upload {
        /// The upload of a request body; nothing of it is read but a file's length.
        ///
        /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent` where a file cannot be read.
        convenience init(_ body: RequestBody, of request: URLRequest, loops: any EventLoopGroup) async throws {
            switch body.form {
            case .none:
                self.init(length: 0, loops: loops) { BytesContent(ByteChunk()) }
            case .bytes(let bytes):
                self.init(length: bytes.count, loops: loops) { BytesContent(bytes) }
            case .file(let url):
                let length: Int
                do {
                    length = try await FileContent.length(of: url)
                } catch {
                    throw ServiceError(
                        .badRequest,
                        "The file with the request body cannot be read, so nothing was sent; check its path and rights.",
                        cause: error,
                        progress: .notSent
                    )
                }
                self.init(length: length, loops: loops) { try await FileContent.open(url) }
            case .factory(let length, let make):
                self.init(length: length, loops: loops, make)
            case .oneShot(let length, let source):
                self.init(length: length, loops: loops) { source }
            case .requestStream:
                self.init(length: nil, loops: loops) { StreamContent(request) }
            }
        }
    }

    /// Bytes in memory, handed out once.
    private final class BytesContent: ByteSource {
        private let rest: Mutex<ByteChunk?>

        init(_ bytes: ByteChunk) {
            rest = Mutex(bytes.isEmpty ? nil : bytes)
        }

        func next() async throws -> ByteChunk? {
            rest.withLock { rest in
                defer { rest = nil }
                return rest
            }
        }

        func cancel() {
            rest.withLock { $0 = nil }
        }
    }
#endif
