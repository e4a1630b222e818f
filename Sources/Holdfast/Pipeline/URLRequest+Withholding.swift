// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    package import FoundationNetworking
#else
    package import Foundation
#endif

/// What was added to a request for one origin and must not go to another.
extension URLRequest {
    /// Takes out what was added to the request, or changed in it, since it was `earlier`: header fields, but for those that are
    /// known to hold no credential, the query and the userinfo of the URL. What was removed stays removed.
    mutating func withholdAdditions(to earlier: URLRequest) {
        withholdFields(addedTo: earlier.allHTTPHeaderFields ?? [:])
        if url != earlier.url { withholdURLParts(addedTo: earlier.url) }
    }

    /// Removes the header fields that are not among `earlier`, or have another value there, but for those that are known to hold
    /// no credential.
    mutating func withholdFields(addedTo earlier: [String: String]) {
        for name in fieldsAdded(to: earlier) { setValue(nil, forHTTPHeaderField: name) }
    }

    /// The names of the header fields that are not among `earlier`, or have another value there, but for those that are known to
    /// hold no credential.
    package func fieldsAdded(to earlier: [String: String]) -> [String] {
        let fields = allHTTPHeaderFields ?? [:]
        guard fields != earlier else { return [] }
        let values = Dictionary(
            earlier.map { ($0.lowercased(), $1) },
            uniquingKeysWith: { first, _ in first }
        )
        return fields.compactMap { name, value in
            values[name.lowercased()] != value && !NonCredentialFields.contains(named: name) ? name : nil
        }
    }

    /// A key in a query, and a password in a URL, are credentials as well.
    private mutating func withholdURLParts(addedTo earlier: URL?) {
        guard let url, let earlier, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let own = URLComponents(url: earlier, resolvingAgainstBaseURL: true)
        else { return }
        let items = (parts.percentEncodedQuery ?? "").split(separator: "&")
        let ownItems = Set((own.percentEncodedQuery ?? "").split(separator: "&"))
        let addsItems = !items.allSatisfy { ownItems.contains($0) }
        let addsUser =
            (parts.percentEncodedUser != nil || parts.percentEncodedPassword != nil)
            && (parts.percentEncodedUser, parts.percentEncodedPassword)
                != (own.percentEncodedUser, own.percentEncodedPassword)
        guard addsItems || addsUser else { return }
        // An item that is spelled anew is a changed one, and half of the redirect's query would be another query.
        if addsItems { parts.percentEncodedQuery = own.percentEncodedQuery }
        if addsUser {
            parts.percentEncodedUser = own.percentEncodedUser
            parts.percentEncodedPassword = own.percentEncodedPassword
        }
        self.url = parts.url ?? earlier
    }
}
