// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// What names a URL: a URL, or text that is one but for its scheme.
public protocol UrlConvertible: Sendable {
    /// The URL's text; a scheme may be missing.
    var urlText: String { get }
}

extension String: UrlConvertible {
    public var urlText: String { self }
}

extension URL: UrlConvertible {
    public var urlText: String { absoluteString }
}
