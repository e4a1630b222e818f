// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastStorage
import LoopbackServer
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Chunks from memory, and a note of whether the source was cancelled.
final class ChunkSource: ByteSource {
    struct Failure: Error {}

    private let state: Mutex<(chunks: ArraySlice<ByteChunk>, isCancelled: Bool)>
    private let fails: Bool

    /// A source of `chunks`; after the last one it ends or, if so told, fails.
    init(_ chunks: [ByteChunk], fails: Bool = false) {
        state = Mutex((chunks[...], false))
        self.fails = fails
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func next() async throws -> ByteChunk? {
        let chunk = state.withLock { $0.chunks.popFirst() }
        if chunk == nil && fails { throw Failure() }
        return chunk
    }

    func cancel() {
        state.withLock { $0.isCancelled = true }
    }
}

extension Transport {
    /// Sends without a pipeline.
    func send(
        _ url: URL,
        method: String = "GET",
        fields: [String: String] = [:],
        body: RequestBody = .none,
        context: CallContext = CallContext()
    ) async throws -> Response {
        var request = URLRequest(url: url)
        request.httpMethod = method
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return try await send(request, body: body, context: context)
    }
}

extension Response {
    /// The whole body as text.
    func text() async throws -> String {
        String(decoding: try await body.collect(), as: UTF8.self)
    }
}

/// Bytes that tell of a lost, doubled or swapped block.
func patternedBytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    bytes.withUnsafeMutableBytes { buffer in
        var position = 0
        while position < count {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let word = state >> 24
            for shift in 0..<min(4, count - position) {
                buffer[position + shift] = UInt8(truncatingIfNeeded: word >> (8 * UInt64(shift)))
            }
            position += 4
        }
    }
    return bytes
}
