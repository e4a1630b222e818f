// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A path below a service's URL, segment by segment.
public struct HttpRoute: Sendable, Hashable, ExpressibleByArrayLiteral {
    /// The segments as they are sent, percent-encoded, without slashes.
    public private(set) var encodedSegments: [String]

    /// No path.
    public init() { encodedSegments = [] }

    /// Segments by their text; what is special in a path is percent-encoded, slashes too.
    public init(_ segments: [any CustomStringConvertible & Sendable]) {
        encodedSegments = segments.map { HttpRoute.encoded($0.description) }
    }

    /// A path by its text: divided at slashes, empty segments at its ends left out.
    public init(path: String) {
        encodedSegments = path.split(separator: "/").map { HttpRoute.encoded(String($0)) }
    }

    public init(arrayLiteral segments: any CustomStringConvertible & Sendable...) {
        self.init(segments)
    }

    /// The segments of both.
    public static func + (left: HttpRoute, right: HttpRoute) -> HttpRoute {
        var sum = left
        sum.encodedSegments += right.encodedSegments
        return sum
    }

    private static func encoded(_ segment: String) -> String {
        PercentCoding.encode(segment, allowing: .pathSegment)
    }
}
