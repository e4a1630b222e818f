// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage

extension Response {
    /// Reads all of the content and makes it the response's body; of a refused response, reads as much as there is.
    ///
    /// - Parameters:
    ///   - limit: the most bytes. Longer content is an error if the response is accepted. Of a refused one only the first bytes
    ///     are taken: its status and fields matter more than its length, or how it ended.
    ///   - isRefused: whether its status is refused.
    /// - Throws: `.bodyTooLarge`, the failure that ended the body, `CancellationError`.
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
