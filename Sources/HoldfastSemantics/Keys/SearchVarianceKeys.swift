// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The keys under which a store remembers which queries of one path are equivalent (No-Vary-Search).
///
/// Two kinds of small entries lead from a query to the URI that was stored: one a path, whose variants are the field values
/// seen there; and one for each field value and query that matters, which names the URI. Both are plain entries, so they are
/// bounded, evicted, kept over a restart and parted by principal as all others are.
package struct SearchVarianceKeys: Sendable {
    /// Longer field values are not remembered; they are valid and only cost hits.
    package static let longestValue = 1_024

    private let key: CacheKey
    private let path: TargetURI

    /// The keys for a request's key; nil where its content is in the key too, or its method is not GET.
    package init?(_ key: CacheKey) {
        guard key.methodGroup == .get, key.contentDigest.isEmpty,
            let path = try? TargetURI(key.target.origin + key.target.path)
        else { return nil }
        self.key = key
        self.path = path
    }

    /// The key of the path's field values.
    package var ofPath: CacheKey { made(digest: "") }

    /// The key that leads to the URI stored with this field value for an equivalent query.
    package func ofQuery(_ fieldValue: String) -> CacheKey {
        var frames = FramedBytes()
        frames.append(fieldValue)
        frames.append(NoVarySearch(fieldValue: fieldValue).canonicalQuery(of: key.target))
        return made(digest: SHA256Digest(hashing: frames.bytes).hex)
    }

    /// The key of another URI in the same partition; nil where the text is no URI.
    package func ofURI(_ text: String) -> CacheKey? {
        (try? TargetURI(text)).map { CacheKey(partition: key.partition, method: .get, target: $0) }
    }

    /// Whether framed bytes are a key of this kind, and so no key of a response.
    package static func isOne(_ framed: [UInt8]) -> Bool {
        var reader = FramedBytes.Reader(framed)
        for _ in 0..<4 { guard reader.next() != nil else { return false } }
        return reader.nextString() == kind
    }

    /// Stands where a content type would; GET has none in its keys, so nothing else looks like this.
    private static let kind = "no-vary-search"

    private func made(digest: String) -> CacheKey {
        CacheKey(
            partition: key.partition,
            method: .get,
            target: path,
            contentType: SearchVarianceKeys.kind,
            contentDigest: digest
        )
    }
}
