// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which of the responses stored for a URI answers a request (RFC 9111 §4, §4.1).
package enum VariantSelection {
    /// The matching response with the most recent Date.
    ///
    /// A response whose nominated fields have the request's values takes precedence over one that may be used although they differ.
    /// At the same time, one in the requester's own partition takes precedence over a borrowed or public one.
    ///
    /// - Parameter isOwn: for each candidate, whether it is in the requester's own partition; all by default.
    /// - Returns: an index into `candidates`; nil if none matches.
    package static func select(
        _ request: RequestHead,
        among candidates: [StoredResponse],
        isOwn: [Bool] = [],
        secret: [UInt8]
    ) -> Int? {
        mostRecent(candidates, isOwn: isOwn, for: request) { $0.nominated.matches(request.fields, secret: secret) }
            ?? mostRecent(candidates, isOwn: isOwn, for: request) {
                $0.isSelectedInEffect(by: request.fields, secret: secret)
            }
    }

    private static func mostRecent(
        _ candidates: [StoredResponse],
        isOwn: [Bool],
        for request: RequestHead,
        where matches: (StoredResponse) -> Bool
    ) -> Int? {
        var best: Int?
        for (index, candidate) in candidates.enumerated() {
            // A stored GET may answer HEAD; no other methods share responses (RFC 9111 §4).
            let method: RequestMethod = request.method == .head ? .get : request.method
            guard candidate.method == method || candidate.method == request.method, matches(candidate) else {
                continue
            }
            guard let known = best else {
                best = index
                continue
            }
            let current = candidates[known]
            let differsInOwner = !isOwn.isEmpty && isOwn[index] != isOwn[known]
            let goesBefore =
                differsInOwner && candidate.isOfSameTime(as: current)
                ? isOwn[index] : candidate.isMoreRecent(than: current)
            if goesBefore { best = index }
        }
        return best
    }
}

extension StoredResponse {
    /// Whether its Vary selects it for a request: by the same values, or by values that mean the same (RFC 9111 §4.1).
    func isSelected(by fields: HeaderFields, secret: [UInt8]) -> Bool {
        nominated.matches(fields, secret: secret) || isSelectedInEffect(by: fields, secret: secret)
    }

    fileprivate func isSelectedInEffect(by fields: HeaderFields, secret: [UInt8]) -> Bool {
        nominated.matchesInEffect(fields, contentLanguage: head.fields[.contentLanguage], secret: secret)
    }

    fileprivate func isOfSameTime(as other: StoredResponse) -> Bool {
        date == other.date && requestTime == other.requestTime
    }

    /// Whether this response is the more recent of two: by Date (RFC 9111 §4), and within the same second by the order of requests.
    ///
    /// Without Date, the time of receipt counts (RFC 9110 §6.6.1). If the clock was set back between the two requests, that time
    /// means nothing.
    package func isMoreRecent(than other: StoredResponse) -> Bool {
        let hasDates = head.fields.contains(.date) && other.head.fields.contains(.date)
        let wasSetBack = (requestOrder < other.requestOrder) != (requestTime < other.requestTime)
        if date != other.date, hasDates || !wasSetBack || requestTime == other.requestTime { return date > other.date }
        return (requestOrder, responseTime) > (other.requestOrder, other.responseTime)
    }
}
