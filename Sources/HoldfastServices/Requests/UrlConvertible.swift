// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// A value that gives a URL: a URL, or text that may lack the scheme.
public protocol UrlConvertible: Sendable {
    /// The URL's text; the scheme may be missing, and special characters must be percent-encoded.
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
    /// The URL of the components; empty if they do not make one, which makes building a request fail.
    public var urlText: String { string ?? "" }
}
