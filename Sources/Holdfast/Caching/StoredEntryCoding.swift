// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// How a stored response is encoded as an entry's metadata: length-framed parts after a format name, first the facts that decisions
/// are made from, last the field lines.
///
/// Bytes that do not decode exactly count as damage, and the entry as a miss; they never trap.
extension StoredResponse {
    fileprivate static let format = "hsr4"

    /// The response as metadata.
    var encoded: ByteChunk {
        var rest = FramedBytes()
        rest.append(nominated.written)
        rest.append(method.rawValue)
        rest.append(nominated.framed)
        rest.append(ranges?.text ?? "")
        rest.append(String(requestOrder.rawValue))
        rest.append(target.canonical)
        let layout = EntryHead.Layout(
            needsConfirmation: needsConfirmation,
            isWholeGet: method == .get && ranges == nil,
            isNominating: !nominated.framed.isEmpty,
            lineCount: head.fields.count,
            originLength: target.originLength,
            lines: EntryHead.size + rest.bytes.count
        )
        var frames = FramedBytes()
        frames.append(StoredResponse.format)
        frames.append(facts.encoded + layout.encoded)
        frames.append(frames: rest)
        head.fields.encode(into: &frames)
        return ByteChunk(frames.bytes)
    }

    /// The response that metadata describes; nil if it is damaged or has another format.
    ///
    /// - Parameter targetedFields: the target list of the reading cache; it may have changed since the entry was written.
    init?(decoding metadata: ByteChunk, targetedFields: [FieldName] = []) {
        guard let head = EntryHead(metadata) else {
            self.init(decodingFormer: metadata, targetedFields: targetedFields)
            return
        }
        var reader = FramedBytes.Reader(metadata.array, from: EntryHead.size)
        guard let written = reader.next(),
            let method = reader.nextString().flatMap({ RequestMethod(validating: $0) }),
            let nominated = reader.next().flatMap({ NominatedFields(framed: $0, written: written) }),
            let rangesText = reader.nextString(),
            let order = reader.nextString().flatMap({ UInt64($0) }).flatMap({ HybridTimestamp(rawValue: $0) }),
            let target = reader.nextString().flatMap({ try? TargetURI($0) }),
            reader.position == head.layout.lines, let fields = head.fields(in: metadata), fields.areWhole
        else { return nil }
        let ranges = StoredRanges(text: rangesText)
        guard rangesText.isEmpty || ranges != nil else { return nil }
        self.init(
            head.facts,
            target: target,
            method: method,
            nominated: nominated,
            fields: fields,
            needsConfirmation: head.layout.needsConfirmation,
            targetedFields: targetedFields
        )
        self.ranges = ranges
        requestOrder = order
    }

    /// The formats of 0.1.0, without facts: "hsr3", and "hsr2" without the order of requests, of which only the times are known.
    private init?(decodingFormer metadata: ByteChunk, targetedFields: [FieldName]) {
        var reader = FramedBytes.Reader(metadata.array)
        let format = reader.nextString()
        guard format == "hsr3" || format == "hsr2",
            let target = reader.nextString().flatMap({ try? TargetURI($0) }),
            let method = reader.nextString().flatMap({ RequestMethod(validating: $0) }),
            let nominated = reader.next().flatMap({ NominatedFields(framed: $0) }),
            let requestTime = reader.nextString().flatMap({ Int64($0) }),
            let responseTime = reader.nextString().flatMap({ Int64($0) }),
            let order = format == "hsr2"
                ? HybridTimestamp(Timestamp(millisecondsSinceEpoch: requestTime))
                : reader.nextString().flatMap({ UInt64($0) }).flatMap({ HybridTimestamp(rawValue: $0) }),
            let marks = reader.nextString(), marks.utf8.count == 2,
            let given = reader.nextString(), given.isEmpty || Int64(given) != nil,
            let rangesText = reader.nextString(),
            let status = reader.nextString().flatMap({ Int($0) })
        else { return nil }
        var fields = HeaderFields()
        while !reader.isAtEnd {
            guard let name = reader.nextString(), let value = reader.nextString(),
                fields.append(rawName: name, value: value)
            else { return nil }
        }
        let ranges = StoredRanges(text: rangesText)
        guard rangesText.isEmpty || ranges != nil else { return nil }
        self.init(
            target: target,
            method: method,
            nominated: nominated,
            head: ResponseHead(status: StatusCode(rawValue: status), fields: fields),
            requestTime: Timestamp(millisecondsSinceEpoch: requestTime),
            responseTime: Timestamp(millisecondsSinceEpoch: responseTime),
            contentDecoded: marks.hasPrefix("d"),
            givenLifetime: Int64(given),
            needsConfirmation: marks.hasSuffix("c"),
            targetedFields: targetedFields
        )
        self.ranges = ranges
        requestOrder = order
    }
}

