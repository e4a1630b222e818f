// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension TransportDefect {
    private static let forms = [
        "none", "no bytes", "bytes", "a file", "a factory of known length", "a factory", "an empty factory", "one shot",
        "one shot of known length",
    ]
    private static let brokenBodies = [
        "reset before its first byte", "reset in the middle", "shorter than Content-Length",
        "without any byte although Content-Length says more", "in chunks, reset", "in chunks, without the last one",
        "until close, reset",
    ]
    private static let framings = [0, 300_000].flatMap { bytes in
        ["Content-Length", "chunked", "until close"].map { "a body of \(bytes) bytes is read to its end: \($0)" }
    }

    static let ofBodies: [TransportDefect] = [
        TransportDefect(
            "sends a byte more",
            foundBy: forms.map { "a request body arrives byte for byte, with its framing: \($0)" },
            sending: { sound, request, body, context in
                let whole = try await bytes(of: body) + [0]
                return try await sound.send(request, body: .bytes(ByteChunk(whole)), context: context)
            }
        ),
        TransportDefect(
            "takes what a source gave before it failed for the whole",
            foundBy: [
                "a request body that fails ends the exchange, its length declared",
                "a request body that fails ends the exchange, its length unknown",
                "a request body longer than its declared length is never taken for complete",
                "a request body shorter than its declared length is never taken for complete",
            ],
            sending: { sound, request, body, context in
                let known = try await bytes(of: body)
                return try await sound.send(request, body: .bytes(ByteChunk(known)), context: context)
            }
        ),
        TransportDefect(
            "drops the content of a GET",
            foundBy: ["content in a GET arrives, or is rejected and nothing is sent"],
            sending: { sound, request, body, context in
                let body = request.httpMethod == "GET" ? .none : body
                return try await sound.send(request, body: body, context: context)
            }
        ),
        .ofResponses("adds an empty chunk and a byte", foundBy: framings) { response, _ in
            let isOver = Atomic(false)
            response.spoilBody { source, _ in
                if let chunk = try await source.next() { return chunk }
                return isOver.exchange(true, ordering: .relaxed) ? nil : ByteChunk([7])
            }
        },
        .ofResponses(
            "changes a byte far out",
            foundBy: ["a long body with a slow reader is read ahead only as declared, and every byte is correct"]
        ) { response, _ in
            response.spoilBody { source, position in
                guard let chunk = try await source.next(), position > 20 << 20 else { return try await source.next() }
                return ByteChunk(chunk.array.map { $0 ^ 1 })
            }
        },
        TransportDefect(
            "takes in without bound",
            foundBy: [
                "a long body with a slow reader is read ahead only as declared, and every byte is correct",
                "a long request body is sent as fast as it is accepted, or collected, and every byte is correct",
            ],
            declaring: { capabilities in
                capabilities.readAhead = .backPressure(bytes: 1 << 20)
                capabilities.requestStreaming = .backPressure(bytes: 1 << 20)
            }
        ),
        TransportDefect(
            "hands up what is whole only",
            foundBy: ["the head is returned before the body, and each part as it arrives"],
            hangs: true,
            sending: { sound, request, body, context in
                var response = try await sound.send(request, body: body, context: context)
                response.body = ResponseBody(try await response.body.collect())
                return response
            }
        ),
        .ofResponses(
            "takes a broken body for whole",
            foundBy: brokenBodies.map { "a body \($0) is never taken for complete" } + [
                "broken gzip ends the body with an error, if the transport decodes it",
                "an unknown content coding is returned as received, or rejected",
            ]
        ) { response, _ in
            response.spoilBody { source, _ in try? await source.next() }
        },
        TransportDefect(
            "leaves a byte for the next exchange",
            foundBy: [
                "concurrent exchanges do not mix",
                "the unread rest of a body is never taken for the next response",
            ],
            make: { MixingTransport() }
        ),
    ]

    private static func bytes(of body: RequestBody) async throws -> [UInt8] {
        let source: any ByteSource
        switch body.form {
        case .none, .requestStream: return []
        case .bytes(let bytes): return bytes.array
        case .file(let url): return Array(try Data(contentsOf: url))
        case .factory(_, let make): source = try await make()
        case .oneShot(_, let stream): source = stream
        }
        var bytes: [UInt8] = []
        while let chunk = try? await source.next() { chunk.append(to: &bytes) }
        return bytes
    }
}

/// Leaves a byte of each exchange for the next.
private final class MixingTransport: Transport {
    private let sound = URLSessionTransport()
    private let leftOver = Atomic(false)

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        var response = try await sound.send(request, body: body, context: context)
        let isSpoiled = leftOver.exchange(true, ordering: .relaxed)
        response.spoilBody { source, position in
            isSpoiled && position == 0 ? ByteChunk([0x78]) : try await source.next()
        }
        return response
    }
}
