// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast

/// A path below a service's URL, segment by segment.
///
/// Special characters are percent-encoded, so a segment stays one segment whatever its text: a slash in it becomes %2F, a
/// semicolon %3B. A call with an invalid segment fails before anything is sent: `.` and `..`, which would leave the service's
/// path on some servers however they are encoded (RFC 3986 §5.2.4), and nil or empty text, which would turn `users/<id>` into
/// all of `users`.
public struct HttpRoute: Sendable, Hashable, ExpressibleByArrayLiteral {
    private enum Segment: Sendable, Hashable {
        case text(String)
        case missing
        /// What stands between two slashes of a path's text, or behind the last one.
        case empty
    }

    private var segments: [Segment]

    /// No path.
    public init() { segments = [] }

    /// Segments from their text.
    public init(_ segments: [(any CustomStringConvertible & Sendable)?]) {
        self.segments = segments.map { $0.map { .text($0.description) } ?? .missing }
    }

    /// Segments from their text.
    public init(arrayLiteral segments: (any CustomStringConvertible & Sendable)?...) { self.init(segments) }

    /// A path from its text, split at slashes. Leading slashes are left out; a trailing one stays, for servers that distinguish
    /// `users/` from `users`, and so do empty segments within.
    ///
    /// The text is never taken as already encoded: `%` becomes %25 and `?` becomes %3F.
    public init(path: String) {
        // By scalars: an accent behind a slash makes one Character of both.
        let relative = path.unicodeScalars.drop { $0 == "/" }
        segments =
            relative.isEmpty
            ? []
            : relative.split(separator: "/", omittingEmptySubsequences: false).map { text -> Segment in
                text.isEmpty ? .empty : .text(String(text))
            }
    }

    /// The segments of both, with one slash between them.
    public static func + (left: HttpRoute, right: HttpRoute) -> HttpRoute {
        var sum = left
        if !right.segments.isEmpty, sum.segments.last == .empty { sum.segments.removeLast() }
        sum.segments += right.segments
        return sum
    }

    /// Whether there is no path.
    public var isEmpty: Bool { segments.isEmpty }

    /// The segments as they are sent, percent-encoded, without slashes; a final empty one means a trailing slash.
    ///
    /// - Throws: `ServiceError` `.badRequest` for an invalid segment.
    public var encodedSegments: [String] {
        get throws {
            try segments.map { segment in
                switch segment {
                case .empty: return ""
                case .missing: throw HttpRoute.refused("nil")
                case .text("."), .text(".."): throw HttpRoute.refused("a run of dots that means another place")
                case .text(""): throw HttpRoute.refused("empty")
                case .text(let text): return PercentCoding.encode(text, allowing: .pathSegment)
                }
            }
        }
    }

    private static func refused(_ what: String) -> ServiceError {
        ServiceError.badRequest(
            "A segment of the request's route is \(what); check the value it is made of, or leave the segment out."
        )
    }
}
