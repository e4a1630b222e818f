// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// A credential of whatever type, as far as requests need to know it, and the way to the one after it.
struct IssuedCredential: Sendable {
    /// Puts it into a request; nil where there is none yet.
    let apply: (@Sendable (inout URLRequest) -> Void)?
    /// When it ends; nil where that is not known.
    let expiresAt: Timestamp?
    /// Asks for the next one.
    let renew: @Sendable () async throws -> IssuedCredential

    init<Credential: Sendable>(
        _ credential: Credential?,
        apply: @escaping @Sendable (Credential, inout URLRequest) -> Void,
        expiresAt: @escaping @Sendable (Credential) -> Timestamp?,
        refresh: @escaping @Sendable (Credential?) async throws -> Credential
    ) {
        if let credential {
            self.apply = { request in apply(credential, &request) }
            self.expiresAt = expiresAt(credential)
        } else {
            self.apply = nil
            self.expiresAt = nil
        }
        renew = {
            IssuedCredential(try await refresh(credential), apply: apply, expiresAt: expiresAt, refresh: refresh)
        }
    }

    /// Whether it is worth a look at the clock.
    var canEnd: Bool { apply == nil || expiresAt != nil }

    /// Whether it can be sent at all.
    func isUsable(at now: Timestamp) -> Bool {
        apply != nil && expiresAt.map { now < $0 } ?? true
    }

    /// Whether it is time to ask for the next one before anything is sent.
    func isDue(at now: Timestamp, ahead: Duration) -> Bool {
        !isUsable(at: now.advanced(by: ahead))
    }
}
