// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage

extension Response {
    /// All of the content, which is the response's from then on; of a response that is refused anyway what can be had of it.
    ///
    /// - Parameters:
    ///   - limit: the most bytes. Longer content that is wanted is an error; of what is refused the first bytes are taken,
    ///     since status and fields say more than how long it is, or how it ended.
    ///   - isRefused: whether its status is refused.
    /// - Throws: `.bodyTooLarge`, the failure that broke the body, `CancellationError`.
    mutating func takeContent(upTo limit: Int, isRefused: Bool) async throws -> ByteChunk {
        var bytes: ByteChunk
        if isRefused, let source = body.source {
            var first: [UInt8] = []
            do {
                while first.count < limit, let chunk = try await source.next() { chunk.append(to: &first) }
            } catch {
                if error.isCancellation { throw error }
            }
            source.cancel()
            bytes = ByteChunk(Array(first.prefix(limit)))
        } else if isRefused {
            bytes = ByteChunk(Array((body.bytesInMemory ?? ByteChunk()).array.prefix(limit)))
        } else {
            bytes = try await body.collect(upTo: limit)
        }
        body = ResponseBody(bytes)
        return bytes
    }
}
