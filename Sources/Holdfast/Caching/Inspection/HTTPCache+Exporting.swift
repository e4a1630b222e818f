// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
public import HoldfastStorage

/// Taking stored responses out of a cache.
extension HTTPCache {
    /// Opens a stored response as a message that can be shown or written to a file.
    ///
    /// Opens the newest version, even if the response was freshened or replaced since it was listed. Counts as a lookup in the
    /// store, but not as a request to the cache.
    ///
    /// - Parameters:
    ///   - info: identifies the response, as listed by ``entries(_:pageSize:now:)``.
    ///   - now: the time used to compute its age; the system's by default.
    /// - Returns: the message; nil if the response is no longer stored.
    /// - Throws: `StoreError`: `.corrupt` for a damaged entry, and the errors of a lookup. Damage in the body is reported while
    ///   it is read.
    public func export(
        _ info: CacheEntryInfo,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> ExportedEntry? {
        let entries = try await store.entries(for: info.key, now: StoreInstant(now))
        guard let entry = entries.first(where: { $0.variant == info.variant }) else { return nil }
        guard let stored = StoredResponse(decoding: entry.description.metadata, targetedFields: options.targets),
            let (head, pieces) = stored.message(bodyLength: entry.bodyLength, now: now)
        else {
            throw StoreError(.corrupt, "The stored response for \(info.target) cannot be read; remove it.")
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
            stored: stored,
            options: options,
            hits: info.hits,
            storedBytes: info.storedBytes,
            now: now
        )
        let lifetime = stored.freshnessLifetime(options)
        return ExportedEntry(info: current, head: head, lifetime: lifetime, pieces: pieces, stored: body)
    }
}

extension StoredResponse {
    /// The head of a message with all stored bytes, and the position of its content in the entry's body.
    ///
    /// - Returns: nil if the body is not as long as its parts together.
    fileprivate func message(bodyLength: Int, now: Timestamp) -> (ResponseHead, [StoredBodySource.Piece])? {
        guard let ranges else { return (wholeHead(bodyLength: bodyLength, now: now), [.stored(0..<bodyLength)]) }
        guard ranges.length == Int64(bodyLength) else { return nil }
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
        return (PartialContent.head(of: self, body: multipart, now: now), pieces(of: multipart, bodyLength: bodyLength))
    }

    private func wholeHead(bodyLength: Int, now: Timestamp) -> ResponseHead {
        var answer = responseHead(now: now)
        answer.fields.removeAll(.contentLength)
        answer.fields.removeAll(.transferEncoding)
        let hasNoContent = answer.status.isInformational || answer.status == 204 || answer.status == 304
        if !hasNoContent { answer.fields.append(.contentLength, String(bodyLength)) }
        return answer
    }
}

/// One stored response as a complete message, returned by ``HTTPCache/export(_:now:)``.
///
/// Its bytes stay readable whatever happens to the entry, until the last copy of this value, and of bodies made from it, is
/// released.
public struct ExportedEntry: Sendable {
    /// Information about the entry as it was when it was opened; hits and bytes are as listed.
    public let info: CacheEntryInfo
    /// The head with which the cache would answer at that time: with Age and Date (RFC 9111 §4), and a Content-Length of
    /// exactly the body's bytes if the status allows one (RFC 9110 §8.6).
    ///
    /// If only parts of the content are stored, it is that of a 206.
    public let head: ResponseHead

    /// How long it is fresh, counted from its creation, and by which rule (RFC 9111 §4.2.1).
    public let lifetime: FreshnessLifetime

    fileprivate let pieces: [StoredBodySource.Piece]
    fileprivate let stored: any StoredBody

    /// The content, read on demand; each use of this property starts from the beginning.
    public var body: ResponseBody {
        stream(pieces)
    }

    /// Status line and field lines, with the empty line after them, as HTTP/1.1 (RFC 9112 §4, §5).
    ///
    /// There is no reason phrase, which has no meaning (RFC 9112 §4).
    public var headBytes: ByteChunk {
        var text = "HTTP/1.1 \(head.status.rawValue) \r\n"
        for line in head.fields { text += "\(line.name.rawName): \(line.value)\r\n" }
        return ByteChunk(copying: (text + "\r\n").utf8)
    }

    /// The whole message, head and content, chunk by chunk; each use of this property starts from the beginning.
    public var message: ResponseBody {
        stream([.literal(headBytes)] + pieces)
    }

    private func stream(_ pieces: [StoredBodySource.Piece]) -> ResponseBody {
        let length = pieces.reduce(0) { $0 + $1.count }
        return ResponseBody(
            StoredBodySource(stored, pieces: pieces, delivered: { _ in }, failed: { _ in }),
            length: length
        )
    }
}

extension StoredBodySource.Piece {
    /// Its length in bytes.
    fileprivate var count: Int {
        switch self {
        case .literal(let bytes): bytes.count
        case .stored(let range): range.count
        }
    }
}
