// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// An entry of a store with the response that it describes.
struct CacheCandidate: Sendable {
    let entry: StoredEntry
    let stored: StoredResponse
    /// Whether the origin's response to the request that found it may change it.
    var isOwn = true
    /// Its partition; "" if it is for everyone.
    let partition: String

    /// Whether the origin may be asked about it. A date would ask about another principal's response; a strong tag identifies the
    /// same bytes for everyone.
    var mayBeValidated: Bool { isOwn || stored.hasStrongTag }
}

/// A stored response with its loaded body.
struct LoadedResponse: Sendable {
    /// A body up to this length is read completely and checked before it is used, so that damage is only a miss.
    private static let readWhole = 256 << 10

    var entry: StoredEntry
    var stored: StoredResponse
    let isOwn: Bool
    private let bytes: ByteChunk?
    /// Nil if all of it was available at once.
    private let body: (any StoredBody)?

    init(_ candidate: CacheCandidate, in store: any CacheStore) async throws(StoreError) {
        entry = candidate.entry
        stored = candidate.stored
        isOwn = candidate.isOwn
        guard stored.ranges.map({ $0.length == Int64(candidate.entry.bodyLength) }) ?? true else {
            throw StoreError(
                .corrupt,
                "A stored body is not as long as its parts together; it counts as a miss."
            )
        }
        if let inMemory = store.peekBody(of: candidate.entry) {
            (bytes, body) = (inMemory, nil)
            return
        }
        let body = try await store.body(of: candidate.entry)
        self.body = body
        if let inMemory = body.bytesInMemory {
            bytes = inMemory
        } else if candidate.entry.bodyLength == 0 {
            bytes = ByteChunk()
        } else if candidate.entry.bodyLength <= LoadedResponse.readWhole {
            bytes = try await LoadedResponse.whole(body, length: candidate.entry.bodyLength)
        } else {
            // The rest is read on demand; the beginning shows whether the body is there at all.
            _ = try await body.read(from: 0, upTo: 64 << 10)
            bytes = nil
        }
    }

    /// The bytes as a stored body, for reading by position.
    private var positions: any StoredBody { body ?? MemoryBody(bytes ?? ByteChunk()) }

    private static func whole(_ body: any StoredBody, length: Int) async throws(StoreError) -> ByteChunk {
        let first = try await body.read(from: 0, upTo: length)
        if first.count == length { return first }
        var all = first.array
        while all.count < length {
            let chunk = try await body.read(from: all.count, upTo: length - all.count)
            guard !chunk.isEmpty else {
                throw StoreError(
                    .corrupt,
                    "A stored body ends \(length - all.count) bytes early; it counts as a miss."
                )
            }
            chunk.append(to: &all)
        }
        return ByteChunk(all)
    }

    /// The response as it answers a request now: with the caller's condition and Range applied, Age set, and no body for HEAD.
    func response(
        to lookup: CacheLookup,
        source: ResponseSource,
        now: Timestamp,
        delivered: @escaping @Sendable (Int) -> Void,
        failed: @escaping @Sendable (StoreError) async -> Void,
        rest: @escaping @Sendable (Range<Int64>) async -> (any ByteSource)?
    ) -> Response {
        let (head, form) = form(of: lookup, now: now)
        var response = Response(
            status: head.status,
            fields: head.fields,
            source: source,
            contentDecoded: stored.contentDecoded
        )
        response.requestTime = stored.requestTime
        response.responseTime = stored.responseTime
        response.hasAgeDeducted = true
        response.presentation = .presented(.fields(lookup.presented))
        guard lookup.head.method != .head, form != .empty else {
            // It would be the digest of content that a HEAD does not have (RFC 9530 §2).
            if lookup.head.method == .head { response.fields.removeAll("Content-Digest") }
            return response
        }
        response.body = body(form, delivered: delivered, failed: failed, rest: rest)
        return response
    }

    // MARK: Conditions and ranges

    private enum Form: Equatable {
        case empty
        case whole
        case part(Range<Int64>)
        case parts(MultipartByteRanges)
    }

