// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

/// The one rule of what is a credential in a typed call, whichever way it came into the request.
///
/// A credential names the cache partition, stays behind when a redirect leaves the origin, and is not logged. What a hook adds goes by
/// the same list of harmless fields, and so does what `PipelineConfiguration.authorization` writes.
enum CredentialFields {
    /// The names of the fields that hold a credential, beside Authorization and Cookie, which always do, and beside
    /// `CallOptions.credentialFields`.
    ///
    /// - Parameters:
    ///   - ofService: what is given to each call: a service's `header`, `asyncHeader` and `authorization`, a proxy's `headers`.
    ///   - own: what a request says of itself; a credential where the name says so.
    ///   - added: the names of what `prepare` or `configure` has added or changed, such as a signature.
    static func names(ofService: HttpHeader, own: HttpHeader, added: [String]) -> [FieldName] {
        let given = ofService.map(\.name) + added.compactMap { FieldName($0) }
        let named = own.map(\.name).filter { secrets.isSecret($0.rawName) }
        return Set(given + named)
            .filter { $0 != .authorization && $0 != .cookie && $0.mayHoldCredential }
            .sorted { $0.canonicalName < $1.canonicalName }
    }

    private static let secrets = Redaction()
}

/// A request that bears fields which are given to each of its kind, as those of a service are.
protocol SharedFieldsBearing: Request {
    var sharedFields: HttpHeader { get }
}
