// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The Clear-Site-Data field: what an origin asks clients to forget (W3C Clear Site Data §3.1).
///
/// A comma list of quoted types. Members that are no quoted string are left out; types compare with their letter case.
public struct ClearSiteData: Sendable, Hashable {
    /// The types in order, duplicates and unknown ones included, quotes removed.
    public let types: [String]

    /// Reads the field of a response, line by line; linear time.
    ///
    /// - Parameter fields: the response's fields; no type comes out where the field is missing.
    public init(_ fields: HeaderFields) {
        types = fields.values(of: .clearSiteData).flatMap { ClearSiteData.types(in: $0) }
    }

    /// Whether all stored responses of the target's origin must go: `"cache"` or `"*"` from a secure origin.
    ///
    /// - Parameter target: the target URI of the response. The field means something for https only, since anyone on the
    ///   way could have added it otherwise.
    public func clearsCache(of target: TargetURI) -> Bool {
        target.scheme == "https" && types.contains { $0 == "cache" || $0 == "*" }
    }

    private static func types(in value: String) -> [String] {
        FieldScanner.members(of: value).compactMap { member in
            var scanner = FieldScanner(member)
            let type = scanner.quotedString()
            return scanner.isAtEnd ? type : nil
        }
    }
}
