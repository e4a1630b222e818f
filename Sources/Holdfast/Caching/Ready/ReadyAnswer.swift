// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// All of the answer to plain requests for one URL that is the same from one to the next, but its body.
///
/// Holds no bytes of the store: an entry that leaves it is freed, and found missing by its version.
final class ReadyAnswer: Sendable {
    /// The head as it is while the age is that of one second.
    private struct Face: Sendable {
        let age: Int64
        let fields: HeaderFields
        var foundation: HTTPURLResponse?
    }

    /// The URL as requests spell it.
    let url: String
    let key: StoreKey
    let version: StoredEntry.Version
    /// ``HTTPCache/searchVarianceCount`` when the entry was looked up: what was stored since may answer the URL too.
    let searchVarianceCount: UInt64
    let stored: StoredResponse
    let status: StatusCode
    let reuse: PlainReuse
    let origin: CountedOrigin
    /// What each hit spares its caller.
    let saved: Duration
    /// Finds the fields that make a request go the long way, and behind them those that the response's Vary nominates.
    private let finder: FieldNameFinder
    /// The values of the nominated fields in the requests that this answers.
    private let nominated: [String?]
    private let presentCount: Int
    private let reuseCount: Int
    private let implicit: HeaderFields
    private let face = Mutex<Face?>(nil)

    /// Nil where the request names a nominated field in several spellings, whose values are one only when taken together.
    ///
    /// - Parameters:
    ///   - request: a plain one that the entry answers.
    ///   - implicit: what its transport adds to it.
    init?(
        _ entry: StoredEntry,
        _ stored: StoredResponse,
        _ reuse: PlainReuse,
        url: String,
        _ request: URLRequest,
        implicit: HeaderFields,
        _ target: TargetURI,
        searchVarianceCount: UInt64
    ) {
        self.url = url
        self.searchVarianceCount = searchVarianceCount
        key = entry.key
        version = entry.version
        self.stored = stored
        status = stored.head.status
        self.reuse = reuse
        origin = CountedOrigin(of: target)
        saved = max(.zero, min(stored.delay, CallTally.longestDelay))
        self.implicit = implicit
        let fields = request.allHTTPHeaderFields ?? [:]
        reuseCount = ReuseFields.names.count
        let names = stored.nominated.names
        finder = FieldNameFinder(ReuseFields.names + names)
        let own = FieldNameFinder(names)
        var values = [String?](repeating: nil, count: names.count)
        for (name, value) in fields {
            guard let number = own.number(of: name) else { continue }
            guard values[number] == nil else { return nil }
            values[number] = value
        }
        nominated = values
        presentCount = values.count { $0 != nil }
    }

    /// Whether a request with these fields is a plain one with the nominated values; false sends it the long way.
    func answers(_ fields: [String: String], implicit: HeaderFields) -> Bool {
        guard implicit.isEmpty ? self.implicit.isEmpty : implicit.hasSameBytes(as: self.implicit) else { return false }
        var presented = 0
        // By index: an iterator would count references to each key and value.
        var index = fields.startIndex
        while index != fields.endIndex {
            if let number = finder.number(of: fields.keys[index]) {
                let place = number - reuseCount
                guard place >= 0, let value = nominated[place], value.hasSameBytes(as: fields.values[index]) else {
                    return false
                }
                presented += 1
            }
            fields.formIndex(after: &index)
        }
        return presented == presentCount
    }

    /// The fields with the Age of this moment; made once a second.
    func fields(now: Timestamp) -> HeaderFields {
        // Not the age that a lifetime of the cache's own goes by, which counts from another moment.
        let age = stored.currentAge(now: now)
        return face.withLock { face in
            if let face, face.age == age { return face.fields }
            let fields = stored.responseHead(now: now).fields
            face = Face(age: age, fields: fields)
            return fields
        }
    }

    /// The head in Foundation's form, made once for all responses of a second; nil where the response is no longer as it was
    /// answered.
    func foundation(for response: Response, _ url: URL, make: () -> HTTPURLResponse?) -> HTTPURLResponse? {
        // A relative URL is the caller's own, although it names the same resource.
        guard response.status == status, url.baseURL == nil, url.absoluteString == self.url else {
            return nil
        }
        let known: HTTPURLResponse?? = face.withLock { face in
            guard let face, face.fields.isIdentical(to: response.fields) else { return .none }
            return .some(face.foundation)
        }
        guard let known else { return nil }
        if let known { return known }
        guard let made = make() else { return nil }
        face.withLock { face in
            if face?.fields.isIdentical(to: response.fields) ?? false { face?.foundation = made }
        }
        return made
    }
}

extension HeaderFields {
    /// Whether both have the same lines, letter case of names aside, byte for byte.
    fileprivate func hasSameBytes(as other: HeaderFields) -> Bool {
        isIdentical(to: other) || elementsEqual(other) { $0.name == $1.name && $0.value.hasSameBytes(as: $1.value) }
    }
}