/// The beginning of metadata, which is read where it stands: the facts, and what is needed to find the rest.
struct EntryHead {
    /// How long it is: two frames.
    static let size = 4 + 4 + 4 + ResponseFacts.encodedSize + Layout.size

    let facts: ResponseFacts
    let layout: Layout

    /// Nil if the metadata is damaged or has another format.
    init?(_ metadata: ByteChunk) {
        guard let head = metadata.withUnsafeBytes({ EntryHead($0) }) else { return nil }
        self = head
    }

    private init?(_ bytes: UnsafeRawBufferPointer) {
        var walk = FrameWalk(bytes)
        guard bytes.count >= EntryHead.size, let format = walk.next(), format.count == 4,
            bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self) == EntryHead.formatNumber, walk.next() != nil,
            walk.position == EntryHead.size,
            let facts = ResponseFacts(encoded: UnsafeRawBufferPointer(rebasing: bytes[12...]))
        else { return nil }
        let word = bytes.loadUnaligned(fromByteOffset: EntryHead.size - Layout.size, as: UInt64.self)
        (self.facts, layout) = (facts, Layout(word: UInt64(littleEndian: word)))
    }

    private static let formatNumber = Array(StoredResponse.format.utf8).withUnsafeBytes {
        $0.loadUnaligned(as: UInt32.self)
    }

    /// The field lines; nil if they are not where they should be.
    ///
    /// - Parameter metadata: from which this was read.
    func fields(in metadata: ByteChunk) -> HeaderFields? {
        guard layout.lines <= metadata.count else { return nil }
        let start = metadata.bounds.lowerBound
        return HeaderFields(
            encoded: metadata.storage,
            in: start + layout.lines..<start + metadata.count,
            count: layout.lineCount
        )
    }

    /// Whether the nominated values are these (``NominatedFields/framed``).
    ///
    /// - Parameter metadata: from which this was read.
    func nominates(_ framed: [UInt8], in metadata: UnsafeRawBufferPointer) -> Bool {
        var walk = FrameWalk(metadata, at: EntryHead.size)
        guard walk.next() != nil, walk.next() != nil, let known = walk.next() else { return false }
        return UnsafeRawBufferPointer(rebasing: metadata[known]).elementsEqual(framed)
    }

    /// The values of nominated fields as they were written; nil if that is not known.
    ///
    /// - Parameter metadata: from which this was read.
    func written(in metadata: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard layout.isNominating else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        var walk = FrameWalk(metadata, at: EntryHead.size)
        guard let written = walk.next(), !written.isEmpty else { return nil }
        return UnsafeRawBufferPointer(rebasing: metadata[written])
    }

    /// One word about the rest of the metadata.
    struct Layout {
        static let size = 8

        private let word: UInt64

        init(word: UInt64) { self.word = word }

        init(
            needsConfirmation: Bool,
            isWholeGet: Bool,
            isNominating: Bool,
            lineCount: Int,
            originLength: Int,
            lines: Int
        ) {
            let marks: UInt64 = (needsConfirmation ? 1 : 0) | (isWholeGet ? 2 : 0) | (isNominating ? 4 : 0)
            word =
                marks | UInt64(UInt8(clamping: lineCount)) << 8 | UInt64(UInt16(clamping: originLength)) << 16
                | UInt64(UInt32(clamping: lines)) << 32
        }

        var encoded: [UInt8] {
            (0..<Layout.size).map { UInt8(truncatingIfNeeded: word >> UInt64($0 * 8)) }
        }

        var needsConfirmation: Bool { word & 1 != 0 }
        /// Whether it is the whole response to a GET.
        var isWholeGet: Bool { word & 2 != 0 }
        /// Whether the response nominates request fields.
        var isNominating: Bool { word & 4 != 0 }
        /// How many field lines there are; 255: as many or more.
        var lineCount: Int { Int(UInt8(truncatingIfNeeded: word >> 8)) }
        /// The length of the target's origin.
        var originLength: Int { Int(UInt16(truncatingIfNeeded: word >> 16)) }
        /// Where the field lines begin.
        var lines: Int { Int(UInt32(truncatingIfNeeded: word >> 32)) }
    }
}

