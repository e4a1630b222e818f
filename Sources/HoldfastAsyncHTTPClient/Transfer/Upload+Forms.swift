// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import Foundation
    internal import Holdfast
    internal import HoldfastStorage
    internal import NIOCore

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    extension Upload {
        /// The upload of a request body; a file is opened, but nothing is read.
        ///
        /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent` if a file cannot be read.
        convenience init(_ body: RequestBody, of request: URLRequest, loops: any EventLoopGroup) async throws {
            switch body.form {
            case .none:
                self.init(length: 0, loops: loops) { BytesContent(ByteChunk()) }
            case .bytes(let bytes):
                self.init(length: bytes.count, loops: loops) { BytesContent(bytes) }
            case .file(let url):
                let file: FileContent
                do {
                    file = try await FileContent.open(url)
                } catch {
                    throw ServiceError(
                        .badRequest,
                        "The file with the request body could not be read, so nothing was sent. Check its path and permissions.",
                        cause: error,
                        progress: .notSent
                    )
                }
                self.init(length: file.length, loops: loops) { file }
            case .factory(let length, let make):
                self.init(length: length, loops: loops, make)
            case .oneShot(let length, let source):
                self.init(length: length, loops: loops) { source }
            case .requestStream:
                self.init(length: nil, loops: loops) { StreamContent(request) }
            }
        }
    }
#endif
