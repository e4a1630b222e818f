// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import HoldfastSemantics

#if canImport(FoundationNetworking)
    public import Foundation
    internal import FoundationNetworking
#else
    public import Foundation
#endif

/// The origins that a credential may be sent to; nobody else ever sees it.
///
/// An array literal lists them: `["https://api.example.com", "https://files.example.com:8443"]`. Listed origins get the
/// credential also when a redirect leads there. With a predicate a redirect to another origin leaves it behind.
public struct CredentialScope: Sendable, ExpressibleByArrayLiteral {
    private enum Form: Sendable {
        case origins(Set<String>)
        case predicate(@Sendable (URL) -> Bool)
    }

    private let form: Form

    /// The origins listed.
    public init(arrayLiteral origins: String...) {
        self = .origins(origins)
    }

    /// Scheme, host and port of each, such as `https://api.example.com`; the default port may be left out.
    ///
    /// Text that is no http or https URL is a programmer's error and stops the program.
    public static func origins(_ origins: some Sequence<String>) -> CredentialScope {
        CredentialScope(
            form: .origins(
                Set(
                    origins.map { text in
                        guard let target = try? TargetURI(text) else {
                            // Written into the program: a credential must not go where nobody meant it to.
                            preconditionFailure("\"\(text)\" is no origin; write one such as https://api.example.com")
                        }
                        return target.origin
                    }
                )
            )
        )
    }

    /// The URLs for which `predicate` holds; it must be quick, since it is asked for each request.
    public static func matching(_ predicate: @escaping @Sendable (_ url: URL) -> Bool) -> CredentialScope {
        CredentialScope(form: .predicate(predicate))
    }

    private init(form: Form) {
        self.form = form
    }

    /// Whether a request to `url` may bear the credential.
    ///
    /// - Parameter first: where the call began, before any redirect.
    func allows(_ url: URL?, first: URL?) -> Bool {
        guard let url, let target = try? TargetURI(url.absoluteString) else { return false }
        switch form {
        case .origins(let origins): return origins.contains(target.origin)
        case .predicate(let predicate):
            guard let first, let start = try? TargetURI(first.absoluteString) else { return false }
            return target.isSameOrigin(as: start) && predicate(url)
        }
    }
}