extension StoredRanges {
    /// The intervals and the complete length, as in "0-99,200-299/1000"; ends are exclusive.
    fileprivate var text: String {
        intervals.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
            + "/" + (completeLength.map { String($0) } ?? "*")
    }

    fileprivate init?(text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        var intervals: [Range<Int64>] = []
        for part in parts[0].split(separator: ",") {
            let ends = part.split(separator: "-").compactMap { Int64($0) }
            guard ends.count == 2, ends[0] < ends[1] else { return nil }
            intervals.append(ends[0]..<ends[1])
        }
        let length = parts[1] == "*" ? nil : Int64(parts[1])
        guard !intervals.isEmpty, parts[1] == "*" || length != nil else { return nil }
        self.init(intervals: intervals, completeLength: length)
    }
}

/// The principals under which responses were stored last, so that a miss can say that another principal's response exists.
///
/// Only a hint: URIs share a fixed number of slots, evicted or invalidated entries stay recorded, and a restart forgets everything.
/// No decision depends on it.
final class StoredElsewhere: Sendable {
    private static let slots = 4_096

    /// In each slot, a digest of the URI and one of the partition, 32 bits each; 0 if nothing was recorded. Empty before the first
    /// record.
    private let noted = Mutex<[UInt64]>([])

    /// Records that an entry was stored or freshened by a call.
    func note(_ entry: StoredEntry, lookup: CacheLookup) {
        let isOwn = lookup.sharedKey == nil || entry.key == lookup.storeKey
        let place = Place(lookup.key)
        let value = place.value(of: isOwn ? lookup.principal : "")
        noted.withLock { noted in
            if noted.isEmpty { noted = [UInt64](repeating: 0, count: StoredElsewhere.slots) }
            noted[place.slot] = value
        }
    }

    /// Whether the last response known to have been stored for the URI was another principal's.
    func isElsewhere(_ lookup: CacheLookup) -> Bool {
        let place = Place(lookup.key)
        let value = noted.withLock { $0.isEmpty ? 0 : $0[place.slot] }
        guard place.isOwn(value), value != place.value(of: lookup.principal) else { return false }
        // A public response was looked up too, and is gone; if it may only be borrowed, it may exist without being suitable.
        return lookup.sharedKey == nil || lookup.borrows || value != place.value(of: "")
    }

    /// Records that entries of unknown principals were removed.
    func forgetAll() {
        noted.withLock { $0 = [] }
    }

    private struct Place {
        let slot: Int
        private let target: UInt64

        init(_ key: CacheKey) {
            var hasher = Hasher()
            hasher.combine(key.target)
            hasher.combine(key.methodGroup)
            hasher.combine(key.contentType)
            hasher.combine(key.contentDigest)
            let hash = UInt64(truncatingIfNeeded: hasher.finalize())
            slot = Int(hash % UInt64(StoredElsewhere.slots))
            // Never 0, which means empty.
            target = hash >> 32 | 1
        }

        func value(of partition: String) -> UInt64 {
            target << 32 | UInt64(truncatingIfNeeded: partition.hashValue) & 0xFFFF_FFFF
        }

        func isOwn(_ value: UInt64) -> Bool { value >> 32 == target }
    }
}

extension HTTPCache {
    /// The reason for a miss for which nothing was found.
    func reasonForNothing(_ lookup: CacheLookup, candidates: [CacheCandidate]) -> CacheReason {
        candidates.isEmpty && storedElsewhere.isElsewhere(lookup) ? .otherPrincipal : .notStored
    }

    /// A request's fields as this cache sees them: without the cookies that it ignores for the target.
    func view(of fields: HeaderFields, to target: TargetURI) -> HeaderFields {
        options.ignoredCookies(for: target).view(of: fields)
    }
}
