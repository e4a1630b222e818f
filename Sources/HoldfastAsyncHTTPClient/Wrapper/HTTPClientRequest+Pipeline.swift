// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    internal import NIOHTTP1

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    extension HTTPClientRequest {
        /// The request in the form that a pipeline takes.
        ///
        /// Repeated lines of a field are joined by commas (RFC 9110 §5.3), those of Cookie by semicolons (RFC 6265 §5.4).
        /// Content-Length and Transfer-Encoding are left out, because the client replaces them anyway.
        ///
        /// - Throws: ``ServiceError`` `.badRequest` with `HTTPClientError.invalidURL` as its cause.
        func forPipeline() throws -> (URLRequest, RequestBody) {
            guard !url.isEmpty, let url = URL(string: url) else {
                throw ServiceError(
                    .badRequest,
                    "The request has no valid URL. Give it an absolute http or https URL.",
                    cause: HTTPClientError.invalidURL,
                    progress: .notSent
                )
            }
            var request = URLRequest(url: url)
            request.httpMethod = method.rawValue
            var names: [String] = []
            var lines: [String: (name: String, values: [String])] = [:]
            for (name, value) in headers {
                let key = name.lowercased()
                if key == "content-length" || key == "transfer-encoding" { continue }
                if lines[key] == nil { names.append(key) }
                lines[key, default: (name, [])].values.append(value)
            }
            for key in names {
                guard let line = lines[key] else { continue }
                let separator = key == "cookie" ? "; " : ", "
                do {
                    try request.setField(line.name, to: line.values.joined(separator: separator))
                } catch var error as ServiceError {
                    error.cause =
                        FieldName(line.name) == nil
                        ? HTTPClientError.invalidHeaderFieldNames([line.name])
                        : HTTPClientError.invalidHeaderFieldValues(line.values)
                    throw error
                }
            }
            return (request, body?.forPipeline ?? .none)
        }
    }

    extension HTTPClientRequest.Body {
        /// The content in the form that a pipeline takes: in memory if the client could send it twice, otherwise a stream.
        ///
        /// How a body was made, and its declared length, are not public, so they are read by reflection. If that fails, it is
        /// treated as a stream of unknown length, which is correct for any body: sent chunked, and never twice.
        fileprivate var forPipeline: RequestBody {
            let form = BodyForm(self)
            if let bytes = form.bytes { return .bytes(ByteChunk(Array(bytes.readableBytesView))) }
            if form.isReplayable {
                let body = self
                return .factory(length: form.length) { PulledBytes(body) }
            }
            return .oneShot(length: form.length, PulledBytes(self))
        }
    }

    /// What reflection finds out about a request body.
    struct BodyForm {
        var bytes: ByteBuffer?
        var length: Int?
        var isReplayable = false

        init(_ body: HTTPClientRequest.Body) {
            guard let mode = Mirror(reflecting: body).children.first(where: { $0.label == "mode" })?.value,
                let form = Mirror(reflecting: mode).children.first
            else { return }
            if form.label == "byteBuffer", let buffer = form.value as? ByteBuffer {
                bytes = buffer
                length = buffer.readableBytes
                isReplayable = true
                return
            }
            for detail in Mirror(reflecting: form.value).children {
                switch detail.label {
                case "length": length = BodyForm.known(detail.value)
                case "canBeConsumedMultipleTimes": isReplayable = detail.value as? Bool ?? false
                default: break
                }
            }
        }

        private static func known(_ length: Any) -> Int? {
            guard let form = Mirror(reflecting: length).children.first, form.label == "known" else { return nil }
            return (form.value as? Int64).flatMap { Int(exactly: $0) }
        }
    }
#endif
