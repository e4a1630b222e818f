// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

/// A stored part that a request of the cache's own is to complete (RFC 9111 §3.4).
struct Completion: Sendable {
    let held: HeldResponse
    let missing: Range<Int64>
    let fields: HeaderFields

    /// Whether a response joins what is stored, and brings all that the caller lacks.
    func fits(_ response: ResponseHead, to caller: RequestHead, at time: Timestamp, contentDecoded: Bool) -> Bool {
        var sent = caller
        sent.fields[.range] = fields[.range]
        let join = PartJoin(
            response,
            to: sent,
            with: held,
            asked: missing,
            contentDecoded: contentDecoded,
            requestTime: time,
            responseTime: time,
            mode: .private
        )
        return join?.answer(to: caller) != nil
    }
}

/// A stored response, the part that joins it, and what both make (RFC 9111 §3.4).
struct PartJoin: Sendable {
    let base: HeldResponse
    let part: ReceivedPart
    let combination: PartCombination

    /// - Parameter asked: the interval that the cache itself asked for; nil for a request of the caller's own.
    /// - Returns: nil where the two do not belong together.
    init?(
        _ response: ResponseHead,
        to sent: RequestHead,
        with held: HeldResponse,
        asked: Range<Int64>?,
        contentDecoded: Bool,
        requestTime: Timestamp,
        responseTime: Timestamp,
        mode: CacheOptions.Mode,
        ignoredCookies: IgnoredCookies = .none
    ) {
        let length = Int64(held.entry.bodyLength)
        guard
            let part = ReceivedPart(response, to: sent, receivedAt: responseTime, contentDecoded: contentDecoded),
            let ranges = held.stored.ranges ?? StoredRanges(intervals: [0..<length], completeLength: length),
            let combination = PartCombination(
                of: part,
                head: response,
                with: held.stored,
                ranges: ranges,
                asked: asked,
                requestTime: requestTime,
                responseTime: responseTime,
                mode: mode,
                ignoredCookies: ignoredCookies
            )
        else { return nil }
        (base, self.part, self.combination) = (held, part, combination)
    }

    /// The joined response, without ranges once nothing is missing.
    var stored: StoredResponse { combination.joined }

    /// The intervals of the content that are there now, in the order their bytes are stored.
    var layout: [Range<Int64>] { combination.ranges.intervals }

    var completeLength: Int64? { combination.ranges.completeLength }

    /// How many bytes the new part has.
    var partLength: Int { Int(clamping: part.interval.upperBound - part.interval.lowerBound) }

    /// What of the joined content answers a request: all of it, or one part; nil where bytes are still missing.
    func answer(to caller: RequestHead) -> RangeAnswer? {
        switch PartialReuse.decide(request: caller, stored: combination.response, ranges: combination.ranges) {
        case .answer(.whole): .whole
        case .answer(.part(let interval)): .part(interval)
        case .answer, .complete, .forward: nil
        }
    }

    /// What is made of the joined content's intervals, in order: stored bytes around the new ones.
    func sources(
        _ new: any ByteSource,
        failed: @escaping @Sendable (StoreError) async -> Void
    ) -> [any ByteSource] {
        let read = base.pieces(failed)
        var sources: [any ByteSource] = []
        for interval in layout {
            let place = part.interval.clamped(to: interval)
            guard !place.isEmpty else {
                sources.append(read(interval))
                continue
            }
            if interval.lowerBound < place.lowerBound { sources.append(read(interval.lowerBound..<place.lowerBound)) }
            sources.append(new)
            if place.upperBound < interval.upperBound { sources.append(read(place.upperBound..<interval.upperBound)) }
        }
        return sources
    }

    /// How many bytes of the joined intervals stand before a position.
    func offset(of position: Int64) -> Int {
        layout.reduce(0) { sum, interval in
            sum + Int(clamping: max(0, min(position, interval.upperBound) - interval.lowerBound))
        }
    }

    /// How many bytes the joined intervals have.
    var length: Int { offset(of: .max) }
}
