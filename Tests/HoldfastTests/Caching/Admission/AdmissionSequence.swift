// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// Calls, time and changes of a resource in an order that one seed determines.
struct AdmissionSequence: Sendable, CustomStringConvertible {
    let seed: UInt64
    var setting: AdmissionSetting
    var steps: [AdmissionStep]

    var description: String {
        (["seed \(seed), \(setting)"] + steps.map { "  \($0)" }).joined(separator: "\n")
    }
}

/// What is the same for all steps of a sequence.
struct AdmissionSetting: Sendable, Hashable, CustomStringConvertible {
    /// How the origin and the cache tell one user from another.
    enum Identity: String, Sendable, CaseIterable {
        case authorization, cookie, principal, credentialField
        /// A field that a prepare step adds, which the cache does not see when it looks the request up.
        case preparedField
        /// A field that the pipeline's `AuthorizationRefresh` writes; each user has a pipeline over the same cache.
        case refreshedField
        /// A field that a `.message` hook adds above the cache.
        case hookField
    }

    /// What the cache stores in.
    enum Store: String, Sendable, CaseIterable {
        case memory, disk, tiered
    }

    var mode: CacheOptions.Mode
    var store: Store
    var identity: Identity

    var description: String { "\(mode) cache, \(store.rawValue), users by \(identity.rawValue)" }
}

enum AdmissionUser: String, Sendable, CaseIterable {
    case guest, alice, bob
}

enum AdmissionStep: Sendable, CustomStringConvertible {
    case advance(milliseconds: Int)
    /// The resource gets a new version.
    case change(path: String)
    /// The call is made; where it is held, its exchanges wait at the origin until they are released.
    case call(PlannedCall, PlannedAnswer, isHeld: Bool)
    case release(call: Int)
    /// The caller gives up; the next step may come before anybody has noticed.
    case cancel(call: Int, isNoticed: Bool)

    var description: String {
        switch self {
        case .advance(let milliseconds): "advance \(Double(milliseconds) / 1_000) s"
        case .change(let path): "change \(path)"
        case .call(let call, let answer, let isHeld): "\(call)\(isHeld ? ", held" : "") -> \(answer)"
        case .release(let call): "release #\(call)"
        case .cancel(let call, let isNoticed): "cancel #\(call)\(isNoticed ? "" : ", not noticed at once")"
        }
    }
}

/// What a caller asks.
struct PlannedCall: Sendable, CustomStringConvertible {
    enum Condition: String, Sendable, CaseIterable {
        case ifNoneMatch, ifNoneMatchOld, ifNoneMatchAny, ifModifiedSince, ifMatch
    }

    enum Directive: String, Sendable, CaseIterable {
        case none, reload, revalidate, onlyIfCached, noStore, maxStale
    }

    var number: Int
    var user = AdmissionUser.guest
    var method = "GET"
    var path = "/a"
    var content: String?
    /// Whether a POST asks for something, and its content is part of what it is stored under.
    var isQuery = false
    var cacheControl: String?
    var directive = Directive.none
    /// Fields that Vary may nominate.
    var selecting: [String: String] = [:]
    var condition: Condition?
    /// In cells, as Range writes it: "1-2", "2-", "-1".
    var range: String?
    var hasIfRange = false

    var description: String {
        var text = "#\(number) \(user.rawValue) \(method) \(path)"
        if let content { text += " content=\(content)\(isQuery ? ", stored by it" : "")" }
        if let cacheControl { text += " Cache-Control: \(cacheControl)" }
        if directive != .none { text += " .\(directive.rawValue)" }
        for (name, value) in selecting.sorted(by: { $0.key < $1.key }) { text += " \(name): \(value)" }
        if let condition { text += " \(condition.rawValue)" }
        if let range { text += " Range: \(range)\(hasIfRange ? " If-Range" : "")" }
        return text
    }

    /// Whether the caller wants an answer that the origin confirmed after the call was made (RFC 9111 §5.2.1.4).
    var demandsValidation: Bool {
        directive == .reload || directive == .revalidate || cacheControl == "no-cache" || cacheControl == "max-age=0"
    }

    var forbidsSending: Bool { directive == .onlyIfCached || cacheControl == "only-if-cached" }
    var forbidsStoring: Bool { directive == .noStore || cacheControl == "no-store" }
    var isUnsafe: Bool { !["GET", "HEAD"].contains(method) && !isQuery }
}

/// What the origin answers to the exchanges of a call, as far as the requests allow.
struct PlannedAnswer: Sendable, CustomStringConvertible {
    enum Outcome: Sendable, Equatable {
        case success
        case failure(status: Int)
        /// The connection is lost after the request was sent.
        case lost
    }

    enum Tag: String, Sendable, CaseIterable {
        case strong, weak, none
    }

    enum Modified: String, Sendable, CaseIterable {
        /// Long before Date, so that it is a strong validator.
        case old
        /// When the version came about, which may be the second of Date.
        case recent
        case none
    }

    enum Coding: String, Sendable, CaseIterable {
        case negotiated, identity, gzip
    }

    enum Digest: String, Sendable, CaseIterable {
        case representation = "Repr-Digest"
        case content = "Content-Digest"
        case md5 = "Content-MD5"

        var name: FieldName {
            switch self {
            case .representation: "Repr-Digest"
            case .content: "Content-Digest"
            case .md5: "Content-MD5"
            }
        }
    }

    var outcome = Outcome.success
    var cacheControl: [String] = []
    var vary: String?
    var setsCookie = false
    var tag = Tag.none
    var modified = Modified.none
    var coding = Coding.identity
    var digests: [Digest] = []
    var age: Int?
    var honorsConditions = true
    var honorsRange = true
    /// Whether each user has a representation of their own, which no field of the response says.
    var isPersonal = false
    /// Whether a response for a query says that the query tells nothing apart.
    var saysQueryIsNothing = true
    /// Whether a 304 has Cache-Control, and whether it has validators.
    var notModifiedHasCacheControl = true
    var notModifiedHasValidators = true
    /// After how many cells the body of a 200 breaks off.
    var breaksAfter: Int?

    var description: String {
        var text: String
        switch outcome {
        case .success: text = "success"
        case .failure(let status): text = "\(status)"
        case .lost: return "lost"
        }
        if !cacheControl.isEmpty { text += " Cache-Control: \(cacheControl.joined(separator: ", "))" }
        if let vary { text += " Vary: \(vary)" }
        if setsCookie { text += " Set-Cookie" }
        if tag != .none { text += " \(tag.rawValue) ETag" }
        if modified != .none { text += " \(modified.rawValue) Last-Modified" }
        if coding != .identity { text += " coding \(coding.rawValue)" }
        for digest in digests { text += " \(digest.rawValue)" }
        if let age { text += " Age: \(age)" }
        if !honorsConditions { text += " ignores conditions" }
        if !honorsRange { text += " ignores Range" }
        if isPersonal { text += " personal" }
        if !saysQueryIsNothing { text += " without No-Vary-Search" }
        if !notModifiedHasCacheControl { text += " 304 without Cache-Control" }
        if !notModifiedHasValidators { text += " 304 without validators" }
        if let breaksAfter { text += " breaks after \(breaksAfter) cells" }
        return text
    }
}
