// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastStorage
import HoldfastTesting
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

/// Bytes that tell of a lost, doubled or swapped block: each 4 KiB begins with its number.
func patternedBytes(_ count: Int) -> [UInt8] {
    let filler = (0..<4_096).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ ($0 >> 8)) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + filler.count)
    var number = 0
    while bytes.count < count {
        var block = filler
        for position in 0..<4 { block[position] = UInt8(truncatingIfNeeded: number >> (8 * position)) }
        bytes += block
        number += 1
    }
    bytes.removeSubrange(count...)
    return bytes
}
