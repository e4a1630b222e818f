// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
public import HoldfastStorage

/// Taking stored responses out of a cache.
extension HTTPCache {
    /// Opens a stored response as a message that can be shown or written to a file.
    ///
    /// The newest version is taken, also where the response was freshened or replaced since it was listed. Counts as a look-up of
    /// the store, and as no request to the cache.
    ///
    /// - Parameters:
    ///   - info: names the response, as ``entries(_:pageSize:now:)`` tells it.
    ///   - now: the time by which its age is judged; the system's by default.
    /// - Returns: the message; nil where the response is no longer there.
    /// - Throws: `StoreError`: `.corrupt` for a damaged entry, and what a look-up throws. Damage in the body shows while it is read.
    public func export(
        _ info: CacheEntryInfo,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> ExportedEntry? {
        let entries = try await store.entries(for: info.key, now: StoreInstant(now))
        guard let entry = entries.first(where: { $0.variant == info.variant }) else { return nil }
        guard let stored = StoredResponse(decoding: entry.description.metadata, targetedFields: options.targets),
            let (head, pieces) = stored.message(bodyLength: entry.bodyLength, now: now)
        else {
            throw StoreError(.corrupt, "The stored response of \(info.target) cannot be read; remove it.")
        }
        let body: any StoredBody
        do throws(StoreError) {
            body = try await store.body(of: entry)
        } catch {
            if error.code == .superseded { return nil }
            throw error
        }
        let current = CacheEntryInfo(
            entry,
            stored,
            options,
            hits: info.hits,
            storedBytes: info.storedBytes,
            now: now
        )
        let lifetime = stored.freshnessLifetime(options)
        return ExportedEntry(info: current, head: head, lifetime: lifetime, pieces: pieces, stored: body)
    }
}

extension StoredResponse {
    /// The head of the message that all stored bytes make, and where its content lies in the entry's body.
    ///
    /// - Returns: nil where the body is not as long as the parts it should consist of.
    fileprivate func message(bodyLength: Int, now: Timestamp) -> (ResponseHead, [StoredBodySource.Piece])? {
        guard let ranges else { return (wholeHead(bodyLength: bodyLength, now: now), [.stored(0..<bodyLength)]) }
        guard let offsets = offsets(of: ranges.intervals, bodyLength: bodyLength) else { return nil }
        if let interval = ranges.intervals.first, ranges.intervals.count == 1 {
            guard let range = ContentRange(interval, completeLength: ranges.completeLength) else { return nil }
            return (PartialContent.head(of: self, range: range, now: now), [.stored(0..<bodyLength)])
        }
        let multipart = MultipartByteRanges(
            intervals: ranges.intervals,
            completeLength: ranges.completeLength,
            contentType: head.fields[.contentType],
            seed: .random(in: .min ... .max)
        )
        let pieces: [StoredBodySource.Piece] = multipart.pieces.map { piece in
            switch piece {
            case .literal(let bytes): .literal(ByteChunk(bytes))
            case .stored(let interval): .stored(offsets[interval] ?? 0..<0)
            }
        }
        return (PartialContent.head(of: self, body: multipart, now: now), pieces)
    }

    private func wholeHead(bodyLength: Int, now: Timestamp) -> ResponseHead {
        var answer = responseHead(now: now)
        answer.fields.removeAll(.contentLength)
        answer.fields.removeAll(.transferEncoding)
        let hasNoContent = answer.status.isInformational || answer.status == 204 || answer.status == 304
        if !hasNoContent { answer.fields.append(.contentLength, String(bodyLength)) }
        return answer
    }

    /// Where each interval stands in a body that holds them one after another; nil where they do not fill it exactly.
    private func offsets(of intervals: [Range<Int64>], bodyLength: Int) -> [Range<Int64>: Range<Int>]? {
        var offsets: [Range<Int64>: Range<Int>] = [:]
        var offset = 0
        for interval in intervals {
            // Intervals begin at 0 or above, so that their lengths cannot overflow.
            guard let length = Int(exactly: interval.upperBound - interval.lowerBound), length <= bodyLength - offset
            else { return nil }
            offsets[interval] = offset..<offset + length
            offset += length
        }
        return offset == bodyLength ? offsets : nil
    }
}
