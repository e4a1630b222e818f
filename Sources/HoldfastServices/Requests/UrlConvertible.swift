// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// What names a URL: a URL, or text that is one but for its scheme.
public protocol UrlConvertible: Sendable {
    /// The URL's text; a scheme may be missing, and what is special must be percent-encoded.
    var urlText: String { get }
}

extension String: UrlConvertible {
    public var urlText: String { self }
}

extension Substring: UrlConvertible {
    public var urlText: String { String(self) }
}

extension URL: UrlConvertible {
    public var urlText: String { absoluteString }
}

extension URLComponents: UrlConvertible {
    /// The components put together; empty, and so refused when a request is built, where they do not fit together.
    public var urlText: String { string ?? "" }
}
