// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

/// Decides which fields of a typed call are credentials, however they came into the request.
///
/// A credential determines the cache partition, is removed when a redirect leaves the origin, and is not logged. The same list
/// of harmless fields applies to what hooks and `PipelineConfiguration.authorization` add.
enum CredentialFields {
    /// The names of the fields that hold a credential, besides those of `CallOptions.credentialFields`, and besides
    /// Authorization and Cookie, which always do.
    ///
    /// - Parameters:
    ///   - ofService: what each call gets: a service's `header`, `asyncHeader` and `authorization`, or a proxy's `headers`.
    ///   - own: the request's own fields; a credential if the name suggests it.
    ///   - added: the names of the fields that `prepare` or `configure` added or changed, such as a signature.
    static func names(ofService: HttpHeader, own: HttpHeader, added: [String]) -> [FieldName] {
        let given = ofService.map(\.name) + added.compactMap { FieldName($0) }
        let named = own.map(\.name).filter { secrets.isSecret($0.rawName) }
        return Set(given + named)
            .filter { $0 != .authorization && $0 != .cookie && $0.mayHoldCredential }
            .sorted { $0.canonicalName < $1.canonicalName }
    }

    private static let secrets = Redaction()
}

/// A request with fields that all requests of its kind get, like those of a service.
protocol SharedFieldsBearing: Request {
    var sharedFields: HttpHeader { get }
}