    /// The part of the stored response that answers the request (RFC 9110 §13.2.2: the condition first, then the range).
    private func form(of lookup: CacheLookup, now: Timestamp) -> (ResponseHead, Form) {
        guard lookup.isConditionalOrPartial else { return (stored.responseHead(now: now), .whole) }
        let request = lookup.head
        if Precondition.evaluate(request: request, stored: stored, now: now) == .notModified {
            return (Precondition.notModifiedHead(for: stored, now: now), .empty)
        }
        let completeLength = stored.ranges.map(\.completeLength) ?? Int64(entry.bodyLength)
        switch rangeAnswer(to: request) {
        case .whole:
            return (stored.responseHead(now: now), .whole)
        case .unsatisfiable:
            return (PartialContent.unsatisfiableHead(completeLength: completeLength ?? 0, now: now), .empty)
        case .part(let interval):
            guard let range = ContentRange(interval, completeLength: completeLength) else { break }
            return (PartialContent.head(of: stored, range: range, now: now), .part(interval))
        case .parts(let intervals):
            let multipart = MultipartByteRanges(
                intervals: intervals,
                completeLength: completeLength,
                contentType: stored.head.fields[.contentType],
                seed: .random(in: .min ... .max)
            )
            return (PartialContent.head(of: stored, body: multipart, now: now), .parts(multipart))
        }
        return (stored.responseHead(now: now), .whole)
    }

    private func rangeAnswer(to request: RequestHead) -> RangeAnswer {
        guard let ranges = stored.ranges else {
            return PartialContent.answer(
                request: request,
                stored: stored,
                completeLength: Int64(entry.bodyLength)
            )
        }
        let reuse = PartialReuse.decide(request: request, stored: stored, ranges: ranges)
        return if case .answer(let answer) = reuse { answer } else { .whole }
    }

    private func body(
        _ form: Form,
        delivered: @escaping @Sendable (Int) -> Void,
        failed: @escaping @Sendable (StoreError) async -> Void,
        rest: @escaping @Sendable (Range<Int64>) async -> (any ByteSource)?
    ) -> ResponseBody {
        let pieces: [StoredBodySource.Piece]
        var length: Int
        var content: Range<Int64>?
        switch form {
        case .empty:
            return ResponseBody()
        case .whole:
            if let bytes {
                delivered(bytes.count)
                return ResponseBody(bytes)
            }
            (pieces, length) = ([.stored(0..<entry.bodyLength)], entry.bodyLength)
            content = 0..<Int64(entry.bodyLength)
        case .part(let interval):
            let offsets = stored.offsets(of: interval, bodyLength: entry.bodyLength)
            if let bytes {
                delivered(offsets.count)
                return ResponseBody(bytes[offsets])
            }
            (pieces, length, content) = ([.stored(offsets)], offsets.count, interval)
        case .parts(let multipart):
            pieces = stored.pieces(of: multipart, bodyLength: entry.bodyLength)
            length = Int(clamping: multipart.contentLength)
        }
        let source = StoredBodySource(positions, pieces: pieces, delivered: delivered, failed: failed)
        guard let content else { return ResponseBody(source, length: length) }
        return ResponseBody(HealingBody(source, of: content, rest: rest), length: length)
    }

    /// The stored bytes at these positions, for a body that is joined with others.
    func pieces(_ failed: @escaping @Sendable (StoreError) async -> Void) -> @Sendable (Range<Int64>) -> any ByteSource
    {
        { [self] interval in
            let offsets = stored.offsets(of: interval, bodyLength: entry.bodyLength)
            if let bytes { return BytesContent(bytes[offsets]) }
            return StoredBodySource(positions, pieces: [.stored(offsets)], delivered: { _ in }, failed: failed)
        }
    }
}

extension StoredResponse {
    /// The position of an interval of the content in the entry's body, which contains the stored intervals one after another.
    fileprivate func offsets(of interval: Range<Int64>, bodyLength: Int) -> Range<Int> {
        var offset: Int64 = 0
        for stored in ranges?.intervals ?? [0..<Int64(bodyLength)] {
            if stored.lowerBound <= interval.lowerBound, interval.upperBound <= stored.upperBound {
                let start = Int(clamping: offset + (interval.lowerBound - stored.lowerBound))
                let end = Int(clamping: Int64(start) + (interval.upperBound - interval.lowerBound))
                return min(start, bodyLength)..<min(end, bodyLength)
            }
            offset += stored.upperBound - stored.lowerBound
        }
        return 0..<0
    }

    /// The bytes of a multipart content, the stored ones by their position in the entry's body.
    func pieces(of multipart: MultipartByteRanges, bodyLength: Int) -> [StoredBodySource.Piece] {
        multipart.pieces.map { piece in
            switch piece {
            case .literal(let bytes): .literal(ByteChunk(bytes))
            case .stored(let interval): .stored(offsets(of: interval, bodyLength: bodyLength))
            }
        }
    }
}

extension StoredRanges {
    /// The total length of all intervals; saturates.
    var length: Int64 {
        intervals.reduce(0) { sum, interval in
            let (length, overflow) = sum.addingReportingOverflow(interval.upperBound - interval.lowerBound)
            return overflow ? .max : length
        }
    }
}
