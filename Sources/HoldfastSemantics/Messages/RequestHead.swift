// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What judgement needs to know of a request: all but its content.
public struct RequestHead: Sendable, Hashable {
    /// The method.
    public var method: RequestMethod

    /// The target URI in canonical form, its userinfo apart.
    public var target: TargetURI

    /// The header fields as they will be sent, those the transport adds included where they are known.
    public var fields: HeaderFields

    /// Creates a head from its parts.
    ///
    /// - Parameters:
    ///   - method: `GET` by default.
    ///   - target: the target URI.
    ///   - fields: none by default.
    public init(method: RequestMethod = .get, target: TargetURI, fields: HeaderFields = HeaderFields()) {
        self.method = method
        self.target = target
        self.fields = fields
    }

    /// Whether the caller asks for a part or states a condition of its own (RFC 9110 §13.1, §14.2).
    ///
    /// Costs one pass over the field lines.
    public var isConditionalOrPartial: Bool {
        fields.contains { line in
            // Five of the six names begin alike, so most lines are told apart without hashing.
            let name = line.name.canonicalName.utf8
            return name.starts(with: "if-".utf8)
                ? RequestHead.conditionalNames.contains(line.name) : line.name == .range
        }
    }

    /// Whether the caller states a condition that only the origin can judge (RFC 9111 §4.3.2).
    public var asksOrigin: Bool { fields.contains(.ifMatch) || fields.contains(.ifUnmodifiedSince) }

    /// Whether the caller states a condition on a method whose stored response answers it whole, as that of an opted-in POST does:
    /// for such a method only the origin knows what the condition means (RFC 9110 §13.1.2, §13.1.3).
    package var statesUnfitCondition: Bool {
        guard method != .get, method != .head, method != .query else { return false }
        return fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince)
    }

    /// Whether a Host field names another authority than the URI, so that the URI does not say what was asked
    /// (RFC 9110 §7.2).
    public var namesOtherHost: Bool {
        guard fields.contains(.host) else { return false }
        let named = fields.values(of: .host)
        guard named.count == 1, let name = named.first,
            let asked = try? TargetURI("\(target.scheme)://\(name)/"), asked.userinfo == nil
        else { return true }
        return asked.origin != target.origin
    }

    /// The fields that make a request conditional (RFC 9110 §13.1).
    package static let conditionalNames: Set<FieldName> = [
        .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
    ]
}
